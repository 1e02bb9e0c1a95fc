/* SPDX-License-Identifier: MIT */
/*
 * forward.c - the whole forward pass against its floor: the same pass with all element-wise work switched off, so
 * that only the matrix products, the tiling and the threads remain. With AMX, what our own products do on the way
 * (GELU, softmax, splitting) belongs to them and stays. On such a CPU the pass with oneDNN's products takes its turn
 * too. All alternate in one process; ratios are to be read, not times.
 *
 *   forward [-m PRESET] [-s HxW] [-p f32|bf16] [-t THREADS] [-r ROUNDS] [-b BATCH] [-o]
 *
 * -o leaves all products to oneDNN. Without arguments: Swin-T at 224 x 224 and 800 x 1344, in every precision that
 * this CPU is good at.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/threads.h"
#include "exec/session.h"
#include "exec/shared.h"
#include "machine.h"

static void no_gather(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
                      const sw_norm *norm)
{
    (void)dst, (void)x, (void)index, (void)rows, (void)channels, (void)norm;
}

static void no_residual(float *x, const int32_t *index, const sw_panels *y, const sw_norm *post, int32_t rows,
                        int32_t channels, const sw_panels *dst, const sw_norm *pre)
{
    (void)x, (void)index, (void)y, (void)post, (void)rows, (void)channels, (void)dst, (void)pre;
}

static void no_gather_patches(void *dst, sw_type type, const sw_pixels *pixels, int32_t patch_size, int32_t grid_width,
                              int32_t first, int32_t rows)
{
    (void)dst, (void)type, (void)pixels, (void)patch_size, (void)grid_width, (void)first, (void)rows;
}

static void no_store_map(float *map, bool nhwc, size_t plane, const float *x, int32_t first, int32_t rows,
                         int32_t channels, const sw_norm *norm)
{
    (void)map, (void)nhwc, (void)plane, (void)x, (void)first, (void)rows, (void)channels, (void)norm;
}

static void no_gather_head(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t src_stride,
                           const int32_t *index, const float *pad, int32_t rows, int32_t d, bool normalise, float scale)
{
    (void)dst, (void)dst_type, (void)src, (void)src_type, (void)src_stride, (void)index, (void)pad, (void)rows, (void)d;
    (void)normalise, (void)scale;
}

static void no_scatter_head(void *dst, sw_type type, size_t dst_stride, const void *src, const int32_t *index,
                            int32_t rows, int32_t d)
{
    (void)dst, (void)type, (void)dst_stride, (void)src, (void)index, (void)rows, (void)d;
}

static void no_softmax(void *dst, sw_type type, const float *scores, const float *bias, size_t bias_stride,
                       const int32_t *region, float mask, int32_t first, int32_t rows, int32_t tokens, size_t stride)
{
    (void)dst, (void)type, (void)scores, (void)bias, (void)bias_stride, (void)region, (void)mask, (void)first;
    (void)rows, (void)tokens, (void)stride;
}

static void no_gelu(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t count)
{
    (void)dst, (void)dst_type, (void)src, (void)src_type, (void)count;
}

static const sw_kernels no_kernels = {
    .name = "none",
    .gather = no_gather,
    .residual = no_residual,
    .gather_merge = no_gather,
    .gather_patches = no_gather_patches,
    .store_map = no_store_map,
    .gather_head = no_gather_head,
    .scatter_head = no_scatter_head,
    .softmax = no_softmax,
    .gelu = no_gelu,
};

static void check(swin_status status, const swin_error *err)
{
    if (status != SWIN_OK) {
        fprintf(stderr, "forward: %s\n", err->message);
        exit(1);
    }
}

/* Parts of a pass, in the order of the table: patch embedding, then per stage blocks, output, merge; then the whole. */
enum { PARTS = 1 + 3 * SWIN_MAX_STAGES + 1, WHOLE = PARTS - 1 };

