/* SPDX-License-Identifier: MIT */
/*
 * hints.h - what stands beside a checkpoint's tensors: a config.json in its directory (Hugging Face's or timm's), and
 * the published file name. Both are only asked what tensors cannot say: windows, pre-training windows, image size. A
 * hint that contradicts the tensors elsewhere is not believed at all.
 */
#ifndef SW_MODEL_HINTS_H
#define SW_MODEL_HINTS_H

#include "config.h"

/* In place of a pre-training window that is no number. */
#define SW_HINT_WRONG (-1)

typedef struct sw_hints {
    bool known;
    int32_t window[2];                        /* {0, 0}: not said. Of the first stage: later ones may be clamped */
    bool pretrained_known;
    int32_t pretrained[SWIN_MAX_STAGES];      /* as said, to be checked; 0: none                                 */
    int32_t image_size[2];                    /* {0, 0}: not said                                                */
} sw_hints;

/* From the config.json beside `path`. No file, or one that does not fit, gives no hints; only lack of memory fails.
 * `config` has the sizes known so far. */
swin_status sw_hints_from_config(const char *path, const swin_config *config, sw_hints *hints, swin_error *err);

/* From the name of the file, or of its directory where the file's own name is a general one ("model.safetensors"). */
void sw_hints_from_path(const char *path, const swin_config *config, sw_hints *hints);

/* From the name of an architecture, such as "swinv2_base_window12to16_192to256". */
void sw_hints_from_name(const char *name, size_t length, const swin_config *config, sw_hints *hints);

#endif
