/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "value.h"

enum option_id {
    ID_SIZE = 256,
    ID_PAD_DIVISOR,
    ID_MAX_PIXELS,
    ID_LEVELS,
    ID_LAYOUT,
    ID_PRECISION,
    ID_THREADS,
    ID_MEAN,
    ID_STD,
    ID_BGR,
    ID_WINDOW,
    ID_PRETRAINED_WINDOW,
    ID_IMAGE_SIZE,
    ID_LINEAGE,
    ID_OUT_NORM,
    ID_PREFIX,
    ID_PNG,
    ID_NPY,
    ID_JSON,
    ID_INFO,
    ID_SELFTEST,
    ID_VERIFY,
    ID_BENCH,
    ID_ATTENTION,
    ID_QUERY
};

static const struct option known_options[] = {
    {"weights", required_argument, NULL, 'w'},
    {"out", required_argument, NULL, 'o'},
    {"size", required_argument, NULL, ID_SIZE},
    {"pad-divisor", required_argument, NULL, ID_PAD_DIVISOR},
    {"max-pixels", required_argument, NULL, ID_MAX_PIXELS},
    {"levels", required_argument, NULL, ID_LEVELS},
    {"layout", required_argument, NULL, ID_LAYOUT},
    {"precision", required_argument, NULL, ID_PRECISION},
    {"threads", required_argument, NULL, ID_THREADS},
    {"mean", required_argument, NULL, ID_MEAN},
    {"std", required_argument, NULL, ID_STD},
    {"bgr", no_argument, NULL, ID_BGR},
    {"window", required_argument, NULL, ID_WINDOW},
    {"pretrained-window", required_argument, NULL, ID_PRETRAINED_WINDOW},
    {"image-size", required_argument, NULL, ID_IMAGE_SIZE},
    {"lineage", required_argument, NULL, ID_LINEAGE},
    {"out-norm", required_argument, NULL, ID_OUT_NORM},
    {"prefix", required_argument, NULL, ID_PREFIX},
    {"png", no_argument, NULL, ID_PNG},
    {"npy", no_argument, NULL, ID_NPY},
    {"json", no_argument, NULL, ID_JSON},
    {"info", no_argument, NULL, ID_INFO},
    {"selftest", no_argument, NULL, ID_SELFTEST},
    {"verify", required_argument, NULL, ID_VERIFY},
    {"bench", required_argument, NULL, ID_BENCH},
    {"attention", required_argument, NULL, ID_ATTENTION},
    {"query", required_argument, NULL, ID_QUERY},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static const char *option_name(int id)
{
    for (const struct option *option = known_options; option->name != NULL; option++) {
        if (option->val == id)
            return option->name;
    }
    return NULL;
}

static bool unexpected(struct failure *failure, int id, const char *text, const char *wanted)
{
    return failure_set(failure, "--%s %s: expected %s", option_name(id), text, wanted);
}

/* "c2" to "c6", and then the end or a comma. */
static bool is_map_name(const char *text)
{
    return text[0] == 'c' && text[1] >= '2' && text[1] < '2' + SWIN_MAX_STAGES && (text[2] == ',' || text[2] == '\0');
}

/* Levels by number, or by the name of their map. */
static bool parse_levels(struct options *options, const char *text, struct failure *failure)
{
    static const char digits[] = "0123456789";
    char numbers[16] = "";
    size_t length = 0;
    for (const char *at = text; *at != '\0' && length < sizeof numbers; at++) {
        if ((at == text || at[-1] == ',') && is_map_name(at))
            numbers[length++] = digits[*++at - '2'];
        else
            numbers[length++] = *at;
    }
    int32_t levels[SWIN_MAX_STAGES];
    int count = 0;
    if (length < sizeof numbers)
        count = value_integers(numbers, levels, SWIN_MAX_STAGES, 0, SWIN_MAX_STAGES - 1);
    if (count == 0)
        return unexpected(failure, ID_LEVELS, text,
                          "some of 0,1,2,3 or c2,c3,c4,c5 with commas between, e.g. 0,1,2,3");
    memset(options->levels, 0, sizeof options->levels);
    for (int i = 0; i < count; i++) {
        if (options->levels[levels[i]])
            return failure_set(failure, "--levels %s: level %d is there twice; name each once", text, levels[i]);
        options->levels[levels[i]] = true;
    }
    options->levels_given = true;
    return true;
}

static bool parse_colour(int id, float channels[3], const char *text, struct failure *failure)
{
    if (value_floats(text, channels, 3) != 3)
        return unexpected(failure, id, text, "three finite numbers R,G,B in 0-255 units, e.g. 123.675,116.28,103.53");
    for (int i = 0; i < 3; i++) {
        if (id == ID_STD && !(channels[i] > 0))
            return unexpected(failure, id, text, "three numbers R,G,B above 0");
    }
    return true;
}

/* One window for all stages, or one for each. */
static bool parse_windows(int id, int32_t windows[SWIN_MAX_STAGES][2], int *count, const char *text,
                          struct failure *failure)
{
    *count = value_sizes(text, windows, SWIN_MAX_STAGES, 1, 128);
    if (*count == 0)
        return unexpected(failure, id, text,
                          "the side of a window, 1 to 128 tokens, or rows x columns; for all stages, or for each: "
                          "7 or 7x12 or 16,16,16,8");
    for (int i = 1; *count == 1 && i < SWIN_MAX_STAGES; i++)
        memcpy(windows[i], windows[0], sizeof windows[0]);
    return true;
}

struct choice {
    const char *name;
    int32_t value;
};

static bool parse_choice(int id, int32_t *chosen, const struct choice *choices, const char *text,
                         struct failure *failure)
{
    char wanted[256] = "";
    for (; choices->name != NULL; choices++) {
        if (strcmp(text, choices->name) == 0) {
            *chosen = choices->value;
            return true;
        }
        const size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, "%s%s", used > 0 ? ", " : "one of ", choices->name);
    }
    return unexpected(failure, id, text, wanted);
}

