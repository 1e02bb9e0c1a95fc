/* SPDX-License-Identifier: MIT */
/*
 * cases.h - cases.txt as the tests read it.
 */
#ifndef TESTS_GOLDEN_CASES_H
#define TESTS_GOLDEN_CASES_H

#include <stdbool.h>

#include <swin/swin.h>

typedef struct golden_case {
    char name[192];               /* the line, its spaces squeezed */
    char weights[64], expect[64]; /* names of files                */
    swin_model_params params;     /* struct_size is this header's  */
    bool single; /* as cases.txt says */
} golden_case;

/* All cases, to be released with free(). Whatever is wrong with the file ends the test. */
golden_case *golden_cases(size_t *count);

#endif
