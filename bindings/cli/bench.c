/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "interruption.h"
#include "json_value.h"

static const char *const stage_parts[BENCH_STAGE_PARTS] = {"blocks", "level output", "patch merging"};

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

struct bench_part bench_summarise(double *samples, int32_t count)
{
    qsort(samples, (size_t)count, sizeof *samples, by_size);
    const double median = count % 2 == 1 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
    return (struct bench_part){samples[0], median};
}

static void take_sample(double *samples, int32_t run, int32_t runs, const swin_profile *profile)
{
    samples[BENCH_PATCH_EMBEDDING * runs + run] = profile->patch_embed_ms;
    samples[BENCH_TOTAL * runs + run] = profile->total_ms;
    for (int s = 0; s < SWIN_MAX_STAGES; s++) {
        const double parts[BENCH_STAGE_PARTS] = {profile->blocks_ms[s], profile->output_ms[s],
                                                 profile->patch_merge_ms[s]};
        for (int part = 0; part < BENCH_STAGE_PARTS; part++)
            samples[(BENCH_STAGE + s * BENCH_STAGE_PARTS + part) * runs + run] = parts[part];
    }
}

/* Sums of a stage's parts go behind the parts. */
static void add_stages(double *samples, int32_t runs)
{
    for (int s = 0; s < SWIN_MAX_STAGES; s++) {
        for (int32_t run = 0; run < runs; run++) {
            double sum = 0;
            for (int part = 0; part < BENCH_STAGE_PARTS; part++)
                sum += samples[(BENCH_STAGE + s * BENCH_STAGE_PARTS + part) * runs + run];
            samples[(BENCH_PARTS + s) * runs + run] = sum;
        }
    }
}

static uint64_t peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

bool bench_run(struct bench *bench, struct image_run *run, const struct plan *plan, swin_session *session, int32_t runs,
               struct failure *failure)
{
    const size_t count = (size_t)runs * (BENCH_PARTS + SWIN_MAX_STAGES);
    double *samples = malloc(count * sizeof *samples);
    swin_profile profile = {0};
    swin_error error;
    bool done = false;

    *bench = (struct bench){.runs = runs};
    if (samples == NULL)
        return failure_no_memory(failure, count * sizeof *samples, "timings");
    for (int32_t i = 0; i < runs; i++) {
        if (interruption_seen()) {
            failure_set(failure, "%s: interrupted after %d of %d runs", run->path, i, runs);
            goto out;
        }
        if (!image_run_compute(run, plan, session, failure))
            goto out;
        if (swin_session_get_profile(session, &profile, sizeof profile, &error) != SWIN_OK) {
            failure_set(failure, "%s: %s", run->path, error.message);
            goto out;
        }
        take_sample(samples, i, runs, &profile);
    }
    add_stages(samples, runs);
    for (int part = 0; part < BENCH_PARTS; part++)
        bench->parts[part] = bench_summarise(samples + (size_t)part * (size_t)runs, runs);
    for (int s = 0; s < SWIN_MAX_STAGES; s++)
        bench->stages[s] = bench_summarise(samples + (size_t)(BENCH_PARTS + s) * (size_t)runs, runs);
    for (int s = 0; s <= SWIN_MAX_STAGES; s++)
        bench->gflop[s] = profile.gflop[s];
    bench->stage_count = run->level_count > 0 ? run->levels[run->level_count - 1].info.level + 1 : 0;
    bench->peak_bytes = peak_bytes();
    done = true;

out:
    free(samples);
    return done;
}

static double rate(double gflop, double milliseconds)
{
    return milliseconds > 0 ? gflop / milliseconds * 1e3 : 0;
}

static void print_row(FILE *stream, const char *name, struct bench_part part, double gflop, double total)
{
    fprintf(stream, "         %-17s %9.3f  %9.3f  %5.1f %%", name, part.least, part.median,
            total > 0 ? 100 * part.median / total : 0);
    if (gflop > 0)
        fprintf(stream, "  %8.3f  %8.1f", gflop, rate(gflop, part.median));
    fputc('\n', stream);
}

void bench_print(const struct bench *bench, const struct image_run *run, FILE *stream)
{
    const double total = bench->parts[BENCH_TOTAL].median;
    double gflop = bench->gflop[0];

    fprintf(stream, "bench    part                 min ms  median ms    share     GFLOP   GFLOP/s\n");
    print_row(stream, "patch embedding", bench->parts[BENCH_PATCH_EMBEDDING], bench->gflop[0], total);
    for (int s = 0; s < bench->stage_count; s++) {
        char name[32];
        snprintf(name, sizeof name, "stage %d (c%d)", s, s + 2);
        print_row(stream, name, bench->stages[s], bench->gflop[s + 1], total);
        gflop += bench->gflop[s + 1];
        for (int part = 0; part < BENCH_STAGE_PARTS; part++) {
            const struct bench_part *times = &bench->parts[BENCH_STAGE + s * BENCH_STAGE_PARTS + part];
            snprintf(name, sizeof name, "  %s", stage_parts[part]);
            if (times->median > 0)
                print_row(stream, name, *times, 0, total);
        }
    }
    print_row(stream, "total", bench->parts[BENCH_TOTAL], gflop, total);
    fprintf(
        stream,
        "         %d run%s after one to warm up, %d thread%s; memory: peak %.1f MB, weights %.1f MB, session %.1f MB\n",
        bench->runs, bench->runs == 1 ? "" : "s", run->session.threads, run->session.threads == 1 ? "" : "s",
        (double)bench->peak_bytes / 1e6, (double)run->session.weight_bytes / 1e6,
        (double)run->session.scratch_bytes / 1e6);
}

static json_t *part_json(struct bench_part part)
{
    return json_pack("{s:o, s:o}", "min_ms", json_value_number(part.least), "median_ms",
                     json_value_number(part.median));
}

json_t *bench_json(const struct bench *bench)
{
    json_t *stages = json_array();
    for (int s = 0; s < bench->stage_count && stages != NULL; s++) {
        const struct bench_part *parts = &bench->parts[BENCH_STAGE + s * BENCH_STAGE_PARTS];
        json_t *stage =
            json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "stage", s, "all", part_json(bench->stages[s]), "blocks",
                      part_json(parts[0]), "output", part_json(parts[1]), "patch_merging", part_json(parts[2]), "gflop",
                      json_value_number(bench->gflop[s + 1]), "gflop_per_second",
                      json_value_number(rate(bench->gflop[s + 1], bench->stages[s].median)));
        if (json_array_append_new(stages, stage) != 0) {
            json_decref(stages);
            stages = NULL;
        }
    }
    return json_pack("{s:i, s:o, s:o, s:f, s:o, s:I}", "runs", bench->runs, "total",
                     part_json(bench->parts[BENCH_TOTAL]), "patch_embedding",
                     part_json(bench->parts[BENCH_PATCH_EMBEDDING]), "patch_embedding_gflop", bench->gflop[0], "stages",
                     stages, "peak_bytes", (json_int_t)bench->peak_bytes);
}
