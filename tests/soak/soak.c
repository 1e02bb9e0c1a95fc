/* SPDX-License-Identifier: MIT */
/*
 * A service's life in short: workers run images of random sizes, batches, levels, layouts and precisions through
 * sessions that come and go, over models that come and go; now and then somebody asks for what is impossible. Each case
 * must give the same bits as the first time, whoever computes it; memory, threads and file descriptors must not grow.
 *
 *   soak SECONDS CHECKPOINT [SEED]
 *
 * CHECKPOINT is opened and closed all the while, and also run.
 */
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <swin/swin.h>

enum {
    WORKERS = 3,
    MODELS = 6,
    CASES = 8000,         /* different ones                                  */
    RUNS_PER_ROUND = 16,  /* of a worker                                     */
    MAX_SIDE = 150,
    MAX_BATCH = 4,
    REST_ROUNDS = 25,     /* after so many, everything but the results goes  */
    WARM_RESTS = 4        /* before the first that memory is compared with   */
};

/* What may be left over after a rest: free lists of the C library, pages of its arenas. */
#define SLACK ((long)12 << 20)

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    exit(1);
}

static uint32_t next(uint64_t *state, uint32_t limit)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 33) % limit);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Models and cases
 */

static const char *checkpoint;
static swin_model *models[MODELS];
static atomic_ullong results[CASES]; /* 0: not run yet */
static atomic_ulong runs, sessions_made, models_made, refused;
static unsigned long distinct;

static swin_config config_of(int which)
{
    static const struct {
        int32_t version, lineage, stages, embed_dim, heads, window;
    } kinds[MODELS - 1] = {
        {1, SWIN_LINEAGE_DETECTION, 4, 32, 1, 7}, {1, SWIN_LINEAGE_TIMM, 3, 24, 2, 5},
        {2, SWIN_LINEAGE_MICROSOFT, 3, 32, 1, 8}, {2, SWIN_LINEAGE_DETECTION, 2, 16, 1, 16},
        {1, SWIN_LINEAGE_MICROSOFT, 2, 64, 2, 12},
    };
    swin_config config = {.struct_size = sizeof config,
                          .version = kinds[which].version,
                          .lineage = kinds[which].lineage,
                          .patch_size = 4,
                          .embed_dim = kinds[which].embed_dim,
                          .stages = kinds[which].stages,
                          .qkv_bias = 1,
                          .patch_norm = 1,
                          .out_norm = 1,
                          .mlp_ratio = 4};
    for (int s = 0; s < config.stages; s++) {
        config.depths[s] = 2;
        config.heads[s] = kinds[which].heads << s;
        config.window[s][0] = config.window[s][1] = kinds[which].window;
    }
    return config;
}

static swin_model *make_model(int which)
{
    swin_error err;
    swin_model *model;
    const swin_config config = config_of(which % (MODELS - 1));
    const swin_status status = which == MODELS - 1 ? swin_model_open(checkpoint, NULL, &model, &err)
                                                   : swin_model_create_random(&config, 5, NULL, &model, &err);
    if (status != SWIN_OK)
        fail("model %d: %s", which, err.message);
    atomic_fetch_add(&models_made, 1);
    return model;
}

typedef struct test_case {
    int model;
    int32_t precision, height, width, canvas[2], layout;
    uint32_t batch;
    bool planar, bgr;
    unsigned levels;
} test_case;

/* The same for the same number. */
static test_case case_of(uint32_t number)
{
    uint64_t state = number * UINT64_C(0x9e3779b97f4a7c15) + 1;
    test_case c = {.model = (int)next(&state, MODELS)};
    c.precision = next(&state, 2) ? SWIN_PRECISION_F32 : SWIN_PRECISION_BF16;
    const bool thin = next(&state, 8) == 0;
    c.height = 1 + (int32_t)next(&state, MAX_SIDE);
    c.width = 1 + (int32_t)next(&state, thin ? 5 : MAX_SIDE);
    c.planar = next(&state, 4) == 0;
    c.bgr = next(&state, 2) != 0;
    for (int axis = 0; axis < 2; axis++) {
        if (next(&state, 3) == 0 && !c.planar)
            c.canvas[axis] = (axis == 0 ? c.height : c.width) + (int32_t)next(&state, 40);
    }
    c.batch = 1 + next(&state, MAX_BATCH);
    c.layout = next(&state, 2) ? SWIN_LAYOUT_NCHW : SWIN_LAYOUT_NHWC;
    c.levels = 1 + next(&state, 15);
    return c;
}

