/* SPDX-License-Identifier: MIT */
#include "advice.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMAND "python3 -m libswin convert"

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("/._-+,:@%=", c) != NULL;
}

static bool add(char *word, size_t size, size_t *used, const char *piece)
{
    const size_t length = strlen(piece);
    if (length >= size - *used)
        return false;
    memcpy(word + *used, piece, length + 1);
    *used += length;
    return true;
}

/* `text` of `length` bytes with `ending` behind it, as a shell takes it for one word: in quotes where it must be. False
 * where it does not fit, or has what a message cannot carry. */
static bool shell_word(const char *text, size_t length, const char *ending, char *word, size_t size)
{
    bool plain = true;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < 0x20 || text[i] > 0x7e)
            return false;
        plain = plain && is_plain(text[i]);
    }
    size_t used = 0;
    if (!plain)
        word[used++] = '\'';
    for (size_t i = 0; i < length; i++) {
        const char *piece = text[i] == '\'' ? "'\\''" : (const char[]){text[i], '\0'};
        if (!add(word, size, &used, piece))
            return false;
    }
    return add(word, size, &used, ending) && (plain || add(word, size, &used, "'"));
}

swin_status sw_fail_pickled(const char *path, const char *what, swin_error *err)
{
    char from[200], to[200], command[480];
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    const size_t length = strlen(path);
    const size_t stem = dot != NULL && dot > name ? (size_t)(dot - path) : length;
    /* A file that is called what it is not keeps its name: nothing is converted onto itself. */
    const char *ending = strcmp(path + stem, ".safetensors") == 0 ? ".converted.safetensors" : ".safetensors";
    if (shell_word(path, length, "", from, sizeof from) && shell_word(path, stem, ending, to, sizeof to) &&
        strlen(what) + length + strlen(from) + strlen(to) + sizeof COMMAND + 60 < sizeof err->message)
        (void)snprintf(command, sizeof command, COMMAND " %s %s", from, to);
    else
        (void)snprintf(command, sizeof command, COMMAND " IN OUT.safetensors");
    return sw_fail(err, SWIN_ERR_FORMAT, "%.200s is %s, not a safetensors file; convert it: %s", path, what, command);
}

swin_status sw_fail_directory(const char *path, swin_error *err)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    const char *slash = path[strlen(path) - 1] == '/' ? "" : "/";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char inside[4096];
        const int length = snprintf(inside, sizeof inside, "%s%s%s", path, slash, names[i]);
        if ((size_t)length < sizeof inside && access(inside, F_OK) == 0)
            return sw_fail(err, SWIN_ERR_IO, "%.150s is a directory, expected a file; the checkpoint in it is %.250s",
                           path, inside);
    }
    return sw_fail(err, SWIN_ERR_IO, "%.300s is a directory, expected a .safetensors file", path);
}
