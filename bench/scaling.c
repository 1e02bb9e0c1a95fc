/* SPDX-License-Identifier: MIT */
/*
 * scaling.c - how time grows: with pixels, with the batch, with threads. One model, one process. The rows of a table
 * take turns, and the last column compares them turn by turn: the machine may drift.
 *
 *   scaling [-m PRESET] [-p auto|f32|bf16] [-t THREADS] [-r ROUNDS]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <swin/swin.h>

#include "machine.h"

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check(swin_status status, const swin_error *err)
{
    if (status != SWIN_OK) {
        fprintf(stderr, "scaling: %s\n", err->message);
        exit(1);
    }
}

/* One thing to be timed: a session, what it reads and what it writes. */
typedef struct contestant {
    int32_t height, width, threads;
    size_t batch;
    swin_session *session;
    uint8_t *pixels;
    swin_image *images;
    swin_maps maps;
    double *times; /* [rounds] milliseconds of one run */
} contestant;

static void enter(contestant *c, const swin_model *model, swin_precision precision, int rounds)
{
    swin_error err;
    swin_session_params params;
    swin_session_params_init(&params, sizeof params);
    params.precision = (int32_t)precision;
    params.threads = c->threads;
    check(swin_session_create(model, &params, &c->session, &err), &err);

    const size_t bytes = (size_t)c->height * (size_t)c->width * 3;
    c->pixels = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        c->pixels[i] = (uint8_t)(i * 2654435761u >> 24);
    c->images = calloc(c->batch, sizeof *c->images);
    for (size_t i = 0; i < c->batch; i++) {
        swin_image_init(&c->images[i], sizeof c->images[i]);
        c->images[i].data = c->pixels;
        c->images[i].height = c->height;
        c->images[i].width = c->width;
    }
    swin_output_info infos[SWIN_MAX_STAGES];
    check(swin_model_output_info(model, c->height, c->width, infos, &err), &err);
    swin_maps_init(&c->maps, sizeof c->maps);
    for (int s = 0; s < SWIN_MAX_STAGES && infos[s].channels > 0; s++) {
        c->maps.capacity[s] =
            c->batch * (size_t)infos[s].channels * (size_t)infos[s].height * (size_t)infos[s].width;
        c->maps.data[s] = malloc(c->maps.capacity[s] * sizeof(float));
    }
    c->times = calloc((size_t)rounds, sizeof *c->times);
}

static void leave(contestant *c)
{
    swin_session_destroy(c->session);
    for (int s = 0; s < SWIN_MAX_STAGES; s++)
        free(c->maps.data[s]);
    free(c->pixels);
    free(c->images);
    free(c->times);
}

/* All take turns: a run to warm up, then runs for a twentieth of a second. */
static void race(contestant *contestants, size_t count, int rounds)
{
    swin_error err;
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            contestant *c = &contestants[i];
            check(swin_session_run(c->session, c->images, c->batch, &c->maps, &err), &err);
            const double start = now_ms();
            double passed = 0;
            int runs = 0;
            for (; passed < 50; runs++, passed = now_ms() - start)
                check(swin_session_run(c->session, c->images, c->batch, &c->maps, &err), &err);
            c->times[round] = passed / runs;
        }
    }
}

static double median(const double *values, int count)
{
    double *sorted = malloc((size_t)count * sizeof *sorted);
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    const double middle = sorted[count / 2];
    free(sorted);
    return middle;
}

/* The median of how many times longer `c` takes than `other`, turn by turn, each per unit of its own work. */
static double against(const contestant *c, double work, const contestant *other, double others, int rounds)
{
    double *ratios = malloc((size_t)rounds * sizeof *ratios);
    for (int i = 0; i < rounds; i++)
        ratios[i] = c->times[i] / work / (other->times[i] / others);
    const double middle = median(ratios, rounds);
    free(ratios);
    return middle;
}

static double scratch_mb(const contestant *c)
{
    swin_error err;
    swin_session_info info;
    check(swin_session_get_info(c->session, &info, sizeof info, &err), &err);
    return (double)info.scratch_bytes * 1e-6;
}

