/* SPDX-License-Identifier: MIT */
#include "interruption.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t seen;

static void on_signal(int number)
{
    (void)number;
    seen = 1;
}

void interruption_watch(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    /* What is ignored stays so: SIGHUP under nohup, SIGINT of what a script runs in the background. */
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction inherited;
        if (sigaction(numbers[i], NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

bool interruption_seen(void)
{
    return seen != 0;
}
