/* SPDX-License-Identifier: MIT */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/memory.h"

static swin_status fail_errno(swin_error *err, const char *what, const char *path, int number)
{
    char buffer[128];
    return sw_fail(err, number == ENOMEM ? SWIN_ERR_NO_MEMORY : SWIN_ERR_IO, "cannot %s %.300s: %s", what, path,
                   strerror_r(number, buffer, sizeof buffer));
}

swin_status sw_file_open(const char *path, sw_file *file, swin_error *err)
{
    *file = (sw_file){.descriptor = -1};

    /* Without O_NONBLOCK the opening of a pipe would wait for a writer; on regular files it means nothing. */
    int descriptor;
    do {
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0)
        return fail_errno(err, "open", path, errno);

    swin_status status;
    struct stat info;
    if (fstat(descriptor, &info) != 0) {
        status = fail_errno(err, "examine", path, errno);
        goto fail;
    }
    if (!S_ISREG(info.st_mode)) {
        status = sw_fail(err, SWIN_ERR_IO, "%.300s is %s, expected a regular file", path,
                         S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
        goto fail;
    }
    file->path = sw_copy_string(path, strlen(path));
    if (file->path == NULL) {
        status = sw_fail_memory(err, strlen(path) + 1, "the name of a file");
        goto fail;
    }
    file->descriptor = descriptor;
    file->size = (uint64_t)info.st_size;
    file->modified = info.st_mtim;
    return SWIN_OK;

fail:
    close(descriptor);
    return status;
}

void sw_file_close(sw_file *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    sw_free(file->path);
    *file = (sw_file){.descriptor = -1};
}

swin_status sw_file_read(const sw_file *file, uint64_t offset, void *dst, size_t bytes, swin_error *err)
{
    if (offset > file->size || bytes > file->size - offset)
        return sw_fail(err, SWIN_ERR_IO, "cannot read %zu bytes at %llu of %.200s: it has %llu bytes", bytes,
                       (unsigned long long)offset, file->path, (unsigned long long)file->size);
    char *p = dst;
    size_t left = bytes;
    while (left > 0) {
        const ssize_t got = pread(file->descriptor, p, left, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(err, "read", file->path, errno);
        if (got == 0)
            return sw_fail(err, SWIN_ERR_IO,
                           "%.300s has shrunk since it was opened: it ends at %llu, expected %llu bytes", file->path,
                           (unsigned long long)offset, (unsigned long long)file->size);
        p += got;
        left -= (size_t)got;
        offset += (uint64_t)got;
    }
    return SWIN_OK;
}

swin_status sw_file_check_unchanged(const sw_file *file, swin_error *err)
{
    struct stat info;
    if (fstat(file->descriptor, &info) != 0)
        return fail_errno(err, "examine", file->path, errno);
    if ((uint64_t)info.st_size != file->size)
        return sw_fail(err, SWIN_ERR_IO, "%.300s has changed since it was opened: it has %llu bytes, expected %llu",
                       file->path, (unsigned long long)info.st_size, (unsigned long long)file->size);
    if (info.st_mtim.tv_sec != file->modified.tv_sec || info.st_mtim.tv_nsec != file->modified.tv_nsec)
        return sw_fail(err, SWIN_ERR_IO, "%.300s has been written to since it was opened", file->path);
    return SWIN_OK;
}

swin_status sw_file_load(const char *path, size_t limit, char **text, size_t *length, swin_error *err)
{
    *text = NULL;
    *length = 0;
    sw_file file;
    SW_TRY(sw_file_open(path, &file, err));
    swin_status status;
    char *buffer = NULL;
    if (file.size > limit) {
        status = sw_fail(err, SWIN_ERR_LIMIT, "%.300s has %llu bytes, expected at most %zu", path,
                         (unsigned long long)file.size, limit);
        goto fail;
    }
    buffer = sw_alloc((size_t)file.size + 1, 1);
    if (buffer == NULL) {
        status = sw_fail_memory(err, (size_t)file.size + 1, "a text file");
        goto fail;
    }
    SW_TRY_OR_FAIL(sw_file_read(&file, 0, buffer, (size_t)file.size, err));
    buffer[file.size] = '\0';
    *text = buffer;
    *length = (size_t)file.size;
    sw_file_close(&file);
    return SWIN_OK;

fail:
    sw_free(buffer);
    sw_file_close(&file);
    return status;
}
