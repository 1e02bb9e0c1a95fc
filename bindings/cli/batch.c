/* SPDX-License-Identifier: MIT */
#include "batch.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump.h"
#include "interruption.h"
#include "progress.h"

/* Reading and writing PNG files is single-threaded work, which workers do side by side; each holds an image's maps. */
enum { MAX_WORKERS = 8 };

struct batch {
    const struct plan *plan;
    const struct inputs *inputs;
    struct progress progress;
    atomic_int next;
    bool *failed;            /* by input */
    atomic_bool broken;      /* a worker could not start: nothing more can be done */
    int32_t session_threads; /* 0: all CPUs */
};

static int cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 1;
}

/* Where an image's files go, or where its references lie. */
static char *place_of(const struct batch *batch, const struct input *input, const char *directory)
{
    char *place = NULL;
    const int result =
        batch->inputs->single ? asprintf(&place, "%s", directory) : asprintf(&place, "%s/%s", directory, input->name);
    return result >= 0 ? place : NULL;
}

static bool process(struct batch *batch, swin_session *session, const struct input *input, char **report,
                    struct failure *failure)
{
    const struct options *options = batch->plan->options;
    if (input->problem != NULL)
        return failure_set(failure, "%s", input->problem);
    char *directory = place_of(batch, input, options->out);
    char *reference = options->verify != NULL ? place_of(batch, input, options->verify) : NULL;
    bool done;
    if (directory == NULL || (options->verify != NULL && reference == NULL))
        done = failure_no_memory(failure, 1, "a path");
    else
        done =
            dump_image(batch->plan, session, input->path, directory, reference, batch->inputs->single, report, failure);
    free(directory);
    free(reference);
    return done;
}

static void *work(void *context)
{
    struct batch *batch = context;
    const struct options *options = batch->plan->options;
    swin_session *session = NULL;
    swin_session_params params;
    swin_error error;

    swin_session_params_init(&params, sizeof params);
    params.precision = options->precision;
    params.threads = batch->session_threads;
    params.profile = options->bench > 0;
    if (swin_session_create(batch->plan->model, &params, &session, &error) != SWIN_OK) {
        if (!atomic_exchange(&batch->broken, true))
            fprintf(stderr, "swin-dump: no session could be made: %s\n", error.message);
        return NULL;
    }
    while (!interruption_seen() && !atomic_load(&batch->broken)) {
        const int index = atomic_fetch_add(&batch->next, 1);
        if (index >= batch->inputs->count)
            break;
        const struct input *input = &batch->inputs->items[index];
        struct failure failure;
        char *report = NULL;
        const bool done = process(batch, session, input, &report, &failure);
        batch->failed[index] = !done;
        progress_step(&batch->progress, input->path, report != NULL ? report : "", done ? NULL : &failure);
        free(report);
    }
    swin_session_destroy(session);
    return NULL;
}

static void run_workers(struct batch *batch)
{
    const struct options *options = batch->plan->options;
    const int threads = options->threads > 0 ? options->threads : cpu_count();
    pthread_t workers[MAX_WORKERS];
    int started = 0;
    int wanted = threads < MAX_WORKERS ? threads : MAX_WORKERS;

    if (wanted > batch->inputs->count)
        wanted = batch->inputs->count;
    if (options->bench > 0)
        wanted = 1;
    batch->session_threads = wanted > 1 ? threads / wanted : options->threads;
    while (started < wanted - 1 && pthread_create(&workers[started], NULL, work, batch) == 0)
        started++;
    work(batch);
    for (int i = 0; i < started; i++)
        pthread_join(workers[i], NULL);
}

/* One line with the images that failed. */
static void list_failures(const struct batch *batch)
{
    enum { SHOWN = 20 };
    int shown = 0;
    fprintf(stderr, "swin-dump: %d of %d images failed:", batch->progress.failed, batch->inputs->count);
    for (int i = 0; i < batch->inputs->count && shown < SHOWN; i++) {
        if (!batch->failed[i])
            continue;
        fputs(shown++ > 0 ? ", " : " ", stderr);
        failure_print_name(stderr, batch->inputs->items[i].path);
    }
    if (batch->progress.failed > SHOWN)
        fprintf(stderr, " and %d more", batch->progress.failed - SHOWN);
    fputc('\n', stderr);
}

bool batch_run(const struct plan *plan, const struct inputs *inputs)
{
    struct batch batch = {.plan = plan, .inputs = inputs};
    batch.failed = calloc((size_t)inputs->count, sizeof *batch.failed);
    if (batch.failed == NULL) {
        fprintf(stderr, "swin-dump: no memory for %d images\n", inputs->count);
        return false;
    }
    progress_start(&batch.progress, inputs->count, plan->options->quiet);
    run_workers(&batch);
    progress_finish(&batch.progress);

    const bool all = batch.progress.done == inputs->count && batch.progress.failed == 0;
    if (batch.progress.failed > 0 && inputs->count > 1)
        list_failures(&batch);
    const int good = batch.progress.done - batch.progress.failed;
    if (inputs->count > 1 && !plan->options->quiet && good > 0) {
        printf("%d image%s done", good, good == 1 ? "" : "s");
        if (options_write(plan->options)) {
            fputs(", written to ", stdout);
            failure_print_name(stdout, plan->options->out);
            fputs("/<image name>/", stdout);
        }
        putchar('\n');
    }
    if (inputs->passed_over > 0 && !plan->options->quiet)
        fprintf(stderr, "swin-dump: passed over %d file%s whose name does not end in .png\n", inputs->passed_over,
                inputs->passed_over == 1 ? "" : "s");
    if (interruption_seen() && batch.progress.done < inputs->count)
        fprintf(stderr, "swin-dump: interrupted; %d of %d images were not done\n", inputs->count - batch.progress.done,
                inputs->count);
    free(batch.failed);
    return all;
}
