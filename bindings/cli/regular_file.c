/* SPDX-License-Identifier: MIT */
#include "regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *regular_file_open(const char *path, struct failure *failure)
{
    struct stat status;
    FILE *stream = NULL;
    /* Without O_NONBLOCK the opening of a pipe would wait for a writer; on regular files it means nothing. */
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0 && fstat(descriptor, &status) == 0) {
        if (S_ISREG(status.st_mode)) {
            stream = fdopen(descriptor, "rb");
        } else if (!S_ISDIR(status.st_mode)) {
            close(descriptor);
            failure_set(failure, "%s: is a pipe or device, not a file; name a file", path);
            return NULL;
        } else {
            errno = EISDIR;
        }
    }
    if (stream == NULL) {
        failure_set(failure, "%s: cannot be opened: %s", path, failure_of_errno(errno));
        if (descriptor >= 0)
            close(descriptor);
    }
    return stream;
}