static void take_parts(const swin_profile *p, double *parts)
{
    parts[0] = p->patch_embed_ms;
    for (int s = 0; s < SWIN_MAX_STAGES; s++) {
        parts[1 + 3 * s] = p->blocks_ms[s];
        parts[2 + 3 * s] = p->output_ms[s];
        parts[3 + 3 * s] = p->patch_merge_ms[s];
    }
    parts[WHOLE] = p->total_ms;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

typedef struct options {
    const char *preset;
    int32_t height, width, threads, rounds, batch;
    int32_t first_precision, last_precision;
    bool amx;
} options;

/* What every pass reads and writes. */
typedef struct images {
    sw_pixels *pixels;
    swin_maps maps;
    int32_t canvas[2];
} images;

static images make_images(const swin_config *config, const options *o)
{
    images images = {.maps = {.struct_size = sizeof images.maps}, .canvas = {o->height, o->width}};
    int32_t sizes[SWIN_MAX_STAGES][2];
    swin_error err;
    sw_error_reset(&err);
    check(sw_plan_maps(config, o->height, o->width, sizes, &err), &err);
    for (int32_t i = 0; i < config->stages; i++) {
        const size_t floats = (size_t)sizes[i][0] * (size_t)sizes[i][1] * (size_t)sw_config_channels(config, i);
        images.maps.data[i] = malloc((size_t)o->batch * floats * sizeof(float));
    }
    uint8_t *image = malloc((size_t)o->height * (size_t)o->width * 3);
    for (size_t i = 0; i < (size_t)o->height * (size_t)o->width * 3; i++)
        image[i] = (uint8_t)(i * 2654435761u >> 24);
    images.pixels = calloc((size_t)o->batch, sizeof *images.pixels);
    for (int32_t i = 0; i < o->batch; i++)
        images.pixels[i] = (sw_pixels){.data = image,
                                       .height = o->height,
                                       .width = o->width,
                                       .row_stride = 3 * o->width,
                                       .scale = {1 / 58.0f, 1 / 57.0f, 1 / 57.0f},
                                       .shift = {-2.1f, -2.0f, -1.8f}};
    return images;
}

static void free_images(images *images)
{
    for (int i = 0; i < SWIN_MAX_STAGES; i++)
        free(images->maps.data[i]);
    free((void *)(uintptr_t)images->pixels[0].data);
    free(images->pixels);
}

/* One way to make the pass. */
typedef struct contestant {
    sw_network *network;
    sw_session *session;
    double (*full)[PARTS], (*floor)[PARTS]; /* [rounds] */
    double gflop[1 + SWIN_MAX_STAGES];
} contestant;

static contestant enter(const sw_model *model, sw_type type, bool amx, const options *o)
{
    swin_error err;
    sw_error_reset(&err);
    contestant c = {0};
    check(sw_network_create(model, type, amx, sw_cpu_count(), &c.network, &err), &err);
    check(sw_session_create(c.network, sw_kernels_for(sw_isa_best()), o->threads, true, &c.session, &err), &err);
    c.full = calloc((size_t)o->rounds, sizeof *c.full);
    c.floor = calloc((size_t)o->rounds, sizeof *c.floor);
    return c;
}

static void leave(contestant *c)
{
    free(c->full);
    free(c->floor);
    sw_session_destroy(c->session);
    sw_network_destroy(c->network);
}

static void run(contestant *c, const images *images, const options *o, bool floor, double *parts)
{
    swin_error err;
    sw_error_reset(&err);
    sw_session_set_kernels(c->session, floor ? &no_kernels : sw_kernels_for(sw_isa_best()));
    check(sw_session_run(c->session, images->pixels, (size_t)o->batch, images->canvas, &images->maps, &err), &err);
    swin_profile profile = {0};
    sw_session_profile(c->session, &profile);
    take_parts(&profile, parts);
    memcpy(c->gflop, profile.gflop, sizeof c->gflop);
}

static void print_part(const char *name, int stage, double full, double floor, double gflop)
{
    if (full == 0)
        return;
    char label[32];
    snprintf(label, sizeof label, stage < 0 ? "%s" : "%s %d", name, stage + 1);
    printf("  %-18s %9.3f ms", label, full);
    if (floor > 0.0005)
        printf("   floor %9.3f ms   ratio %5.2f", floor, full / floor);
    else
        printf("   %-33s", "");
    if (gflop > 0)
        printf("   %6.1f GFLOP/s", gflop / full * 1e3);
    printf("\n");
}

static double median_of_part(double (*parts)[PARTS], int part, int rounds)
{
    double *column = calloc((size_t)rounds, sizeof *column);
    for (int i = 0; i < rounds; i++)
        column[i] = parts[i][part];
    const double middle = median(column, rounds);
    free(column);
    return middle;
}

/* The median of a's time over b's, round by round. */
static double ratio(double (*a)[PARTS], double (*b)[PARTS], int rounds)
{
    double *column = calloc((size_t)rounds, sizeof *column);
    for (int i = 0; i < rounds; i++)
        column[i] = a[i][WHOLE] / b[i][WHOLE];
    const double middle = median(column, rounds);
    free(column);
    return middle;
}

static void print_contestant(const contestant *c, const options *o)
{
    char version[32];
    sw_dnn_version(version);
    printf("%s, %d x %d, batch %d, %s, %d thread%s, %s, %s, kernels %s, medians of %d\n", o->preset, o->height,
           o->width, o->batch, c->network->type == SW_BF16 ? "bf16" : "float32", o->threads,
           o->threads == 1 ? "" : "s", version, sw_linear_kernel(&c->network->stages[0].blocks[0].fc1),
           sw_kernels_for(sw_isa_best())->name, o->rounds);
    double full[PARTS], floor[PARTS], gflop = c->gflop[0];
    for (int part = 0; part < PARTS; part++) {
        full[part] = median_of_part(c->full, part, o->rounds);
        floor[part] = median_of_part(c->floor, part, o->rounds);
    }
    print_part("patch embedding", -1, full[0], floor[0], gflop);
    for (int i = 0; i < c->network->config.stages; i++) {
        print_part("stage", i, full[1 + 3 * i], floor[1 + 3 * i], c->gflop[1 + i]);
        print_part("output", i, full[2 + 3 * i], floor[2 + 3 * i], 0);
        print_part("merge", i, full[3 + 3 * i], floor[3 + 3 * i], 0);
        gflop += c->gflop[1 + i];
    }
    print_part("whole", -1, full[WHOLE], floor[WHOLE], gflop);
    printf("  whole over floor, round by round: %.3f\n\n", ratio(c->full, c->floor, o->rounds));
}

static void bench(const options *o)
{
    swin_error err;
    sw_error_reset(&err);
    swin_config config;
    check(sw_config_preset(&config, o->preset, &err), &err);
    config.out_norm = (1 << config.stages) - 1;
    sw_model *model;
    check(sw_model_create_random(&config, 1, &model, &err), &err);
    images images = make_images(&config, o);

    /* [precision][whose products: ours, oneDNN's] */
    static const char *const names[2][2] = {{"float32", "float32 by oneDNN"}, {"bf16", "bf16 by oneDNN"}};
    contestant contestants[2][2];
    bool enters[2][2] = {{false}};
    for (int p = o->first_precision - SWIN_PRECISION_F32; p <= o->last_precision - SWIN_PRECISION_F32; p++) {
        const sw_type type = p == 0 ? SW_F32 : SW_BF16;
        contestants[p][0] = enter(model, type, o->amx, o);
        enters[p][0] = true;
        enters[p][1] = contestants[p][0].network->amx;
        if (enters[p][1])
            contestants[p][1] = enter(model, type, false, o);
    }
    for (int i = -1; i < o->rounds; i++) { /* the first time does not count */
        for (int k = 0; k < 4; k++) {
            contestant *c = &contestants[k / 2][k % 2];
            double uncounted[PARTS];
            if (!enters[k / 2][k % 2])
                continue;
            run(c, &images, o, false, i < 0 ? uncounted : c->full[i]);
            run(c, &images, o, true, i < 0 ? uncounted : c->floor[i]);
        }
    }
    for (int k = 0; k < 4; k++) {
        if (enters[k / 2][k % 2])
            print_contestant(&contestants[k / 2][k % 2], o);
    }
    for (int a = 0; a < 4; a++) {
        for (int b = 0; b < 4; b++) {
            /* another's products in the same precision, or float32 beside bf16 */
            const bool wanted = a / 2 == b / 2 ? a == b + 1 : a / 2 == 0 && b == 2;
            if (wanted && enters[a / 2][a % 2] && enters[b / 2][b % 2])
                printf("  %s over %s, round by round: %.2f\n", names[a / 2][a % 2], names[b / 2][b % 2],
                       ratio(contestants[a / 2][a % 2].full, contestants[b / 2][b % 2].full, o->rounds));
        }
    }
    printf("\n");
    for (int k = 0; k < 4; k++) {
        if (enters[k / 2][k % 2])
            leave(&contestants[k / 2][k % 2]);
    }
    free_images(&images);
    sw_model_destroy(model);
}

static int usage(void)
{
    fprintf(stderr, "usage: forward [-m PRESET] [-s HxW] [-p f32|bf16] [-t THREADS] [-r ROUNDS] [-b BATCH] [-o]\n");
    return 2;
}

int main(int argc, char **argv)
{
    options o = {.preset = "swin_tiny_patch4_window7_224", .threads = sw_cpu_count(), .batch = 1, .amx = true};
    int option;
    while ((option = getopt(argc, argv, "m:s:p:t:r:b:o")) != -1) {
        switch (option) {
        case 'm': o.preset = optarg; break;
        case 's':
            if (sscanf(optarg, "%dx%d", &o.height, &o.width) != 2)
                return usage();
            break;
        case 'p':
            o.first_precision = strcmp(optarg, "bf16") == 0 ? SWIN_PRECISION_BF16 : SWIN_PRECISION_F32;
            o.last_precision = o.first_precision;
            break;
        case 't': o.threads = atoi(optarg); break;
        case 'o': o.amx = false; break;
        case 'r': o.rounds = atoi(optarg); break;
        case 'b': o.batch = atoi(optarg); break;
        default: return usage();
        }
    }
    static const struct {
        int32_t height, width, rounds;
    } sizes[] = {{224, 224, 30}, {800, 1344, 7}};
    if (o.first_precision == SWIN_PRECISION_AUTO) {
        o.first_precision = SWIN_PRECISION_F32;
        o.last_precision = sw_shared_fast_precision();
    }
    const bool one_size = o.height > 0;
    machine_print();
    for (size_t i = 0; i < (one_size ? 1 : sizeof sizes / sizeof sizes[0]); i++) {
        options this = o;
        if (!one_size) {
            this.height = sizes[i].height;
            this.width = sizes[i].width;
        }
        if (this.rounds == 0)
            this.rounds = one_size ? 15 : sizes[i].rounds;
        bench(&this);
    }
    return 0;
}
