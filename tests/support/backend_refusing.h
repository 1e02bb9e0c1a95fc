/* SPDX-License-Identifier: MIT */
/*
 * backend_refusing.h - oneDNN as a test wants it: it refuses on request, or claims to have reference code only.
 *
 * The linker puts these functions in front of oneDNN's own (--wrap); meson's `backend_refusing` says for which.
 */
#ifndef TESTS_SUPPORT_BACKEND_REFUSING_H
#define TESTS_SUPPORT_BACKEND_REFUSING_H

#include <stdbool.h>

/* What oneDNN answers when it refuses. */
#define BACKEND_REFUSAL 1 /* out of memory */

/* The next `count` calls succeed, the one after is refused, and all later ones succeed again. */
void backend_fail_after(long count);

/* From now on none is refused. Returns whether one was. */
bool backend_fail_no_more(void);

/* Whether oneDNN has no product with bf16 operands from now on, as on a CPU without AVX-512. */
void backend_without_bf16(bool without);

/* Whether every implementation calls itself a reference one from now on. */
void backend_claim_reference(bool claim);

#endif
