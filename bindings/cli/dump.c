/* SPDX-License-Identifier: MIT */
#include "dump.h"

#include <stdlib.h>
#include <string.h>

#include "gallery.h"
#include "npy.h"
#include "summary.h"

static bool write_map(const struct feature_map *map, struct output *output, struct failure *failure)
{
    const swin_output_info *info = &map->info;
    const struct npy_shape shape = map->nhwc ? (struct npy_shape){4, {1, info->height, info->width, info->channels}}
                                             : (struct npy_shape){4, {1, info->channels, info->height, info->width}};
    char name[32];
    snprintf(name, sizeof name, "c%d.npy", info->level + 2);
    FILE *stream = output_begin(output, name, failure);
    return stream != NULL && npy_write(stream, output_path(output), &shape, map->data, failure) &&
           output_end(output, failure);
}

/* What was measured on the way. */
struct findings {
    struct verification verification;
    struct bench bench;
    struct attention attention;
    bool verified, timed, attended;
};

static bool write_files(const struct plan *plan, const struct image_run *run, const struct findings *findings,
                        const char *directory, FILE *report, struct failure *failure)
{
    const struct options *options = plan->options;
    struct output output = {0};
    if (!options_write(options))
        return true;
    if (!output_open(&output, directory, failure))
        return false;
    bool done = true;
    for (int i = 0; i < run->level_count && done && options->npy; i++)
        done = write_map(&run->levels[i], &output, failure);
    if (done && options->png)
        done = gallery_write(plan, run, &output, failure);
    if (done && findings->attended)
        done = attention_write(&findings->attention, &output, failure) &&
               gallery_write_attention(plan, run, &findings->attention, &output, failure);
    if (done && options->json)
        done = summary_write(plan, run, findings->verified ? &findings->verification : NULL,
                             findings->timed ? &findings->bench : NULL,
                             findings->attended ? &findings->attention : NULL, &output, failure);
    done = done && output_commit(&output, failure);
    if (done && report != NULL) {
        fputs("written  ", report);
        failure_print_name(report, directory);
        fputc(':', report);
        for (int i = 0; i < output.count; i++)
            fprintf(report, " %s", strrchr(output.files[i].path, '/') + 1);
        fputc('\n', report);
    }
    output_close(&output);
    return done;
}

/* Takes the line feed off the end. */
static bool finish_report(FILE *stream, char **report, size_t *length)
{
    if (stream == NULL || fclose(stream) != 0) {
        free(*report);
        *report = NULL;
        return false;
    }
    while (*length > 0 && (*report)[*length - 1] == '\n')
        (*report)[--*length] = '\0';
    return true;
}

bool dump_image(const struct plan *plan, swin_session *session, const char *path, const char *directory,
                const char *reference, bool single, char **report, struct failure *failure)
{
    const struct options *options = plan->options;
    struct image_run run;
    struct findings findings = {0};
    size_t length = 0;
    bool done;

    *report = NULL;
    FILE *stream = open_memstream(report, &length);
    if (stream == NULL)
        return failure_no_memory(failure, 1, "a report");
    done = image_run_create(&run, plan, path, failure);
    if (done) {
        done = (reference == NULL || verify_check(&run, reference, failure)) &&
               image_run_compute(&run, plan, session, failure);
        if (done && options->attention)
            done = findings.attended = attention_create(&findings.attention, plan, &run, session, failure);
        const bool talk = !options->quiet && (single || options->bench > 0 || reference != NULL);
        if (done && talk) {
            summary_print(plan, &run, stream);
            if (findings.attended)
                attention_print(&findings.attention, stream);
        }
        if (done && reference != NULL) {
            done = findings.verified = verify_run(&findings.verification, &run, reference, failure);
            if (done && talk)
                verify_print(&findings.verification, stream);
        }
        if (done && options->bench > 0) {
            done = findings.timed = bench_run(&findings.bench, &run, plan, session, options->bench, failure);
            if (done)
                bench_print(&findings.bench, &run, stream);
        }
        done = done && write_files(plan, &run, &findings, directory, talk ? stream : NULL, failure);
        /* Written all the same: what is beyond the tolerance wants to be looked at. */
        done = done && (!findings.verified || verify_judge(&findings.verification, &run, reference, failure));
        attention_destroy(&findings.attention);
        image_run_destroy(&run);
    }
    if (!finish_report(stream, report, &length) && done)
        return failure_no_memory(failure, length, "a report");
    return done;
}
