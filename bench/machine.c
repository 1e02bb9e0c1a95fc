/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* As Linux calls the CPU on x86-64; other architectures have no such line. */
static void find_model(char *model, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon != NULL && strncmp(line, "model name", 10) == 0) {
            snprintf(model, size, "%s", colon + 1 + strspn(colon + 1, " "));
            model[strcspn(model, "\n")] = '\0';
            break;
        }
    }
    if (file != NULL)
        fclose(file);
}

void machine_print(void)
{
    struct utsname system;
    cpu_set_t cpus;
    if (uname(&system) != 0)
        memset(&system, 0, sizeof system);
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0)
        CPU_ZERO(&cpus);
    char model[256];
    snprintf(model, sizeof model, "%s", system.machine);
    find_model(model, sizeof model);
    printf("machine: %s, %d CPUs, %s %s\n\n", model, CPU_COUNT(&cpus), system.sysname, system.release);
}
