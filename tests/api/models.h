/* SPDX-License-Identifier: MIT */
/*
 * models.h - the handful of networks that the tests of the interface run: every way of computing is among them.
 */
#ifndef TESTS_API_MODELS_H
#define TESTS_API_MODELS_H

#include <swin/swin.h>

enum {
    MODEL_AMX,     /* heads of 32 channels, which our own products want; stages of one and of several parts */
    MODEL_PLAIN,   /* heads of 24, windows viewed where they lie                                            */
    MODEL_LARGE,   /* windows of 12, copied head by head                                                    */
    MODEL_V2,      /* cosine attention, heads of 32                                                         */
    MODEL_V2_NORM, /* heads of 16, extra norms, windows of 16 whose bias is laid out                        */
    MODEL_CLAMPED, /* Microsoft's lineage: windows shrink with the map                                      */
    MODEL_COUNT
};

/* "amx", ... */
const char *models_name(int which);
swin_config models_config(int which);

/* Ends the test where the library fails. */
swin_model *models_make(int which, int32_t precision);
swin_session *models_session(const swin_model *model, int32_t precision, int32_t threads);

#endif
