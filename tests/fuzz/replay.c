/* SPDX-License-Identifier: MIT */
/*
 * Gives a target every file of the directories named: where there is no libFuzzer, a corpus is an ordinary test.
 *
 *   replay_TARGET DIRECTORY...
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)data;
    (void)size;
    (void)max_size;
    abort();
}

/* Exactly as large as the file, so that a sanitizer sees what is read behind it. */
static uint8_t *load(const char *path, size_t *size)
{
    FILE *stream = fopen(path, "rb");
    if (stream == NULL || fseek(stream, 0, SEEK_END) != 0)
        return NULL;
    *size = (size_t)ftell(stream);
    uint8_t *bytes = malloc(*size + (*size == 0));
    rewind(stream);
    if (bytes == NULL || fread(bytes, 1, *size, stream) != *size)
        exit(99);
    fclose(stream);
    return bytes;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **entries;
        const int found = scandir(argv[i], &entries, NULL, alphasort);
        for (int k = 0; k < found; k++) {
            char path[4096];
            size_t size;
            snprintf(path, sizeof path, "%s/%s", argv[i], entries[k]->d_name);
            if (entries[k]->d_name[0] != '.') {
                /* Said beforehand: the last line names the file that ended the program. */
                printf("%s\n", path);
                fflush(stdout);
                uint8_t *bytes = load(path, &size);
                if (bytes == NULL)
                    return 99;
                LLVMFuzzerTestOneInput(bytes, size);
                free(bytes);
                count++;
            }
            free(entries[k]);
        }
        if (found < 0) {
            perror(argv[i]);
            return 99;
        }
        free(entries);
    }
    printf("%d inputs\n", count);
    return count > 0 ? 0 : 99;
}
