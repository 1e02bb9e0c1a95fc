/* SPDX-License-Identifier: MIT */
/* The command line: what is understood, and what is refused with a line that names it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "options.h"

enum { MAX_ARGUMENTS = 16 };

/* Splits at spaces; the first one is the program. */
static bool parse(struct options *options, const char *line, struct failure *failure)
{
    static char text[512];
    static char *arguments[MAX_ARGUMENTS + 1];
    int count = 0;
    snprintf(text, sizeof text, "swin-dump %s", line);
    for (char *word = strtok(text, " "); word != NULL && count < MAX_ARGUMENTS; word = strtok(NULL, " "))
        arguments[count++] = word;
    arguments[count] = NULL;
    failure->text[0] = '\0';
    return options_parse(options, count, arguments, failure);
}

static struct options parsed(const char *line)
{
    struct options options;
    struct failure failure;
    if (!parse(&options, line, &failure))
        fail_msg("%s: %s", line, failure.text);
    return options;
}

static void defaults(void **state)
{
    const struct options options = parsed("photo.png");
    (void)state;
    assert_int_equal(options.task, OPTIONS_DUMP);
    assert_null(options.weights);
    assert_string_equal(options.out, "./swin-dump");
    assert_true(options.png && options.json && !options.npy);
    assert_int_equal(options.height, 0);
    assert_int_equal(options.pad_divisor, 1);
    assert_int_equal(options.threads, 0);
    assert_int_equal(options.max_pixels, 256000000);
    assert_true(options.levels[0] && options.levels[1] && options.levels[2] && options.levels[3]);
    assert_false(options.levels_given);
    assert_true(options.mean[0] == 123.675f && options.mean[2] == 103.53f && options.std[1] == 57.12f);
    assert_int_equal(options.input_count, 1);
    assert_string_equal(options.inputs[0], "photo.png");
}

