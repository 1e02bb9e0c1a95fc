/* SPDX-License-Identifier: MIT */
/*
 * interruption.h - Ctrl-C, SIGTERM and a terminal that is closed. The first one ends the run after the image at hand,
 * so that nothing is left half-written; the second one ends the program at once.
 */
#ifndef CLI_INTERRUPTION_H
#define CLI_INTERRUPTION_H

#include <stdbool.h>

void interruption_watch(void);
bool interruption_seen(void);

#endif