static uint64_t hash(uint64_t h, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < count; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* Pixels that belong to the case; any bits are pixels, but floats shall be numbers. */
static void *pixels_of(uint32_t number, const test_case *c)
{
    const size_t values = (size_t)c->batch * (size_t)c->height * (size_t)c->width * 3;
    uint64_t state = number + 7;
    void *pixels = malloc(values * (c->planar ? sizeof(float) : 1));
    if (pixels == NULL)
        fail("no memory for pixels");
    for (size_t i = 0; i < values; i++) {
        if (c->planar)
            ((float *)pixels)[i] = (float)next(&state, 1000) / 250 - 2;
        else
            ((uint8_t *)pixels)[i] = (uint8_t)next(&state, 256);
    }
    return pixels;
}

static void run_case(uint32_t number, const test_case *c, swin_session *session)
{
    const size_t image_bytes = (size_t)c->height * (size_t)c->width * 3 * (c->planar ? sizeof(float) : 1);
    const int32_t canvas[2] = {c->canvas[0] > 0 ? c->canvas[0] : c->height, c->canvas[1] > 0 ? c->canvas[1] : c->width};
    swin_output_info infos[SWIN_MAX_STAGES];
    swin_image images[MAX_BATCH];
    swin_maps maps;
    swin_error err;
    if (swin_model_output_info(models[c->model], canvas[0], canvas[1], infos, &err) != SWIN_OK)
        fail("case %u: %s", number, err.message);
    char *pixels = pixels_of(number, c);
    for (uint32_t i = 0; i < c->batch; i++) {
        swin_image_init(&images[i], sizeof images[i]);
        images[i].data = pixels + i * image_bytes;
        images[i].format = c->planar ? SWIN_PIXEL_F32_PLANAR : c->bgr ? SWIN_PIXEL_BGR8 : SWIN_PIXEL_RGB8;
        images[i].height = c->height;
        images[i].width = c->width;
        images[i].canvas_height = c->canvas[0];
        images[i].canvas_width = c->canvas[1];
    }
    swin_maps_init(&maps, sizeof maps);
    maps.layout = c->layout;
    bool any = false;
    for (int s = 0; s < SWIN_MAX_STAGES && infos[s].channels > 0; s++) {
        if ((c->levels >> s & 1) == 0 && (any || (s + 1 < SWIN_MAX_STAGES && infos[s + 1].channels > 0)))
            continue;
        any = true;
        maps.capacity[s] =
            c->batch * (size_t)infos[s].channels * (size_t)infos[s].height * (size_t)infos[s].width;
        maps.data[s] = malloc(maps.capacity[s] * sizeof(float));
        if (maps.data[s] == NULL)
            fail("no memory for maps");
        memset(maps.data[s], 0xff, maps.capacity[s] * sizeof(float));
    }
    if (swin_session_run(session, images, c->batch, &maps, &err) != SWIN_OK)
        fail("case %u: %s", number, err.message);
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int s = 0; s < SWIN_MAX_STAGES; s++) {
        h = hash(h, maps.data[s], maps.data[s] == NULL ? 0 : maps.capacity[s] * sizeof(float));
        free(maps.data[s]);
    }
    free(pixels);
    h |= h == 0;
    unsigned long long before = 0;
    if (!atomic_compare_exchange_strong(&results[number], &before, h) && before != h)
        fail("case %u: other results than the first time (model %d, %d x %d, batch %u, precision %d)", number, c->model,
             c->height, c->width, c->batch, c->precision);
    atomic_fetch_add(&runs, 1);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Workers
 */

typedef struct worker {
    uint64_t state;
    swin_session *sessions[MODELS][2];
} worker;

static swin_session *session_for(worker *w, const test_case *c)
{
    swin_session **session = &w->sessions[c->model][c->precision == SWIN_PRECISION_BF16];
    if (*session != NULL && next(&w->state, 20) == 0) {
        swin_session_destroy(*session);
        *session = NULL;
    }
    if (*session == NULL) {
        swin_error err;
        const swin_session_params params = {.struct_size = sizeof params,
                                            .precision = c->precision,
                                            .threads = 1 + (int32_t)next(&w->state, 3),
                                            .profile = next(&w->state, 4) == 0};
        if (swin_session_create(models[c->model], &params, session, &err) != SWIN_OK)
            fail("session: %s", err.message);
        atomic_fetch_add(&sessions_made, 1);
    }
    return *session;
}

/* What must be refused, whatever else goes on. */
static void ask_for_the_impossible(worker *w, swin_session *session)
{
    swin_model *model = NULL;
    swin_image image;
    swin_maps maps;
    float room[1];
    swin_status status = SWIN_OK;
    switch (next(&w->state, 4)) {
    case 0:
        status = swin_model_open("/nowhere/at/all.safetensors", NULL, &model, NULL);
        break;
    case 1:
        status = swin_model_open("/dev/null", NULL, &model, NULL);
        break;
    case 2: {
        swin_config config = config_of(0);
        config.heads[0] = 5;
        status = swin_model_create_random(&config, 1, NULL, &model, NULL);
        break;
    }
    default:
        swin_image_init(&image, sizeof image);
        swin_maps_init(&maps, sizeof maps);
        image.data = room;
        image.height = image.width = 1 << 30;
        maps.data[0] = room;
        maps.capacity[0] = 1;
        status = swin_session_run(session, &image, 1, &maps, NULL);
    }
    if (status == SWIN_OK || model != NULL)
        fail("the impossible was done");
    atomic_fetch_add(&refused, 1);
}

static void *work(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < RUNS_PER_ROUND; i++) {
        const uint32_t number = next(&w->state, CASES);
        const test_case c = case_of(number);
        swin_session *session = session_for(w, &c);
        run_case(number, &c, session);
        if (next(&w->state, 30) == 0)
            ask_for_the_impossible(w, session);
    }
    return NULL;
}

