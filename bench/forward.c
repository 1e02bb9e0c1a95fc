/* SPDX-License-Identifier: MIT */
/*
 * forward.c - the whole forward pass against its floor: the same pass with all element-wise work switched off, so
 * that only the matrix products, the tiling and the threads remain. Both alternate in one process; ratios are to be
 * read, not times.
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
    swin_precision precision;
    bool amx;
} options;

typedef struct subject {
    sw_session *session;
    const sw_kernels *kernels;
    sw_pixels *pixels;
    swin_maps maps;
    int32_t canvas[2];
} subject;

static void make_maps(subject *s, const options *o)
{
    const swin_config *config = &sw_session_network(s->session)->config;
    int32_t sizes[SWIN_MAX_STAGES][2];
    swin_error err;
    sw_error_reset(&err);
    check(sw_plan_maps(config, o->height, o->width, sizes, &err), &err);
    s->maps = (swin_maps){.struct_size = sizeof s->maps};
    for (int32_t i = 0; i < config->stages; i++) {
        const size_t floats = (size_t)sizes[i][0] * (size_t)sizes[i][1] * (size_t)sw_config_channels(config, i);
        s->maps.data[i] = malloc((size_t)o->batch * floats * sizeof(float));
    }
    uint8_t *image = malloc((size_t)o->height * (size_t)o->width * 3);
    for (size_t i = 0; i < (size_t)o->height * (size_t)o->width * 3; i++)
        image[i] = (uint8_t)(i * 2654435761u >> 24);
    s->pixels = calloc((size_t)o->batch, sizeof *s->pixels);
    for (int32_t i = 0; i < o->batch; i++)
        s->pixels[i] = (sw_pixels){.data = image,
                                   .height = o->height,
                                   .width = o->width,
                                   .row_stride = 3 * o->width,
                                   .scale = {1 / 58.0f, 1 / 57.0f, 1 / 57.0f},
                                   .shift = {-2.1f, -2.0f, -1.8f}};
    s->canvas[0] = o->height;
    s->canvas[1] = o->width;
}

static void run(const subject *s, const options *o, bool floor, double *parts)
{
    swin_error err;
    sw_error_reset(&err);
    sw_session_set_kernels(s->session, floor ? &no_kernels : s->kernels);
    check(sw_session_run(s->session, s->pixels, (size_t)o->batch, s->canvas, &s->maps, &err), &err);
    swin_profile profile = {0};
    sw_session_profile(s->session, &profile);
    take_parts(&profile, parts);
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

static void bench(const options *o)
{
    swin_error err;
    sw_error_reset(&err);
    swin_config config;
    check(sw_config_preset(&config, o->preset, &err), &err);
    config.out_norm = (1 << config.stages) - 1;
    sw_model *model;
    check(sw_model_create_random(&config, 1, &model, &err), &err);
    sw_network *network;
    const sw_type type = o->precision == SWIN_PRECISION_BF16 ? SW_BF16 : SW_F32;
    check(sw_network_create(model, type, o->amx, sw_cpu_count(), &network, &err), &err);
    subject s = {.kernels = sw_kernels_for(sw_isa_best())};
    check(sw_session_create(network, s.kernels, o->threads, true, &s.session, &err), &err);
    make_maps(&s, o);

    double(*full)[PARTS] = calloc((size_t)o->rounds, sizeof *full),
    (*floor)[PARTS] = calloc((size_t)o->rounds, sizeof *floor);
    double warm[PARTS];
    run(&s, o, false, warm);
    run(&s, o, true, warm);
    for (int i = 0; i < o->rounds; i++) {
        run(&s, o, false, full[i]);
        run(&s, o, true, floor[i]);
    }
    swin_profile profile = {0};
    sw_session_profile(s.session, &profile);

    char version[32];
    sw_dnn_version(version);
    printf("%s, %d x %d, batch %d, %s, %d thread%s, %s, %s, kernels %s, medians of %d\n", o->preset, o->height,
           o->width, o->batch, type == SW_BF16 ? "bf16" : "float32", o->threads, o->threads == 1 ? "" : "s", version,
           sw_linear_kernel(&network->stages[0].blocks[0].fc1), s.kernels->name, o->rounds);
    double *column = calloc((size_t)o->rounds, sizeof *column), middle[2][PARTS], ratio;
    for (int part = 0; part < PARTS; part++) {
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < o->rounds; i++)
                column[i] = (k == 0 ? full : floor)[i][part];
            middle[k][part] = median(column, o->rounds);
        }
    }
    for (int i = 0; i < o->rounds; i++)
        column[i] = full[i][WHOLE] / floor[i][WHOLE];
    ratio = median(column, o->rounds);
    double gflop = profile.gflop[0];
    print_part("patch embedding", -1, middle[0][0], middle[1][0], gflop);
    for (int i = 0; i < config.stages; i++) {
        print_part("stage", i, middle[0][1 + 3 * i], middle[1][1 + 3 * i], profile.gflop[1 + i]);
        print_part("output", i, middle[0][2 + 3 * i], middle[1][2 + 3 * i], 0);
        print_part("merge", i, middle[0][3 + 3 * i], middle[1][3 + 3 * i], 0);
        gflop += profile.gflop[1 + i];
    }
    print_part("whole", -1, middle[0][WHOLE], middle[1][WHOLE], gflop);
    printf("  whole over floor, pair by pair: %.3f\n\n", ratio);

    for (int i = 0; i < SWIN_MAX_STAGES; i++)
        free(s.maps.data[i]);
    free((void *)(uintptr_t)s.pixels[0].data);
    free(s.pixels);
    free(column);
    free(full);
    free(floor);
    sw_session_destroy(s.session);
    sw_network_destroy(network);
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
        case 'p': o.precision = strcmp(optarg, "bf16") == 0 ? SWIN_PRECISION_BF16 : SWIN_PRECISION_F32; break;
        case 't': o.threads = atoi(optarg); break;
        case 'o': o.amx = false; break;
        case 'r': o.rounds = atoi(optarg); break;
        case 'b': o.batch = atoi(optarg); break;
        default: return usage();
        }
    }
    const bool one_size = o.height > 0, one_precision = o.precision != SWIN_PRECISION_AUTO;
    static const struct {
        int32_t height, width, rounds;
    } sizes[] = {{224, 224, 30}, {800, 1344, 7}};
    const int last = sw_shared_precision(SWIN_PRECISION_AUTO) == SWIN_PRECISION_BF16 ? SWIN_PRECISION_BF16
                                                                                     : SWIN_PRECISION_F32;
    for (int precision = SWIN_PRECISION_F32; precision <= (one_precision ? SWIN_PRECISION_BF16 : last); precision++) {
        if (one_precision && precision != (int)o.precision)
            continue;
        for (size_t i = 0; i < (one_size ? 1 : sizeof sizes / sizeof sizes[0]); i++) {
            options this = o;
            this.precision = (swin_precision)precision;
            if (!one_size) {
                this.height = sizes[i].height;
                this.width = sizes[i].width;
            }
            if (this.rounds == 0)
                this.rounds = one_size ? 15 : sizes[i].rounds;
            bench(&this);
        }
    }
    return 0;
}
