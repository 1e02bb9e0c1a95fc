/* SPDX-License-Identifier: MIT */
#include "status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* For clang's analyser these are macros. */
#undef sw_fail
#undef sw_fail_backend
#undef sw_fail_memory

void sw_error_reset(swin_error *err)
{
    if (err != NULL) {
        err->status = SWIN_OK;
        err->backend = 0;
        err->message[0] = '\0';
    }
}

swin_status sw_fail(swin_error *err, swin_status status, const char *format, ...)
{
    if (err == NULL || err->status != SWIN_OK)
        return status;
    err->status = (int32_t)status;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    for (char *p = err->message; *p != '\0'; p++) {
        if (*p < 0x20 || *p > 0x7e)
            *p = '?';
    }
    return status;
}

swin_status sw_fail_backend(swin_error *err, int backend_status, const char *what)
{
    const bool first = err != NULL && err->status == SWIN_OK;
    sw_fail(err, SWIN_ERR_BACKEND, "oneDNN refused (its status %d): %s", backend_status, what);
    if (first)
        err->backend = backend_status;
    return SWIN_ERR_BACKEND;
}

swin_status sw_fail_memory(swin_error *err, size_t bytes, const char *what)
{
    return sw_fail(err, SWIN_ERR_NO_MEMORY, "no memory: %zu bytes for %s", bytes, what);
}
