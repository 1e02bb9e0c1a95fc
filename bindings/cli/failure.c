/* SPDX-License-Identifier: MIT */
#include "failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7f;
}

bool failure_set(struct failure *failure, const char *format, ...)
{
    char text[sizeof failure->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++) {
        if (is_control(*p))
            *p = '?';
    }
    memcpy(failure->text, text, sizeof text);
    return false;
}

bool failure_no_memory(struct failure *failure, unsigned long long bytes, const char *what)
{
    return failure_set(failure, "no memory for %s (%llu bytes); use a smaller image, --size or fewer --levels", what,
                       bytes);
}

void failure_print_name(FILE *stream, const char *name)
{
    for (const unsigned char *p = (const unsigned char *)name; *p != '\0'; p++)
        fputc(is_control(*p) ? '?' : *p, stream);
}

const char *failure_of_errno(int error)
{
    static const struct {
        int error;
        const char *text;
    } known[] = {
        {ENOENT, "no such file or directory; check the path"},
        {EACCES, "permission denied; check the permissions or choose another place"},
        {EPERM, "not permitted; choose another place"},
        {EROFS, "the file system is read-only; choose another place with --out"},
        {ENOSPC, "the disk is full; free some space or choose another place with --out"},
        {EDQUOT, "the disk quota is used up; free some space or choose another place with --out"},
        {EFBIG, "the file would be too large here; choose another place with --out"},
        {ENOTDIR, "a part of the path is a file, not a directory; choose another place"},
        {EISDIR, "is a directory; move it away or choose another place"},
        {EEXIST, "exists already and is not a directory; choose another place with --out"},
        {EMFILE, "too many open files; raise the limit with ulimit -n"},
        {ENAMETOOLONG, "the name is too long; choose a shorter one"},
        {ELOOP, "too many symbolic links; check the path"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].error == error)
            return known[i].text;
    }
    return strerror(error);
}
