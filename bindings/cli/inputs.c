/* SPDX-License-Identifier: MIT */
#include "inputs.h"

#include <dirent.h>
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static int compare_names(const void *left, const void *right)
{
    return strcmp(left, right);
}

/* Takes over nothing; false without memory. */
static bool add(struct inputs *inputs, const char *path, const char *problem)
{
    struct input *items = realloc(inputs->items, ((size_t)inputs->count + 1) * sizeof *items);
    if (items == NULL)
        return false;
    inputs->items = items;
    struct input *item = &items[inputs->count++];
    *item = (struct input){.path = strdup(path), .problem = problem != NULL ? strdup(problem) : NULL};
    return item->path != NULL && (problem == NULL || item->problem != NULL);
}

static bool has_png_suffix(const char *name)
{
    const size_t length = strlen(name);
    return length >= 4 && strcasecmp(name + length - 4, ".png") == 0;
}

static int is_png(const struct dirent *entry)
{
    return has_png_suffix(entry->d_name) && entry->d_name[0] != '.';
}

static int is_other_file(const struct dirent *entry)
{
    return entry->d_type != DT_DIR && entry->d_name[0] != '.' && !has_png_suffix(entry->d_name);
}

static int by_name(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

static bool add_problem(struct inputs *inputs, const char *path, const char *problem)
{
    struct failure failure;
    failure_set(&failure, "%s: %s", path, problem);
    return add(inputs, path, failure.text);
}

static int count_other_files(const char *path)
{
    struct dirent **entries = NULL;
    const int count = scandir(path, &entries, is_other_file, by_name);
    if (count < 0)
        return 0;
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return count;
}

static bool add_directory(struct inputs *inputs, const char *path)
{
    struct dirent **entries = NULL;
    inputs->passed_over += count_other_files(path);
    const int count = scandir(path, &entries, is_png, by_name);
    bool done = true;
    if (count < 0)
        return add_problem(inputs, path, failure_of_errno(errno));
    if (count == 0)
        done = add_problem(inputs, path, "there is no .png file in this directory; name another one");
    for (int i = 0; i < count; i++) {
        char *inside = NULL;
        const size_t length = strlen(path);
        if (asprintf(&inside, "%s%s%s", path, path[length - 1] == '/' ? "" : "/", entries[i]->d_name) < 0)
            inside = NULL;
        done = done && inside != NULL && add(inputs, inside, NULL);
        free(inside);
        free(entries[i]);
    }
    free(entries);
    return done;
}

static void keep(void *name)
{
    (void)name;
}

/* File name without .png, numbered from the second of a kind on. */
static char *unique_name(const char *path, void **names)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    size_t length = strlen(base);
    if (has_png_suffix(base))
        length -= 4;
    /* ".png", "..png" and "...png" too: their names would be the output directory itself, and the one above it. */
    if (strspn(base, ".") >= length && length <= 2) {
        base = "image";
        length = strlen(base);
    }
    for (unsigned number = 1;; number++) {
        char *name = NULL;
        const int result = number == 1 ? asprintf(&name, "%.*s", (int)length, base)
                                       : asprintf(&name, "%.*s-%u", (int)length, base, number);
        if (result < 0)
            return NULL;
        char **found = tsearch(name, names, compare_names);
        if (found != NULL && *found == name)
            return name;
        free(name);
        if (found == NULL)
            return NULL;
    }
}

bool inputs_collect(struct inputs *inputs, char **paths, int count, struct failure *failure)
{
    void *names = NULL;
    bool done = true;
    *inputs = (struct inputs){0};
    for (int i = 0; i < count && done; i++) {
        struct stat status;
        const bool directory = stat(paths[i], &status) == 0 && S_ISDIR(status.st_mode);
        inputs->single = count == 1 && !directory;
        done = directory ? add_directory(inputs, paths[i]) : add(inputs, paths[i], NULL);
    }
    for (int i = 0; i < inputs->count && done; i++) {
        inputs->items[i].name = unique_name(inputs->items[i].path, &names);
        done = inputs->items[i].name != NULL;
    }
    tdestroy(names, keep);
    if (!done) {
        inputs_destroy(inputs);
        return failure_set(failure, "no memory for the list of images; name fewer");
    }
    return true;
}

void inputs_destroy(struct inputs *inputs)
{
    for (int i = 0; i < inputs->count; i++) {
        free(inputs->items[i].path);
        free(inputs->items[i].name);
        free(inputs->items[i].problem);
    }
    free(inputs->items);
    *inputs = (struct inputs){0};
}