static void everything(void **state)
{
    struct options options =
        parsed("-w a.safetensors --out=d --size 800x1344 --pad-divisor 32 --levels 3,1 --layout nhwc a b");
    (void)state;
    assert_string_equal(options.weights, "a.safetensors");
    assert_string_equal(options.out, "d");
    assert_int_equal(options.height, 800);
    assert_int_equal(options.width, 1344);
    assert_int_equal(options.pad_divisor, 32);
    assert_true(!options.levels[0] && options.levels[1] && !options.levels[2] && options.levels[3]);
    assert_true(options.nhwc);
    const struct options named = parsed("x.png --levels c5,1 --threads 0");
    assert_true(!named.levels[0] && named.levels[1] && !named.levels[2] && named.levels[3]);
    assert_int_equal(named.threads, 0);
    assert_int_equal(options.input_count, 2);

    options =
        parsed("x.png --precision bf16 --threads 3 --mean 1,2.5,-3e1 --std .5,1,2 --bgr --max-pixels 1.5M --npy -q");
    assert_int_equal(options.precision, SWIN_PRECISION_BF16);
    assert_int_equal(options.threads, 3);
    assert_true(options.mean[0] == 1 && options.mean[1] == 2.5f && options.mean[2] == -30);
    assert_true(options.std[0] == 0.5f && options.std[2] == 2);
    assert_true(options.bgr && options.quiet);
    assert_true(options.npy && !options.png && !options.json);
    assert_int_equal(options.max_pixels, 1500000);

    options = parsed(
        "x.png -w m --window 7 --pretrained-window 12,12,12,6 --image-size 192x256 --lineage timm --out-norm off");
    for (int s = 0; s < SWIN_MAX_STAGES; s++) {
        assert_int_equal(options.model.window[s][0], 7);
        assert_int_equal(options.model.window[s][1], 7);
        assert_int_equal(options.model.pretrained_window[s][1], s == 3 ? 6 : s < 4 ? 12 : 0);
    }
    assert_int_equal(options.model.image_size[0], 192);
    assert_int_equal(options.model.image_size[1], 256);
    assert_int_equal(options.model.lineage, SWIN_LINEAGE_TIMM);
    assert_int_equal(options.model.out_norm, SWIN_OUT_NORM_OFF);

    assert_int_equal(options.window_count, 1);
    assert_int_equal(options.pretrained_window_count, 4);
    assert_null(options.model.prefix);

    /* The words of the library and of the Python package, and two that are shorter. */
    static const struct {
        const char *line;
        int32_t lineage;
    } names[] = {
        {"--info --lineage detection", SWIN_LINEAGE_DETECTION},     {"--info --lineage det", SWIN_LINEAGE_DETECTION},
        {"--info --lineage microsoft", SWIN_LINEAGE_MICROSOFT},     {"--info --lineage cls", SWIN_LINEAGE_MICROSOFT},
        {"--info --lineage torchvision", SWIN_LINEAGE_TORCHVISION}, {"--info --lineage timm", SWIN_LINEAGE_TIMM},
        {"--info --lineage huggingface", SWIN_LINEAGE_HUGGINGFACE}, {"--info --lineage auto", SWIN_LINEAGE_AUTO},
        {"--info --lineage mmpretrain", SWIN_LINEAGE_MMPRETRAIN},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(parsed(names[i].line).model.lineage, names[i].lineage);
    assert_string_equal(parsed("--info --prefix teacher.backbone.").model.prefix, "teacher.backbone.");

    options = parsed("x.png --window 7x14,5");
    assert_int_equal(options.model.window[0][0], 7);
    assert_int_equal(options.model.window[0][1], 14);
    assert_int_equal(options.model.window[1][0], 5);
    assert_int_equal(options.model.window[2][0], 0);

    /* Comparing and timing write only what is asked for by name. */
    options = parsed("x.png --verify ref --bench 5");
    assert_string_equal(options.verify, "ref");
    assert_int_equal(options.bench, 5);
    assert_true(!options.png && !options.json && !options.npy);
    options = parsed("x.png --attention 2,5 --query 120,200");
    assert_true(options.attention && options.query_given);
    assert_int_equal(options.attention_stage, 2);
    assert_int_equal(options.attention_block, 5);
    assert_int_equal(options.attention_head, SWIN_HEAD_MEAN);
    assert_int_equal(options.query[0], 120);
    assert_int_equal(options.query[1], 200);
    assert_true(!options.png && !options.json && !options.npy);
    assert_true(options_write(&options) && !options_want_maps(&options));
    options = parsed("x.png --attention 0,1,2 --npy");
    assert_int_equal(options.attention_head, 2);
    assert_true(!options.query_given && options.npy && !options.png && options_want_maps(&options));
    options = parsed("x.png --verify ref --json");
    assert_true(options.json && !options.png);
    options = parsed("-- --odd-name.png");
    assert_string_equal(options.inputs[0], "--odd-name.png");
}

static void tasks(void **state)
{
    (void)state;
    assert_int_equal(parsed("--help").task, OPTIONS_HELP);
    assert_int_equal(parsed("x.png -h").task, OPTIONS_HELP);
    assert_int_equal(parsed("--version").task, OPTIONS_VERSION);
    assert_int_equal(parsed("-V").task, OPTIONS_VERSION);
    assert_int_equal(parsed("--info").task, OPTIONS_INFO);
    const struct options info = parsed("--info --json -w m --size 8x9");
    assert_true(info.json && info.height == 8);
}

/* The line must say `with`, and nothing must be taken for something else. */
static void refusals(void **state)
{
    static const struct {
        const char *line;
        const char *with;
    } cases[] = {
        {"", "no image given"},
        {"-q", "no image given"},
        {"x.png --frobnicate", "--frobnicate is no option"},
        {"x.png -x", "-x is no option"},
        {"x.png -qx", "-x is no option"},
        {"x.png --bgr=1", "--bgr takes no value"},
        {"x.png --quiet=1", "--quiet takes no value"},
        {"x.png --weights", "--weights needs a value"},
        {"x.png -w", "-w needs a value"},
        {"x.png --weights=", "--weights ''"},
        {"x.png --size 800", "--size 800: expected HEIGHTxWIDTH"},
        {"x.png --size 0x5", "--size 0x5: expected"},
        {"x.png --size 5x", "--size 5x: expected"},
        {"x.png --size 5x6x7", "--size 5x6x7: expected"},
        {"x.png --size 5x-6", "expected"},
        {"x.png --size 99999x5", "expected"},
        {"x.png --size 60000x60000", "over the limit"},
        {"x.png --size 100x100 --max-pixels 9999", "over the limit"},
        {"x.png --pad-divisor 0", "--pad-divisor 0: expected"},
        {"x.png --max-pixels 0", "--max-pixels 0: expected"},
        {"x.png --max-pixels 3000M", "expected"},
        {"x.png --max-pixels lots", "expected"},
        {"x.png --levels 5", "--levels 5: expected"},
        {"x.png --levels 0,0", "level 0 is there twice"},
        {"x.png --levels 0,", "expected"},
        {"x.png --levels ,0", "expected"},
        {"x.png --levels c1", "expected"},
        {"x.png --levels c7", "expected"},
        {"x.png --levels c22", "expected"},
        {"x.png --levels 0c2", "expected"},
        {"x.png --levels c2,0", "level 0 is there twice"},
        {"x.png --levels c2,c3,c4,c5,c6,c2", "expected"},
        {"x.png --levels c2,c3,c4,c5,c6,c", "expected"},
        {"x.png --levels 0,1,2,3,4,0", "expected"},
        {"x.png --layout chwn", "expected one of nchw, nhwc"},
        {"x.png --precision fp8", "expected one of auto, f32, bf16"},
        {"x.png --lineage caffe", "expected one of auto, detection, microsoft, torchvision"},
        {"x.png --out-norm maybe", "expected one of auto, on, off"},
        {"x.png --threads -1", "--threads -1: expected a whole number from 0"},
        {"x.png --threads two", "expected"},
        {"x.png --threads 99999999999999999999", "expected"},
        {"x.png --mean 1,2", "expected three finite numbers"},
        {"x.png --mean 1,2,3,4", "expected"},
        {"x.png --mean nan,1,1", "expected"},
        {"x.png --mean 1,1,inf", "expected"},
        {"x.png --mean 1,1e99,1", "expected"},
        {"x.png --std 1,0,1", "above 0"},
        {"x.png --std 1,-1,1", "above 0"},
        {"x.png --window 0", "--window 0: expected the side of a window, 1 to 128 tokens"},
        {"x.png --window 129", "--window 129: expected the side of a window, 1 to 128 tokens"},
        {"x.png --prefix", "--prefix needs a value"},
        {"x.png --window 7,7,7,7,7,7", "expected"},
        {"x.png --window 7x", "expected"},
        {"x.png --image-size 224", "expected HEIGHTxWIDTH"},
        {"x.png --attention 1", "--attention 1: expected STAGE,BLOCK or STAGE,BLOCK,HEAD"},
        {"x.png --attention 1,2,3,4", "expected STAGE,BLOCK"},
        {"x.png --attention 1,-1", "expected STAGE,BLOCK"},
        {"x.png --attention 1,0 --query 5", "--query 5: expected ROW,COLUMN of a pixel"},
        {"x.png --attention 1,0 --query -1,5", "expected ROW,COLUMN"},
        {"x.png --attention 1,0 --query 1,2,3", "expected ROW,COLUMN"},
        {"x.png --query 1,2", "--query goes with --attention"},
        {"x.png --bench 0", "--bench 0: expected"},
        {"x.png --bench -3", "expected"},
        {"--info x.png", "--info takes no image, but x.png"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct options options;
        struct failure failure;
        if (parse(&options, cases[i].line, &failure))
            fail_msg("taken: %s", cases[i].line);
        if (strstr(failure.text, cases[i].with) == NULL)
            fail_msg("%s: '%s' should say '%s'", cases[i].line, failure.text, cases[i].with);
    }
}

/* Each option of the help is one, and the help has them all: a line that lacks only an image says just that. */
static void help_is_complete(void **state)
{
    static const char *const names[] = {"weights",     "info",    "window",    "pretrained-window",
                                        "image-size",  "lineage", "out-norm",  "size",
                                        "pad-divisor", "mean",    "std",       "bgr",
                                        "max-pixels",  "levels",  "precision", "threads",
                                        "out",         "png",     "npy",       "json",
                                        "layout",      "verify",  "bench",     "quiet",
                                        "prefix",      "help",    "version",   "attention",
                                        "query"};
    const char *help = options_help();
    size_t found = 0;
    (void)state;
    for (const char *at = strstr(help, "--"); at != NULL; at = strstr(at + 2, "--"))
        found += at[2] >= 'a' && at[2] <= 'z';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char option[64];
        struct options options;
        struct failure failure;
        snprintf(option, sizeof option, "--%s", names[i]);
        assert_non_null(strstr(help, option));
        snprintf(option, sizeof option, "--%s", names[i]);
        if (!parse(&options, option, &failure))
            assert_null(strstr(failure.text, "is no option"));
    }
    assert_true(found >= sizeof names / sizeof names[0]);
    for (const char *line = help; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        assert_true(length <= 110);
        line += length + 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults), cmocka_unit_test(everything),       cmocka_unit_test(tasks),
        cmocka_unit_test(refusals), cmocka_unit_test(help_is_complete),
    };
    return cmocka_run_group_tests_name("cli-options", tests, NULL, NULL);
}