static const struct choice precisions[] = {
    {"auto", SWIN_PRECISION_AUTO}, {"f32", SWIN_PRECISION_F32}, {"bf16", SWIN_PRECISION_BF16}, {NULL, 0}};

static const struct choice layouts[] = {{"nchw", SWIN_LAYOUT_NCHW}, {"nhwc", SWIN_LAYOUT_NHWC}, {NULL, 0}};

static const struct choice out_norms[] = {
    {"auto", SWIN_OUT_NORM_AUTO}, {"on", SWIN_OUT_NORM_ON}, {"off", SWIN_OUT_NORM_OFF}, {NULL, 0}};

static const struct choice lineages[] = {{"auto", SWIN_LINEAGE_AUTO},
                                         {"detection", SWIN_LINEAGE_DETECTION},
                                         {"microsoft", SWIN_LINEAGE_MICROSOFT},
                                         {"torchvision", SWIN_LINEAGE_TORCHVISION},
                                         {"timm", SWIN_LINEAGE_TIMM},
                                         {"huggingface", SWIN_LINEAGE_HUGGINGFACE},
                                         {"mmpretrain", SWIN_LINEAGE_MMPRETRAIN},
                                         {NULL, 0}};

static bool parse_size(int id, int32_t *height, int32_t *width, const char *text, struct failure *failure)
{
    int32_t size[1][2];
    if (value_sizes(text, size, 1, 1, 65535) != 1 || strchr(text, 'x') == NULL)
        return unexpected(failure, id, text, "HEIGHTxWIDTH in pixels, each 1 to 65535, e.g. 800x1344");
    *height = size[0][0];
    *width = size[0][1];
    return true;
}

static bool parse_count(int id, int32_t *count, int32_t least, int32_t most, const char *text, struct failure *failure)
{
    char wanted[64];
    if (value_integers(text, count, 1, least, most) == 1)
        return true;
    snprintf(wanted, sizeof wanted, "a whole number from %d to %d", least, most);
    return unexpected(failure, id, text, wanted);
}

/* STAGE,BLOCK or STAGE,BLOCK,HEAD; whether the model has them is seen later. */
static bool parse_attention(struct options *options, const char *text, struct failure *failure)
{
    int32_t numbers[3] = {0, 0, SWIN_HEAD_MEAN};
    const int count = value_integers(text, numbers, 3, 0, 9999);
    if (count < 2)
        return unexpected(failure, ID_ATTENTION, text,
                          "STAGE,BLOCK or STAGE,BLOCK,HEAD, each counted from 0, e.g. 2,5 or 2,5,0");
    options->attention = true;
    options->attention_stage = numbers[0];
    options->attention_block = numbers[1];
    options->attention_head = count == 3 ? numbers[2] : SWIN_HEAD_MEAN;
    return true;
}

static bool parse_query(struct options *options, const char *text, struct failure *failure)
{
    options->query_given = value_integers(text, options->query, 2, 0, INT32_MAX) == 2;
    return options->query_given ||
           unexpected(failure, ID_QUERY, text, "ROW,COLUMN of a pixel, counted from 0 at the top left, e.g. 120,200");
}

static bool parse_path(int id, const char **path, const char *text, struct failure *failure)
{
    *path = text;
    return *text != '\0' || unexpected(failure, id, "''", "a path");
}

