/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void target_fail(const char *condition)
{
    fprintf(stderr, "not so: %s\n", condition);
    abort();
}

static int memory = -1;

static void write_all(int descriptor, const void *bytes, size_t count)
{
    for (const char *p = bytes; count > 0;) {
        const ssize_t written = write(descriptor, p, count);
        TARGET_REQUIRE(written > 0);
        p += written;
        count -= (size_t)written;
    }
}

void target_memory_write(const void *bytes, size_t count)
{
    if (memory < 0)
        memory = memfd_create("input", MFD_CLOEXEC);
    TARGET_REQUIRE(memory >= 0 && ftruncate(memory, 0) == 0 && lseek(memory, 0, SEEK_SET) == 0);
    write_all(memory, bytes, count);
}

const char *target_memory_path(void)
{
    static char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    return path;
}

static char directory[64];

void target_files_remove(void)
{
    if (directory[0] == '\0')
        return;
    DIR *entries = opendir(directory);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries != NULL)
        closedir(entries);
}

static void remove_all(void)
{
    target_files_remove();
    rmdir(directory);
}

const char *target_file(const char *name, const void *bytes, size_t count)
{
    static char paths[4][512];
    static unsigned next;
    if (directory[0] == '\0') {
        const bool shm = access("/dev/shm", W_OK) == 0;
        snprintf(directory, sizeof directory, "%s/swin-fuzz-XXXXXX", shm ? "/dev/shm" : "/tmp");
        TARGET_REQUIRE(mkdtemp(directory) != NULL);
        atexit(remove_all);
    }
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    TARGET_REQUIRE(descriptor >= 0);
    write_all(descriptor, bytes, count);
    close(descriptor);
    return path;
}
