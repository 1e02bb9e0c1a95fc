/* SPDX-License-Identifier: MIT */
/*
 * naming_writer.h - a seeded model written as each codebase would store it. The names and layouts are written down here
 * a second time, from the codebases, and share nothing with the tables that they test.
 */
#ifndef TESTS_MODEL_NAMING_WRITER_H
#define TESTS_MODEL_NAMING_WRITER_H

#include "model_checks.h"
#include "tensor_file.h"

enum naming {
    NAMING_MICROSOFT,
    NAMING_DETECTION,
    NAMING_PADDLE,
    NAMING_SIMMIM,
    NAMING_TIMM,
    NAMING_TIMM_FEATURES,
    NAMING_MMDETECTION,
    NAMING_MMPRETRAIN,
    NAMING_TORCHVISION,
    NAMING_HUGGINGFACE4,
    NAMING_HUGGINGFACE4_BACKBONE,
    NAMING_HUGGINGFACE5,
    NAMING_HUGGINGFACE5_BACKBONE,
    NAMING_MASKFORMER,
    NAMING_COUNT
};

/* What info.dialect must say of it, and the lineage that it implies. */
const char *naming_dialect(enum naming naming);
swin_lineage naming_lineage(enum naming naming);

/* Whether the codebase has norms on its levels, and whether it stores the buffers that tell V2's windows. */
bool naming_has_out_norms(enum naming naming);
bool naming_has_buffers(enum naming naming);

/* Adds all tensors that a file of this naming has for the configuration, the classifier included where there is one,
 * with the values of sw_model_create_random(config, seed). A naming that has parts outside the backbone's own prefix
 * (Hugging Face's norms and classifier) puts them where its code does. `prefix` goes before all. */
void naming_write(enum naming naming, const swin_config *config, uint64_t seed, const char *prefix, tensor_file *file);

/* Small configurations that differ from stage to stage in whatever may differ. */
swin_config small_v1(void);
swin_config small_v2(void);

#endif
