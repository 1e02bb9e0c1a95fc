/* SPDX-License-Identifier: MIT */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *joined(const char *directory, const char *format, const char *name, unsigned number)
{
    char *path = NULL;
    char *tail = NULL;
    if (asprintf(&tail, format, name, (long)getpid(), number) < 0)
        return NULL;
    const size_t length = strlen(directory);
    if (asprintf(&path, "%s%s%s", directory, length > 0 && directory[length - 1] == '/' ? "" : "/", tail) < 0)
        path = NULL;
    free(tail);
    return path;
}

/* mkdir -p, noting how much of the path was there. A directory made by another worker meanwhile is fine. */
static bool make_directories(struct output *output, struct failure *failure)
{
    char *path = output->directory;
    const size_t length = strlen(path);
    bool made = false;
    for (size_t end = 1; end <= length; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        const char kept = path[end];
        path[end] = '\0';
        const int result = mkdir(path, 0777);
        const int error = errno;
        struct stat status;
        const bool there = result != 0 && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
        if (result != 0 && !there) {
            failure_set(failure, "%s: cannot be made a directory: %s", path, failure_of_errno(error));
            path[end] = kept;
            return false;
        }
        made = made || !there;
        if (!made)
            output->existing = end;
        path[end] = kept;
    }
    return true;
}

/* Only empty directories go; one that another worker uses stays. */
static void remove_directories(struct output *output)
{
    size_t length = strlen(output->directory);
    while (length > output->existing && rmdir(output->directory) == 0) {
        while (length > output->existing && output->directory[length - 1] != '/')
            length--;
        while (length > output->existing && output->directory[length - 1] == '/')
            length--;
        output->directory[length] = '\0';
    }
}

/* Of the directory, or the nearest one above it that is there. */
static bool probe(char *path, struct failure *failure)
{
    struct stat status;
    while (stat(path, &status) != 0) {
        if (errno != ENOENT)
            return failure_set(failure, "%s: cannot be made a directory: %s", path, failure_of_errno(errno));
        const char *above = dirname(path);
        memmove(path, above, strlen(above) + 1);
    }
    if (!S_ISDIR(status.st_mode))
        return failure_set(failure, "%s: cannot be made a directory: %s", path, failure_of_errno(EEXIST));
    if (access(path, W_OK | X_OK) != 0)
        return failure_set(failure, "%s: cannot be written to: %s", path, failure_of_errno(errno));
    return true;
}

bool output_probe(const char *directory, struct failure *failure)
{
    char *path = strdup(directory);
    if (path == NULL)
        return failure_no_memory(failure, strlen(directory), "a path");
    const bool done = probe(path, failure);
    free(path);
    return done;
}

bool output_open(struct output *output, const char *directory, struct failure *failure)
{
    *output = (struct output){.directory = strdup(directory)};
    if (output->directory == NULL)
        return failure_no_memory(failure, strlen(directory), "a path");
    if (!make_directories(output, failure)) {
        output_close(output);
        return false;
    }
    return true;
}

FILE *output_begin(struct output *output, const char *name, struct failure *failure)
{
    static atomic_uint number;
    struct output_file *file = &output->files[output->count];

    file->path = joined(output->directory, "%s", name, 0);
    if (file->path == NULL) {
        failure_no_memory(failure, strlen(name), "a path");
        return NULL;
    }
    int descriptor = -1;
    do {
        free(file->temporary);
        file->temporary = joined(output->directory, ".%s.%ld-%u.tmp", name, atomic_fetch_add(&number, 1));
        if (file->temporary == NULL)
            break;
        descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor < 0 && errno == EEXIST);
    output->stream = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    if (output->stream == NULL) {
        failure_set(failure, "%s: cannot be created: %s", file->path, failure_of_errno(errno));
        if (descriptor >= 0) {
            close(descriptor);
            unlink(file->temporary);
        }
        free(file->path);
        free(file->temporary);
        *file = (struct output_file){0};
        return NULL;
    }
    output->count++;
    return output->stream;
}

const char *output_path(const struct output *output)
{
    return output->files[output->count - 1].path;
}

bool output_end(struct output *output, struct failure *failure)
{
    const bool written = fflush(output->stream) == 0 && !ferror(output->stream);
    const int error = errno;
    const bool closed = fclose(output->stream) == 0;
    output->stream = NULL;
    if (!written || !closed)
        return failure_set(failure, "%s: cannot be written: %s", output_path(output),
                           failure_of_errno(written ? errno : error));
    return true;
}

bool output_commit(struct output *output, struct failure *failure)
{
    for (int i = 0; i < output->count; i++) {
        struct output_file *file = &output->files[i];
        if (rename(file->temporary, file->path) != 0)
            return failure_set(failure, "%s: cannot be written: %s", file->path, failure_of_errno(errno));
        free(file->temporary);
        file->temporary = NULL;
    }
    return true;
}

void output_close(struct output *output)
{
    if (output->stream != NULL)
        fclose(output->stream);
    for (int i = 0; i < output->count; i++) {
        if (output->files[i].temporary != NULL)
            unlink(output->files[i].temporary);
        free(output->files[i].path);
        free(output->files[i].temporary);
    }
    if (output->directory != NULL)
        remove_directories(output);
    free(output->directory);
    *output = (struct output){0};
}
