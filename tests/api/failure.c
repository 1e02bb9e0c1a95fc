/* SPDX-License-Identifier: MIT */
#include "failure.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

void failure_check(swin_status status, swin_status expected, const swin_error *err, const char *part, const char *what)
{
    const size_t length = strnlen(err->message, sizeof err->message);
    if (status != expected || err->status != (int32_t)expected || length == sizeof err->message || length == 0 ||
        strchr(err->message, '\n') != NULL || err->message[length - 1] == '.' || err->backend != 0)
        fail_msg("%s: status %d, stored %d, expected %d: \"%s\"", what, (int)status, err->status, (int)expected,
                 err->message);
    if (strstr(err->message, part) == NULL)
        fail_msg("%s: \"%s\" does not say \"%s\"", what, err->message, part);
}

swin_error failure_stale(void)
{
    swin_error err = {.status = 77, .backend = 5, .message = "of an earlier call"};
    return err;
}
