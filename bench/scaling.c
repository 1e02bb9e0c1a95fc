/* SPDX-License-Identifier: MIT */
/*
 * scaling.c - how time grows: with pixels, with the batch, with threads. One model, one process; every row is a
 * median, and the last column says what a perfect machine would keep constant.
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

typedef struct measured {
    double ms;
    double scratch_mb;
} measured;

static measured measure(const swin_model *model, swin_precision precision, int32_t threads, int32_t height,
                        int32_t width, size_t batch, int rounds)
{
    swin_error err;
    swin_session_params params;
    swin_session_params_init(&params, sizeof params);
    params.precision = (int32_t)precision;
    params.threads = threads;
    swin_session *session;
    check(swin_session_create(model, &params, &session, &err), &err);

    uint8_t *pixels = malloc((size_t)height * (size_t)width * 3);
    for (size_t i = 0; i < (size_t)height * (size_t)width * 3; i++)
        pixels[i] = (uint8_t)(i * 2654435761u >> 24);
    swin_image *images = calloc(batch, sizeof *images);
    for (size_t i = 0; i < batch; i++) {
        swin_image_init(&images[i], sizeof images[i]);
        images[i].data = pixels;
        images[i].height = height;
        images[i].width = width;
    }
    swin_output_info infos[SWIN_MAX_STAGES];
    check(swin_model_output_info(model, height, width, infos, &err), &err);
    swin_maps maps;
    swin_maps_init(&maps, sizeof maps);
    for (int s = 0; s < SWIN_MAX_STAGES && infos[s].channels > 0; s++) {
        maps.capacity[s] = batch * (size_t)infos[s].channels * (size_t)infos[s].height * (size_t)infos[s].width;
        maps.data[s] = malloc(maps.capacity[s] * sizeof(float));
    }
    double *times = calloc((size_t)rounds, sizeof *times);
    check(swin_session_run(session, images, batch, &maps, &err), &err);
    for (int i = 0; i < rounds; i++) {
        const double start = now_ms();
        check(swin_session_run(session, images, batch, &maps, &err), &err);
        times[i] = now_ms() - start;
    }
    qsort(times, (size_t)rounds, sizeof *times, by_value);
    swin_session_info info;
    check(swin_session_get_info(session, &info, sizeof info, &err), &err);
    const measured result = {times[rounds / 2], (double)info.scratch_bytes * 1e-6};
    swin_session_destroy(session);
    for (int s = 0; s < SWIN_MAX_STAGES; s++)
        free(maps.data[s]);
    free(pixels);
    free(images);
    free(times);
    return result;
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

    static const int32_t sizes[][2] = {{7, 7},     {32, 32},    {112, 112},   {224, 224},   {448, 448},
                                       {640, 640}, {800, 1344}, {1080, 1920}, {2160, 3840}};
    machine_print();
    printf("%s, %d threads, medians of %d\n\n     pixels        ms   scratch MB   ns per pixel\n", preset, threads,
           rounds);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const measured m = measure(model, precision, threads, sizes[i][0], sizes[i][1], 1, rounds);
        printf("%5d x %4d %9.2f %12.1f %14.1f\n", sizes[i][0], sizes[i][1], m.ms, m.scratch_mb,
               m.ms * 1e6 / ((double)sizes[i][0] * sizes[i][1]));
    }
    printf("\n  batch of 224 x 224   ms   scratch MB   ms per image\n");
    for (size_t batch = 1; batch <= 32; batch *= 2) {
        const measured m = measure(model, precision, threads, 224, 224, batch, rounds);
        printf("%12zu %12.2f %12.1f %14.2f\n", batch, m.ms, m.scratch_mb, m.ms / (double)batch);
    }
    printf("\n  threads, 800 x 1344   ms   thread-ms\n");
    for (int32_t t = 1; t <= 2 * threads; t *= 2) {
        const measured m = measure(model, precision, t, 800, 1344, 1, rounds);
        printf("%12d %12.2f %11.1f\n", t, m.ms, m.ms * t);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("\npeak memory of the process: %.0f MB\n", (double)usage.ru_maxrss / 1024);
    swin_model_destroy(model);
    return 0;
}