static void release_sessions(worker *w)
{
    for (int m = 0; m < MODELS; m++) {
        for (int p = 0; p < 2; p++) {
            swin_session_destroy(w->sessions[m][p]);
            w->sessions[m][p] = NULL;
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * What must not grow
 */

static int entries_of(const char *directory)
{
    int count = 0;
    DIR *entries = opendir(directory);
    while (entries != NULL && readdir(entries) != NULL)
        count++;
    if (entries != NULL)
        closedir(entries);
    return count;
}

static long resident_bytes(void)
{
    long pages = 0;
    FILE *stream = fopen("/proc/self/statm", "r");
    if (stream == NULL || fscanf(stream, "%*d %ld", &pages) != 1)
        fail("no /proc/self/statm");
    fclose(stream);
    return pages * sysconf(_SC_PAGESIZE);
}

typedef struct state {
    long resident, highest;
    int descriptors, threads, rests;
} state;

/* Everything but the models of the next round is gone. */
static void rest(state *s, double minutes)
{
    malloc_trim(0);
    const long resident = resident_bytes();
    const int descriptors = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
    if (s->rests == 0) {
        s->descriptors = descriptors;
        s->threads = threads;
    }
    if (descriptors != s->descriptors)
        fail("%d file descriptors, %d at first", descriptors, s->descriptors);
    if (threads != s->threads)
        fail("%d threads, %d at first", threads, s->threads);
    s->rests++;
    if (s->rests <= WARM_RESTS) {
        s->resident = resident > s->resident ? resident : s->resident;
        s->highest = s->resident;
    } else {
        s->highest = resident > s->highest ? resident : s->highest;
        if (resident > s->resident + SLACK)
            fail("%.1f MB of memory after %.1f minutes, %.1f MB at first", (double)resident / 1e6, minutes,
                 (double)s->resident / 1e6);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void round_of(worker workers[WORKERS])
{
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            fail("no thread");
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s SECONDS CHECKPOINT [SEED]\n", argv[0]);
        return 2;
    }
    const double start = now(), end = start + atof(argv[1]);
    checkpoint = argv[2];
    /* One arena: what several have in their free lists looks like growth. */
    mallopt(M_ARENA_MAX, 1);
    worker workers[WORKERS] = {{0}};
    for (int i = 0; i < WORKERS; i++)
        workers[i].state = (uint64_t)i * 977 + (argc > 3 ? strtoull(argv[3], NULL, 0) : 1);
    state s = {0};
    while (now() < end || s.rests < 2) {
        for (int m = 0; m < MODELS; m++)
            models[m] = make_model(m);
        for (int round = 0; round < REST_ROUNDS && (now() < end || s.rests < 2); round++) {
            round_of(workers);
            /* A model goes before its sessions, which are then of the old one until they go too. */
            if (round % 8 == 7) {
                const int which = round / 8 % MODELS;
                swin_model_destroy(models[which]);
                for (int i = 0; i < WORKERS; i++)
                    release_sessions(&workers[i]);
                models[which] = make_model(which);
            }
        }
        for (int m = 0; m < MODELS; m++)
            swin_model_destroy(models[m]);
        for (int i = 0; i < WORKERS; i++)
            release_sessions(&workers[i]);
        rest(&s, (now() - start) / 60);
    }
    for (int i = 0; i < CASES; i++)
        distinct += atomic_load(&results[i]) != 0;
    printf("%.0f s: %lu runs of %lu different cases, all the same as the first time; %lu sessions of %lu models; "
           "%lu impossible calls refused; %d times at rest: %.1f MB at first, %.1f MB at most, %d descriptors, %d "
           "threads\n",
           now() - start, atomic_load(&runs), distinct, atomic_load(&sessions_made), atomic_load(&models_made),
           atomic_load(&refused), s.rests, (double)s.resident / 1e6, (double)s.highest / 1e6, s.descriptors - 3,
           s.threads - 2);
    return 0;
}
