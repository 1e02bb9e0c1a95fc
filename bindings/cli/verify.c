/* SPDX-License-Identifier: MIT */
#include "verify.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json_value.h"
#include "npy.h"

static const double f32_l2 = 1e-5;
static const double f32_max = 1e-4;
static const double bf16_l2 = 1.5e-2;
static const double bf16_cosine = 0.9998;

struct comparison verify_compare(const float *values, const double *reference, size_t count, bool bf16)
{
    struct comparison result = {.level = 0};
    double differences = 0;
    double squares = 0;
    double references = 0;
    double products = 0;
    bool finite = true;

    for (size_t i = 0; i < count; i++) {
        const double value = (double)values[i];
        const double difference = value - reference[i];
        differences += difference * difference;
        squares += value * value;
        references += reference[i] * reference[i];
        products += value * reference[i];
        result.max_difference = fmax(result.max_difference, fabs(difference));
        result.max_reference = fmax(result.max_reference, fabs(reference[i]));
        finite = finite && isfinite(difference);
    }
    if (!finite)
        result.max_difference = NAN;
    /* Nothing against nothing is the same. */
    result.relative_l2 = differences > 0 || !finite ? sqrt(differences / references) : 0;
    result.cosine = squares > 0 && references > 0 ? products / sqrt(squares * references) : differences > 0 ? 0 : 1;
    result.within =
        finite && (bf16 ? result.relative_l2 <= bf16_l2 && result.cosine >= bf16_cosine
                        : result.relative_l2 <= f32_l2 && result.max_difference <= f32_max * result.max_reference);
    return result;
}

/* The map's own shape, or that without the batch dimension. */
static bool same_shape(const struct npy_shape *found, const struct npy_shape *wanted)
{
    const int skipped = wanted->dimensions - found->dimensions;
    return (skipped == 0 || skipped == 1) &&
           memcmp(found->size, wanted->size + skipped, (size_t)found->dimensions * sizeof found->size[0]) == 0;
}

static char *reference_path(const char *directory, int32_t level, struct failure *failure)
{
    char *path = NULL;
    if (asprintf(&path, "%s/c%d.npy", directory, level + 2) >= 0)
        return path;
    failure_no_memory(failure, strlen(directory), "a path");
    return NULL;
}

bool verify_probe(const struct options *options, bool single, struct failure *failure)
{
    struct stat status;
    if (stat(options->verify, &status) != 0 || !S_ISDIR(status.st_mode))
        return failure_set(failure, "%s: no directory with .npy files to compare with; give one to --verify",
                           options->verify);
    for (int32_t level = 0; single && level < SWIN_MAX_STAGES; level++) {
        /* How many levels the model has is not known yet. */
        if (options->levels_given ? !options->levels[level] : level > 0)
            continue;
        char *path = reference_path(options->verify, level, failure);
        const bool there = path != NULL && access(path, R_OK) == 0;
        if (path != NULL && !there)
            failure_set(failure, "%s: cannot be opened: %s", path, failure_of_errno(errno));
        free(path);
        if (!there)
            return false;
    }
    return true;
}

static struct npy_shape shape_of(const struct feature_map *map)
{
    const swin_output_info *info = &map->info;
    return map->nhwc ? (struct npy_shape){4, {1, info->height, info->width, info->channels}}
                     : (struct npy_shape){4, {1, info->channels, info->height, info->width}};
}

static bool check_shape(const struct npy_shape *found, const struct feature_map *map, const char *path,
                        struct failure *failure)
{
    const struct npy_shape wanted = shape_of(map);
    char found_text[NPY_SHAPE_TEXT];
    char wanted_text[NPY_SHAPE_TEXT];
    return same_shape(found, &wanted) ||
           failure_set(failure, "%s: has shape %s, this image gives %s; compare the same --size, --layout and model",
                       path, npy_shape_text(found, found_text), npy_shape_text(&wanted, wanted_text));
}

bool verify_check(const struct image_run *run, const char *directory, struct failure *failure)
{
    bool fits = true;
    for (int i = 0; i < run->level_count && fits; i++) {
        struct npy_shape shape;
        char *path = reference_path(directory, run->levels[i].info.level, failure);
        fits = path != NULL && npy_probe(path, &shape, failure) && check_shape(&shape, &run->levels[i], path, failure);
        free(path);
    }
    return fits;
}

static bool compare_level(struct comparison *result, const struct feature_map *map, const char *path, bool bf16,
                          struct failure *failure)
{
    struct npy_array reference;
    if (!npy_read(path, &reference, failure))
        return false;
    const bool fits = check_shape(&reference.shape, map, path, failure);
    if (fits) {
        *result = verify_compare(map->data, reference.values, reference.count, bf16);
        result->level = map->info.level;
    }
    npy_destroy(&reference);
    return fits;
}

bool verify_run(struct verification *verification, const struct image_run *run, const char *directory,
                struct failure *failure)
{
    *verification = (struct verification){.bf16 = run->session.precision == SWIN_PRECISION_BF16};
    for (int i = 0; i < run->level_count; i++) {
        char *path = reference_path(directory, run->levels[i].info.level, failure);
        const bool done =
            path != NULL && compare_level(&verification->levels[i], &run->levels[i], path, verification->bf16, failure);
        free(path);
        if (!done)
            return false;
        verification->count++;
    }
    return true;
}

bool verify_judge(const struct verification *verification, const struct image_run *run, const char *directory,
                  struct failure *failure)
{
    char levels[64] = "";
    for (int i = 0; i < verification->count; i++) {
        const size_t used = strlen(levels);
        if (!verification->levels[i].within)
            snprintf(levels + used, sizeof levels - used, "%sc%d", used > 0 ? ", " : "",
                     verification->levels[i].level + 2);
    }
    if (*levels == '\0')
        return true;
    return failure_set(
        failure,
        "%s: %s beyond the %s tolerance of the maps in %s; check weights, --lineage, --image-size, --window, "
        "--mean and --std",
        run->path, levels, verification->bf16 ? "bf16" : "f32", directory);
}

void verify_print(const struct verification *verification, FILE *stream)
{
    fprintf(stream, "verify   level      max|d|   max|ref|  relative L2     cosine\n");
    for (int i = 0; i < verification->count; i++) {
        const struct comparison *level = &verification->levels[i];
        fprintf(stream, "         c%d      %9.3g  %9.3g    %9.3g  %9.7f   %s\n", level->level + 2,
                level->max_difference, level->max_reference, level->relative_l2, level->cosine,
                level->within ? "ok" : "BEYOND TOLERANCE");
    }
    if (verification->bf16)
        fprintf(stream, "         bf16 tolerance: relative L2 <= %g and cosine >= %g\n", bf16_l2, bf16_cosine);
    else
        fprintf(stream, "         f32 tolerance: relative L2 <= %g and max|d| <= %g max|ref|\n", f32_l2, f32_max);
}

json_t *verify_json(const struct verification *verification)
{
    json_t *levels = json_array();
    for (int i = 0; i < verification->count && levels != NULL; i++) {
        const struct comparison *level = &verification->levels[i];
        json_t *entry =
            json_pack("{s:i, s:o, s:o, s:o, s:o, s:b}", "level", level->level, "max_difference",
                      json_value_number(level->max_difference), "max_reference",
                      json_value_number(level->max_reference), "relative_l2", json_value_number(level->relative_l2),
                      "cosine", json_value_number(level->cosine), "within", level->within);
        if (json_array_append_new(levels, entry) != 0) {
            json_decref(levels);
            return NULL;
        }
    }
    return levels;
}
