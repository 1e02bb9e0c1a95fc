/* SPDX-License-Identifier: MIT */
/*
 * What the kernels cost, per instruction set: nanoseconds per row, element, or window and head. Each figure is the
 * least of many repetitions, with the instruction sets taking turns, so that other work on the machine does not
 * matter.
 *
 *      bench_kernels [part of a name ...]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/kernels.h"
#include "machine.h"

enum { WINDOW = 49, WINDOWS = 8, TILE = WINDOW * WINDOWS, HEAD = 32 };

/* A map that no cache holds is walked through tile by tile. */
enum { MAP_TOKENS = 200 * 336 };

typedef struct stage {
    int32_t channels, tokens, tile; /* of the map walked through; tile is the one at work */
    float *x;
    int32_t *index; /* window by window over the map */
    void *y, *z, *half; /* half: bf16 */
    float *scores, *bias;
    int32_t *region;
    sw_norm norm, norm4;
    uint8_t *image;
} stage;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *allocate(size_t bytes)
{
    void *block = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (block == NULL) {
        fprintf(stderr, "bench_kernels: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return block;
}

static float *numbers(size_t count)
{
    static uint32_t state = 1;
    float *block = allocate(count * sizeof *block);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        block[i] = (float)(int32_t)state * 0x1p-29f;
    }
    return block;
}

/* A map of `lines` x `columns` tokens, cut into windows of 7 x 7 that start at (3, 3) and wrap around. */
static int32_t *windows(int32_t lines, int32_t columns)
{
    int32_t *index = allocate((size_t)lines * (size_t)columns * sizeof *index), *at = index;
    for (int32_t y = 0; y + 7 <= lines; y += 7) {
        for (int32_t x = 0; x + 7 <= columns; x += 7) {
            for (int32_t k = 0; k < WINDOW; k++)
                *at++ = (y + 3 + k / 7) % lines * columns + (x + 3 + k % 7) % columns;
        }
    }
    return index;
}

static stage *stage_create(int32_t channels, bool hot)
{
    stage *s = allocate(sizeof *s);
    const int32_t columns = 7 * (hot ? 8 : 48), lines = 7 * (hot ? 1 : 28 * 96 / (channels < 96 ? 96 : channels));
    const size_t c = (size_t)channels;
    *s = (stage){.channels = channels, .tokens = lines * columns};
    s->x = numbers((size_t)s->tokens * c);
    s->index = windows(lines, columns);
    s->y = numbers(TILE * c * 4);
    s->z = numbers(TILE * c * 4);
    s->half = allocate(TILE * c * 4 * sizeof(uint16_t));
    sw_kernels_for(SW_ISA_PLAIN)->to_bf16(s->half, s->y, TILE * c * 4);
    s->norm = (sw_norm){numbers(c), numbers(c), 1e-5f};
    s->norm4 = (sw_norm){numbers(4 * c), numbers(4 * c), 1e-5f};
    return s;
}

static void stage_destroy(stage *s)
{
    free(s->x);
    free(s->index);
    free(s->y);
    free(s->z);
    free(s->half);
    free(s->scores);
    free(s->bias);
    free(s->region);
    free(s->image);
    free((float *)(uintptr_t)s->norm.weight);
    free((float *)(uintptr_t)s->norm.bias);
    free((float *)(uintptr_t)s->norm4.weight);
    free((float *)(uintptr_t)s->norm4.bias);
    free(s);
}

static const int32_t *next_tile(stage *s)
{
    const int32_t tiles = s->tokens / TILE;
    s->tile = (s->tile + 1) % tiles;
    return s->index + (size_t)s->tile * TILE;
}

static sw_panels panels(void *data, sw_type type, int32_t width)
{
    return (sw_panels){data, type, width, (size_t)TILE * (size_t)width};
}

static int gather(const sw_kernels *k, stage *s, int type)
{
    const sw_panels dst = panels(s->y, (sw_type)type, s->channels);
    k->gather(&dst, s->x, next_tile(s), TILE, s->channels, &s->norm);
    return TILE;
}

static int residual(const sw_kernels *k, stage *s, int type)
{
    const sw_panels y = panels(s->y, (sw_type)type, s->channels);
    k->residual(s->x, next_tile(s), &y, NULL, TILE, s->channels, NULL, NULL);
    return TILE;
}

static int residual_norm(const sw_kernels *k, stage *s, int type)
{
    const sw_panels y = panels(s->y, SW_F32, s->channels), dst = panels(s->z, (sw_type)type, s->channels);
    k->residual(s->x, next_tile(s), &y, NULL, TILE, s->channels, &dst, &s->norm);
    return TILE;
}

static int residual_post(const sw_kernels *k, stage *s, int type)
{
    const sw_panels y = panels(s->y, SW_F32, s->channels), dst = panels(s->z, (sw_type)type, s->channels);
    k->residual(s->x, next_tile(s), &y, &s->norm, TILE, s->channels, &dst, NULL);
    return TILE;
}

static int merge(const sw_kernels *k, stage *s, int type)
{
    const sw_panels dst = panels(s->y, (sw_type)type, 4 * s->channels);
    k->gather_merge(&dst, s->x, next_tile(s), TILE / 4, s->channels, &s->norm4);
    return TILE / 4;
}

static int map(const sw_kernels *k, stage *s, int nhwc)
{
    static float *out;
    if (out == NULL)
        out = allocate((size_t)MAP_TOKENS * 96 * sizeof *out);
    const int32_t count = 448 < s->tokens ? 448 : s->tokens, first = s->tile * count;
    s->tile = (s->tile + 1) % (s->tokens / count);
    k->store_map(out, nhwc, (size_t)s->tokens, s->x, first, count, s->channels, &s->norm);
    return count;
}

enum { SOFTMAX_BF16 = 1, SOFTMAX_MASKED = 2 };

static int softmax(const sw_kernels *k, stage *s, int form)
{
    /* Channels stand for the tokens of a window. */
    const int32_t tokens = s->channels;
    if (s->scores == NULL) {
        s->scores = numbers((size_t)tokens * (size_t)tokens);
        s->bias = numbers((size_t)tokens * (size_t)tokens);
        s->region = allocate((size_t)tokens * sizeof *s->region);
        for (int32_t j = 0; j < tokens; j++)
            s->region[j] = j % 7 > 3;
    }
    k->softmax(s->z, form & SOFTMAX_BF16 ? SW_BF16 : SW_F32, s->scores, s->bias, (size_t)tokens,
               form & SOFTMAX_MASKED ? s->region : NULL, -100, 0, tokens, tokens, (size_t)tokens);
    return 1;
}

static int gelu(const sw_kernels *k, stage *s, int form)
{
    const int count = 49 * 4 * s->channels;
    k->gelu(s->z, form & 1 ? SW_BF16 : SW_F32, form & 2 ? s->half : s->y, form & 2 ? SW_BF16 : SW_F32, (size_t)count);
    return count;
}

static int to_bf16(const sw_kernels *k, stage *s, int form)
{
    (void)form;
    const int count = 49 * 4 * s->channels;
    k->to_bf16(s->z, s->y, (size_t)count);
    return count;
}

/* Bits 0 and 1: bf16 source and destination; 2: normalise. */
static int gather_head(const sw_kernels *k, stage *s, int form)
{
    const sw_type src_type = form & 1 ? SW_BF16 : SW_F32, dst_type = form & 2 ? SW_BF16 : SW_F32;
    k->gather_head(s->z, dst_type, src_type == SW_BF16 ? s->half : s->y, src_type, (size_t)s->channels, NULL, NULL,
                   WINDOW, HEAD, (form & 4) != 0, 10);
    return 1;
}

static int scatter_head(const sw_kernels *k, stage *s, int type)
{
    k->scatter_head(s->y, (sw_type)type, (size_t)s->channels, s->z, NULL, WINDOW, HEAD);
    return 1;
}

enum { PATCHES_BF16 = 1, PATCHES_PLANAR = 2 };

static int patches(const sw_kernels *k, stage *s, int form)
{
    enum { WIDTH = 1344, HEIGHT = 800, GRID = WIDTH / 4 };
    if (s->image == NULL)
        s->image = (uint8_t *)numbers(WIDTH * HEIGHT * 3);
    sw_pixels pixels = {.data = s->image, .height = HEIGHT, .width = WIDTH, .row_stride = WIDTH * 3,
                        .scale = {0.017f, 0.017f, 0.017f}, .shift = {-2, -2, -2}};
    if (form & PATCHES_PLANAR) {
        pixels.planar_f32 = true;
        pixels.row_stride = WIDTH * 4;
        pixels.plane_stride = WIDTH * HEIGHT * 4;
    }
    s->tile = (s->tile + 1) % (HEIGHT / 4);
    k->gather_patches(s->y, form & PATCHES_BF16 ? SW_BF16 : SW_F32, &pixels, 4, GRID, s->tile * GRID, GRID);
    return GRID;
}

typedef int body(const sw_kernels *k, stage *s, int form);

static const struct {
    const char *name, *unit;
    body *run;
    int form;
    int32_t channels;
    bool cold;
} cases[] = {
    {"gather+norm f32 C=96", "row", gather, SW_F32, 96, false},
    {"gather+norm f32 C=192", "row", gather, SW_F32, 192, false},
    {"gather+norm f32 C=384", "row", gather, SW_F32, 384, false},
    {"gather+norm f32 C=768", "row", gather, SW_F32, 768, false},
    {"gather+norm bf16 C=96", "row", gather, SW_BF16, 96, false},
    {"gather+norm bf16 C=192", "row", gather, SW_BF16, 192, false},
    {"gather+norm bf16 C=384", "row", gather, SW_BF16, 384, false},
    {"gather+norm bf16 C=768", "row", gather, SW_BF16, 768, false},
    {"gather+norm bf16 C=96 cold", "row", gather, SW_BF16, 96, true},
    {"gather+norm bf16 C=192 cold", "row", gather, SW_BF16, 192, true},
    {"gather+norm bf16 C=384 cold", "row", gather, SW_BF16, 384, true},
    {"residual f32 C=96", "row", residual, SW_F32, 96, false},
    {"residual f32 C=384", "row", residual, SW_F32, 384, false},
    {"residual f32 C=96 cold", "row", residual, SW_F32, 96, true},
    {"residual+norm bf16 C=96", "row", residual_norm, SW_BF16, 96, false},
    {"residual+norm bf16 C=192", "row", residual_norm, SW_BF16, 192, false},
    {"residual+norm bf16 C=384", "row", residual_norm, SW_BF16, 384, false},
    {"residual+norm bf16 C=96 cold", "row", residual_norm, SW_BF16, 96, true},
    {"norm+residual bf16 C=96", "row", residual_post, SW_BF16, 96, false},
    {"norm+residual bf16 C=384", "row", residual_post, SW_BF16, 384, false},
    {"merge bf16 C=96", "row", merge, SW_BF16, 96, false},
    {"merge bf16 C=96 cold", "row", merge, SW_BF16, 96, true},
    {"map nchw C=96 cold", "row", map, false, 96, true},
    {"map nchw C=384 cold", "row", map, false, 384, true},
    {"map nhwc C=96 cold", "row", map, true, 96, true},
    {"softmax f32 T=49", "window", softmax, 0, 49, false},
    {"softmax f32 T=49 masked", "window", softmax, SOFTMAX_MASKED, 49, false},
    {"softmax bf16 T=49", "window", softmax, SOFTMAX_BF16, 49, false},
    {"softmax bf16 T=49 masked", "window", softmax, SOFTMAX_BF16 | SOFTMAX_MASKED, 49, false},
    {"softmax bf16 T=64", "window", softmax, SOFTMAX_BF16, 64, false},
    {"softmax f32 T=144", "window", softmax, 0, 144, false},
    {"softmax bf16 T=144 masked", "window", softmax, SOFTMAX_BF16 | SOFTMAX_MASKED, 144, false},
    {"softmax bf16 T=576", "window", softmax, SOFTMAX_BF16, 576, false},
    {"gelu f32", "element", gelu, 0, 96, false},
    {"gelu f32 to bf16", "element", gelu, 1, 96, false},
    {"gelu bf16", "element", gelu, 3, 96, false},
    {"to bf16", "element", to_bf16, 0, 96, false},
    {"gather head f32", "window", gather_head, 0, 288, false},
    {"gather head bf16", "window", gather_head, 3, 288, false},
    {"gather head bf16 normalised", "window", gather_head, 7, 288, false},
    {"scatter head bf16", "window", scatter_head, SW_BF16, 96, false},
    {"patches 4x4 rgb f32", "row", patches, 0, 96, false},
    {"patches 4x4 rgb bf16", "row", patches, PATCHES_BF16, 96, false},
    {"patches 4x4 planar bf16", "row", patches, PATCHES_BF16 | PATCHES_PLANAR, 96, false},
};

/* The least time per unit over bursts of some microseconds. */
static void measure(size_t c, const sw_kernels *const sets[SW_ISA_COUNT], double best[SW_ISA_COUNT])
{
    enum { ROUNDS = 2000, BURST_NS = 4000 };
    stage *s = stage_create(cases[c].channels, !cases[c].cold);
    int calls[SW_ISA_COUNT];
    for (int isa = 0; isa < SW_ISA_COUNT; isa++) {
        best[isa] = 1e30;
        if (sets[isa] == NULL)
            continue;
        cases[c].run(sets[isa], s, cases[c].form);
        const double start = now();
        cases[c].run(sets[isa], s, cases[c].form);
        calls[isa] = 1 + (int)(BURST_NS / (now() - start));
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int isa = 0; isa < SW_ISA_COUNT; isa++) {
            if (sets[isa] == NULL)
                continue;
            double units = 0;
            const double start = now();
            for (int i = 0; i < calls[isa]; i++)
                units += cases[c].run(sets[isa], s, cases[c].form);
            const double each = (now() - start) / units;
            best[isa] = each < best[isa] ? each : best[isa];
        }
    }
    stage_destroy(s);
}

static bool wanted(const char *name, int count, char **parts)
{
    for (int i = 1; i < count; i++) {
        if (strstr(name, parts[i]) == NULL)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    const sw_kernels *sets[SW_ISA_COUNT];
    machine_print();
    printf("%-32s", "nanoseconds");
    for (int isa = 0; isa < SW_ISA_COUNT; isa++) {
        sets[isa] = sw_kernels_for((sw_isa)isa);
        if (sets[isa] != NULL)
            printf("%13s", sets[isa]->name);
    }
    printf("  per\n");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (!wanted(cases[c].name, argc, argv))
            continue;
        double best[SW_ISA_COUNT];
        measure(c, sets, best);
        printf("%-32s", cases[c].name);
        for (int isa = 0; isa < SW_ISA_COUNT; isa++) {
            if (sets[isa] != NULL)
                printf("%13.*f", best[isa] < 1 ? 3 : 1, best[isa]);
        }
        printf("  %s\n", cases[c].unit);
        fflush(stdout);
    }
    return 0;
}
