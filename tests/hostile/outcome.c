/* SPDX-License-Identifier: MIT */
#include "outcome.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int outcome_descriptors(void)
{
    DIR *entries = opendir("/proc/self/fd");
    int count = -3; /* . and .., and this directory */
    while (entries != NULL && readdir(entries) != NULL)
        count++;
    if (entries != NULL)
        closedir(entries);
    return count;
}

int outcome_check_all(const char *directory, outcome_check *check)
{
    struct dirent **entries;
    int count = 0, wrong = 0;
    const int found = scandir(directory, &entries, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        const char *name = entries[i]->d_name, *dot = strrchr(name, '.');
        if (name[0] != '.' && dot != NULL) {
            char path[4096], message[1200] = "";
            snprintf(path, sizeof path, "%s/%s", directory, name);
            const int before = outcome_descriptors();
            /* Should the program end here, the last line says where. */
            printf("%s: ", name);
            fflush(stdout);
            bool good = check(path, dot + 1, message, sizeof message);
            if (outcome_descriptors() != before) {
                good = false;
                snprintf(message, sizeof message, "file descriptors leaked");
            }
            printf("%s%s\n", message, good ? "" : "   <=== not as its name says");
            count++;
            wrong += !good;
        }
        free(entries[i]);
    }
    if (found >= 0)
        free(entries);
    printf("%s: %d cases, %d wrong\n", directory, count, wrong);
    if (count == 0 || wrong > 0)
        exit(1);
    return count;
}