int main(int argc, char **argv)
{
    const char *preset = "swin_tiny_patch4_window7_224";
    swin_precision precision = SWIN_PRECISION_AUTO;
    int32_t threads = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    int rounds = 9, option;
    while ((option = getopt(argc, argv, "m:p:t:r:")) != -1) {
        switch (option) {
        case 'm': preset = optarg; break;
        case 'p': precision = strcmp(optarg, "bf16") == 0  ? SWIN_PRECISION_BF16
                              : strcmp(optarg, "f32") == 0 ? SWIN_PRECISION_F32
                                                           : SWIN_PRECISION_AUTO; break;
        case 't': threads = atoi(optarg); break;
        case 'r': rounds = atoi(optarg); break;
        default:
            fprintf(stderr, "usage: scaling [-m PRESET] [-p auto|f32|bf16] [-t THREADS] [-r ROUNDS]\n");
            return 2;
        }
    }
    swin_error err;
    swin_config config;
    check(swin_config_preset(&config, sizeof config, preset, &err), &err);
    swin_model_params params;
    swin_model_params_init(&params, sizeof params);
    params.precision = (int32_t)precision;
    swin_model *model;
    check(swin_model_create_random(&config, 1, &params, &model, &err), &err);

    machine_print();
    printf("%s, %d threads, medians of %d turns\n", preset, threads, rounds);

    contestant pixels[] = {
        {.height = 7, .width = 7},      {.height = 32, .width = 32},     {.height = 112, .width = 112},
        {.height = 224, .width = 224},  {.height = 448, .width = 448},   {.height = 640, .width = 640},
        {.height = 800, .width = 1344}, {.height = 1080, .width = 1920}, {.height = 2160, .width = 3840},
    };
    enum { SIZES = sizeof pixels / sizeof pixels[0], PER_PIXEL = 4 /* 448 x 448 */ };
    for (size_t i = 0; i < SIZES; i++) {
        pixels[i].threads = threads;
        pixels[i].batch = 1;
        enter(&pixels[i], model, precision, rounds);
    }
    race(pixels, SIZES, rounds);
    printf("\n     pixels        ms   scratch MB   ns per pixel   of 448 x 448's, turn by turn\n");
    for (size_t i = 0; i < SIZES; i++) {
        const contestant *c = &pixels[i], *other = &pixels[PER_PIXEL];
        const double area = (double)c->height * c->width, ms = median(c->times, rounds);
        printf("%5d x %4d %9.2f %12.1f %14.1f %12.2f\n", c->height, c->width, ms, scratch_mb(c), ms * 1e6 / area,
               against(c, area, other, (double)other->height * other->width, rounds));
    }
    for (size_t i = 0; i < SIZES; i++)
        leave(&pixels[i]);

    contestant batches[6];
    enum { BATCHES = sizeof batches / sizeof batches[0] };
    for (size_t i = 0; i < BATCHES; i++) {
        batches[i] = (contestant){.height = 224, .width = 224, .threads = threads, .batch = (size_t)1 << i};
        enter(&batches[i], model, precision, rounds);
    }
    race(batches, BATCHES, rounds);
    printf("\n  batch of 224 x 224   ms   scratch MB   ms per image   of one image's, turn by turn\n");
    for (size_t i = 0; i < BATCHES; i++) {
        const contestant *c = &batches[i];
        const double ms = median(c->times, rounds);
        printf("%12zu %12.2f %12.1f %14.2f %12.2f\n", c->batch, ms, scratch_mb(c), ms / (double)c->batch,
               against(c, (double)c->batch, &batches[0], 1, rounds));
    }
    for (size_t i = 0; i < BATCHES; i++)
        leave(&batches[i]);

    contestant crews[16];
    size_t count = 0;
    for (int32_t t = 1; t <= 2 * threads && count < sizeof crews / sizeof crews[0]; t *= 2, count++) {
        crews[count] = (contestant){.height = 800, .width = 1344, .threads = t, .batch = 1};
        enter(&crews[count], model, precision, rounds);
    }
    race(crews, count, rounds);
    printf("\n  threads, 800 x 1344   ms   times faster than one, turn by turn\n");
    for (size_t i = 0; i < count; i++) {
        printf("%12d %12.2f %11.2f\n", crews[i].threads, median(crews[i].times, rounds),
               1 / against(&crews[i], 1, &crews[0], 1, rounds));
    }
    for (size_t i = 0; i < count; i++)
        leave(&crews[i]);

    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("\npeak memory of the process: %.0f MB\n", (double)usage.ru_maxrss / 1024);
    swin_model_destroy(model);
    return 0;
}
