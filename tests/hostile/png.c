/* SPDX-License-Identifier: MIT */
/* PNG files of the must-fail corpus, under the limit of pixels that the tool has. */
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "outcome.h"
#include "picture.h"

static uint64_t max_pixels;

static bool check(const char *path, const char *expected, char *message, size_t size)
{
    struct picture picture;
    struct failure failure = {.text = ""};
    const bool read = picture_read_png(&picture, path, max_pixels, &failure);
    snprintf(message, size, "%s", read ? "ok" : failure.text);
    if (!read)
        return strcmp(expected, "ok") != 0 && picture.pixels == NULL && strncmp(message, path, strlen(path)) == 0 &&
               strstr(message + strlen(path), expected) != NULL;
    picture_destroy(&picture);
    return strcmp(expected, "ok") == 0;
}

int main(int argc, char **argv)
{
    char program[] = "swin-dump", image[] = "image.png", directory[4096];
    char *words[] = {program, image, NULL};
    struct options options;
    struct failure failure;
    if (argc != 2 || !options_parse(&options, 2, words, &failure))
        return 2;
    max_pixels = options.max_pixels;
    snprintf(directory, sizeof directory, "%s/png", argv[1]);
    outcome_check_all(directory, check);
    return 0;
}
