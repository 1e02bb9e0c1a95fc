/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[64];

int place_set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/swin-cli-XXXXXX");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

int place_tear_down(void **state)
{
    (void)state;
    return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *place_path(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s%s%s", root, *name != '\0' ? "/" : "", name);
    return path;
}

void place_write(const char *name, const void *bytes, size_t count)
{
    FILE *stream = fopen(place_path(name), "wb");
    if (stream == NULL || fwrite(bytes, 1, count, stream) != count || fclose(stream) != 0) {
        perror(name);
        abort();
    }
}

void place_write_text(const char *name, const char *text)
{
    place_write(name, text, strlen(text));
}

char *place_read(const char *path, size_t *count)
{
    FILE *stream = fopen(path, "rb");
    char *bytes = NULL;
    size_t capacity = 0;
    *count = 0;
    if (stream == NULL)
        return NULL;
    do {
        capacity += 1 << 16;
        bytes = realloc(bytes, capacity + 1);
        if (bytes == NULL)
            abort();
        *count += fread(bytes + *count, 1, capacity - *count, stream);
    } while (*count == capacity);
    fclose(stream);
    bytes[*count] = '\0';
    return bytes;
}

int place_count(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;
    const struct dirent *entry;
    if (directory == NULL)
        return -1;
    while ((entry = readdir(directory)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return count;
}