static bool parse_option(struct options *options, int id, const char *text, struct failure *failure)
{
    int32_t layout = SWIN_LAYOUT_NCHW;
    switch (id) {
    case 'w':
        return parse_path(id, &options->weights, text, failure);
    case 'o':
        return parse_path(id, &options->out, text, failure);
    case ID_VERIFY:
        return parse_path(id, &options->verify, text, failure);
    case ID_SIZE:
        return parse_size(id, &options->height, &options->width, text, failure);
    case ID_IMAGE_SIZE:
        return parse_size(id, &options->model.image_size[0], &options->model.image_size[1], text, failure);
    case ID_PAD_DIVISOR:
        return parse_count(id, &options->pad_divisor, 1, 4096, text, failure);
    case ID_MAX_PIXELS:
        return value_pixels(text, &options->max_pixels) ||
               unexpected(failure, id, text, "a number of pixels from 1 to 2147M, e.g. 500M");
    case ID_LEVELS:
        return parse_levels(options, text, failure);
    case ID_LAYOUT:
        if (!parse_choice(id, &layout, layouts, text, failure))
            return false;
        options->nhwc = layout == SWIN_LAYOUT_NHWC;
        return true;
    case ID_PRECISION:
        return parse_choice(id, &options->precision, precisions, text, failure);
    case ID_THREADS:
        return parse_count(id, &options->threads, 0, 1024, text, failure);
    case ID_MEAN:
        return parse_colour(id, options->mean, text, failure);
    case ID_STD:
        return parse_colour(id, options->std, text, failure);
    case ID_BGR:
        options->bgr = true;
        return true;
    case ID_WINDOW:
        return parse_windows(id, options->model.window, &options->window_count, text, failure);
    case ID_PRETRAINED_WINDOW:
        return parse_windows(id, options->model.pretrained_window, &options->pretrained_window_count, text, failure);
    case ID_PREFIX:
        options->model.prefix = text;
        return true;
    case ID_LINEAGE:
        text = strcmp(text, "det") == 0 ? "detection" : strcmp(text, "cls") == 0 ? "microsoft" : text;
        return parse_choice(id, &options->model.lineage, lineages, text, failure);
    case ID_OUT_NORM:
        return parse_choice(id, &options->model.out_norm, out_norms, text, failure);
    case ID_PNG:
        options->png = true;
        return true;
    case ID_NPY:
        options->npy = true;
        return true;
    case ID_JSON:
        options->json = true;
        return true;
    case ID_INFO:
        options->task = OPTIONS_INFO;
        return true;
    case ID_SELFTEST:
        options->task = OPTIONS_SELFTEST;
        return true;
    case ID_ATTENTION:
        return parse_attention(options, text, failure);
    case ID_QUERY:
        return parse_query(options, text, failure);
    case ID_BENCH:
        return parse_count(id, &options->bench, 1, 1000000, text, failure);
    default:
        options->quiet = true;
        return true;
    }
}

static void set_defaults(struct options *options)
{
    swin_image image;
    swin_image_init(&image, sizeof image);
    *options = (struct options){.task = OPTIONS_DUMP, .out = "./swin-dump", .pad_divisor = 1, .max_pixels = 256000000};
    memcpy(options->mean, image.mean, sizeof options->mean);
    memcpy(options->std, image.std, sizeof options->std);
    for (int level = 0; level < SWIN_MAX_STAGES; level++)
        options->levels[level] = true;
    swin_model_params_init(&options->model, sizeof options->model);
}

/* What needs more than one option to be judged. */
static bool finish(struct options *options, struct failure *failure)
{
    if (options->height > 0 && (uint64_t)options->height * (uint64_t)options->width > options->max_pixels)
        return failure_set(failure, "--size %dx%d is over the limit of %llu pixels; raise it with --max-pixels",
                           options->height, options->width, (unsigned long long)options->max_pixels);
    if (options->query_given && !options->attention)
        return failure_set(failure, "--query goes with --attention STAGE,BLOCK; name a block too");
    if (options->task == OPTIONS_INFO || options->task == OPTIONS_SELFTEST) {
        if (options->input_count > 0)
            return failure_set(failure, "--%s takes no image, but %s was given; leave one out",
                               options->task == OPTIONS_INFO ? "info" : "selftest", options->inputs[0]);
        return true;
    }
    if (options->input_count == 0)
        return failure_set(failure, "no image given; name a PNG file or a directory of them (see swin-dump --help)");
    if (!options->attention && !options_want_maps(options))
        options->png = options->json = true;
    return true;
}

