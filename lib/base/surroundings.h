/* SPDX-License-Identifier: MIT */
/*
 * surroundings.h - what a thread brings along into the library and gets back unchanged: how it rounds, traps and treats
 * denormals, and whether it can be cancelled. Within, numbers are computed in the default way, by every thread alike,
 * and no lock or half-made object is left behind by a cancelled thread.
 */
#ifndef SW_BASE_SURROUNDINGS_H
#define SW_BASE_SURROUNDINGS_H

#include <fenv.h>

typedef struct sw_surroundings {
    fenv_t floating;
    int cancel_state;
} sw_surroundings;

sw_surroundings sw_surroundings_enter(void);
void sw_surroundings_leave(sw_surroundings *outside);

/* The first declaration of a function: until it returns. Threads started within keep the default. */
#define SW_OWN_SURROUNDINGS \
    __attribute__((cleanup(sw_surroundings_leave), unused)) sw_surroundings outside = sw_surroundings_enter()

#endif
