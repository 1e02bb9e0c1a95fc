/* SPDX-License-Identifier: MIT */
/*
 * advice.h - failures of paths that lead to something else than a checkpoint in safetensors, with what to do about it:
 * the command that converts a pickled one, as it can be typed, and the file to give in place of its directory. All
 * programs over the library say the same thereby.
 */
#ifndef SW_WEIGHTS_ADVICE_H
#define SW_WEIGHTS_ADVICE_H

#include "../base/status.h"

/* `what` is what the file is: "a pickle". Returns SWIN_ERR_FORMAT. */
swin_status sw_fail_pickled(const char *path, const char *what, swin_error *err);

/* Returns SWIN_ERR_IO. */
swin_status sw_fail_directory(const char *path, swin_error *err);

#endif