bool options_parse(struct options *options, int argc, char **argv, struct failure *failure)
{
    set_defaults(options);
    /* glibc: 0 begins anew, so that a test can parse twice. */
    optind = 0;
    opterr = 0;
    for (;;) {
        const int id = getopt_long(argc, argv, ":w:o:qhV", known_options, NULL);
        if (id == -1)
            break;
        if (id == 'h' || id == 'V') {
            options->task = id == 'h' ? OPTIONS_HELP : OPTIONS_VERSION;
            return true;
        }
        if (id == ':')
            return failure_set(failure, "%s needs a value; see swin-dump --help", argv[optind - 1]);
        if (id == '?' && optopt == 0)
            return failure_set(failure, "%s is no option; see swin-dump --help", argv[optind - 1]);
        if (id == '?' && option_name(optopt) != NULL)
            return failure_set(failure, "--%s takes no value; see swin-dump --help", option_name(optopt));
        if (id == '?')
            return failure_set(failure, "-%c is no option; see swin-dump --help", optopt);
        if (!parse_option(options, id, optarg, failure))
            return false;
    }
    options->inputs = argv + optind;
    options->input_count = argc - optind;
    return finish(options, failure);
}

const char *options_help(void)
{
    return "Usage: swin-dump [options] IMAGE.png [IMAGE.png | DIRECTORY ...]\n"
           "       swin-dump --info [options]\n"
           "Computes the multi-scale feature maps (c2 to c5) of a Swin Transformer for PNG images.\n"
           "\n"
           "Model\n"
           "  -w, --weights FILE         safetensors checkpoint (default: a built-in Swin-T with random weights)\n"
           "      --info                 print what the checkpoint is and stop; with --json for machines\n"
           "      --prefix P             which network of a file with several: what stands before its names\n"
           "      --window W[,W..]       in tokens, for all stages or each: 7, 7x12 (rows x columns), 16,16,16,8;\n"
           "                             V1's position biases are resized where the file has another window\n"
           "      --pretrained-window W[,W..]   V2: the window of pre-training, likewise\n"
           "      --image-size HxW       size the model was made for, by which timm's and Hugging Face's V2\n"
           "                             lineages limit windows (default: as the file tells, else each image's own)\n"
           "      --lineage L            whose arithmetic: auto, detection (det), microsoft (cls), torchvision, timm,\n"
           "                             huggingface or mmpretrain\n"
           "      --out-norm N           LayerNorm on each level: auto (as in the file), on or off\n"
           "\n"
           "Image\n"
           "      --size HxW             resize first, bilinear with antialiasing (default: as the image is)\n"
           "      --pad-divisor N        pad right and below with zeros to a multiple of N\n"
           "      --mean R,G,B           subtracted, in 0-255 units (default: ImageNet, 123.675,116.28,103.53)\n"
           "      --std R,G,B            divided by, likewise (default: ImageNet, 58.395,57.12,57.375)\n"
           "      --bgr                  the network takes its channels in the order B, G, R\n"
           "      --max-pixels N         refuse larger images, M for millions (default: 256M)\n"
           "\n"
           "Computing\n"
           "      --levels L[,L..]       which of 0,1,2,3 or c2,c3,c4,c5; stages after the last one are not computed\n"
           "      --precision P          auto (bf16 on a CPU with AMX, else f32), f32 or bf16\n"
           "      --threads N            default: 0, all CPUs\n"
           "\n"
           "Output\n"
           "  -o, --out DIR              default: ./swin-dump; of several images each goes to DIR/<image name>/\n"
           "      --png                  heatmaps c2.png.., contact sheets c2-channels.png.., overview.png\n"
           "      --npy                  maps c2.npy..: float32 [1, C, H, W]\n"
           "      --json                 summary.json (default: --png --json)\n"
           "      --layout L             of the .npy files: nchw or nhwc (default: nchw)\n"
           "      --verify DIR           compare with the .npy files there instead of writing; exit 1 beyond the "
           "tolerance\n"
           "      --bench N              time N runs instead of writing\n"
           "\n"
           "Looking inside\n"
           "      --attention S,B[,H]    what a pixel attends to in block B of stage S, counted from 0: in head H, or\n"
           "                             in the mean over the heads. Writes attention.npy, the weights as float32\n"
           "                             [rows, columns] of the stage's map, and attention.png, the photo with them;\n"
           "                             the maps only where --png, --npy or --json ask for them\n"
           "      --query Y,X            that pixel: row and column in the image file (default: its middle)\n"
           "\n"
           "Other\n"
           "      --selftest             compare the kernels that this CPU gets with plain C, print each, and stop\n"
           "  -q, --quiet                print failures only\n"
           "  -h, --help\n"
           "  -V, --version\n"
           "\n"
           "Of a PNG, alpha is dropped, 16 bits are cut to 8, gray becomes RGB, gamma and colour profiles are "
           "ignored.\n"
           "Exit codes: 0 done, 1 something failed (the others are done all the same), 2 the command line is wrong.\n";
}
