/* SPDX-License-Identifier: MIT */
/*
 * status.h - how a failure travels: a swin_status as return value, its one-line message in a caller-owned swin_error.
 * The first failure writes the message; later ones (from clean-up, from outer functions) leave it alone.
 */
#ifndef SW_BASE_STATUS_H
#define SW_BASE_STATUS_H

#include <swin/swin.h>

/* Forwards a failure. */
#define SW_TRY(call)                             \
    do {                                         \
        swin_status sw_try_status_ = (call);     \
        if (sw_try_status_ != SWIN_OK)           \
            return sw_try_status_;               \
    } while (0)

/* The same where the function owns things that its label `fail` releases; `status` is the variable returned there. */
#define SW_TRY_OR_FAIL(call)                     \
    do {                                         \
        if ((status = (call)) != SWIN_OK)        \
            goto fail;                           \
    } while (0)

/* Clears err, which may be NULL. Every public function begins with it. */
void sw_error_reset(swin_error *err);

/* Records `status` with a message unless err already holds a failure, and returns `status`. Bytes outside printable
 * ASCII (tensor names from hostile files) are replaced by '?'. err may be NULL. */
swin_status sw_fail(swin_error *err, swin_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* The same for oneDNN's own status code. */
swin_status sw_fail_backend(swin_error *err, int backend_status, const char *what) __attribute__((cold));

/* sw_fail() for an allocation of `bytes` that could not be had for `what`. */
swin_status sw_fail_memory(swin_error *err, size_t bytes, const char *what) __attribute__((cold));

#ifdef __clang_analyzer__
/* clang's analyser sees one file at a time and would follow ways on which a failure is no failure. */
#define sw_fail(...) (sw_fail(__VA_ARGS__), SWIN_ERR_INTERNAL)
#define sw_fail_backend(...) (sw_fail_backend(__VA_ARGS__), SWIN_ERR_INTERNAL)
#define sw_fail_memory(...) (sw_fail_memory(__VA_ARGS__), SWIN_ERR_INTERNAL)
#endif

#endif
