/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "recognition.h"

static bool is_named(const sw_recognition *recognition, const char *naming)
{
    return strcmp(recognition->naming->name, naming) == 0;
}

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), n = strlen(ending);
    return length >= n && strcmp(text + length - n, ending) == 0;
}

static bool has_piece(const sw_recognition *recognition, sw_piece piece)
{
    for (int32_t block = 0; block < recognition->block_start[recognition->config.stages]; block++) {
        if (recognition->pieces[(size_t)block * SW_PIECE_COUNT + piece] != NULL)
            return true;
    }
    return false;
}

/* Whether anything stands beside the backbone: a neck, a detection head. */
static bool has_foreign(const sw_checkpoint *checkpoint, const sw_recognition *recognition)
{
    for (size_t i = 0; i < checkpoint->table.count; i++) {
        if (recognition->uses[i] == SWIN_TENSOR_FOREIGN)
            return true;
    }
    return false;
}

static bool has_rpe_network(const sw_recognition *recognition)
{
    const sw_tensor *network = sw_recognition_piece(recognition, SW_PIECE_CPB1_WEIGHT, 0, 0);
    return network != NULL && strstr(network->name, ".rpe_mlp.") != NULL;
}

struct verdict {
    const char *dialect;
    swin_lineage lineage;
    const char *reason;
};

static struct verdict judge_microsoft(const sw_recognition *recognition)
{
    if (recognition->transposed)
        return (struct verdict){"paddle", SWIN_LINEAGE_DETECTION, "linear weights are transposed, as Paddle's are"};
    if (has_rpe_network(recognition) ||
        (ends_with(recognition->prefix, "encoder.") && has_piece(recognition, SW_PIECE_MASK_TOKEN)))
        return (struct verdict){"simmim", SWIN_LINEAGE_MICROSOFT, "tensors are named as SimMIM's are"};
    if (recognition->config.out_norm != 0)
        return (struct verdict){"detection", SWIN_LINEAGE_DETECTION, "levels have norms of their own"};
    if (has_piece(recognition, SW_PIECE_FINAL_NORM) || has_piece(recognition, SW_PIECE_HEAD) ||
        has_piece(recognition, SW_PIECE_MASK))
        return (struct verdict){"microsoft", SWIN_LINEAGE_MICROSOFT, "a classifier's norm, head or masks are there"};
    return (struct verdict){"microsoft", SWIN_LINEAGE_DETECTION, "nothing of a classifier is there"};
}

static struct verdict judge_mm(const sw_checkpoint *checkpoint, const sw_recognition *recognition)
{
    const swin_config *config = &recognition->config;
    const int32_t last = 1 << (config->stages - 1);
    const bool head = has_piece(recognition, SW_PIECE_HEAD) || has_piece(recognition, SW_PIECE_MASK);
    if (has_piece(recognition, SW_PIECE_MASK_TOKEN))
        return (struct verdict){"mmpretrain", SWIN_LINEAGE_MMPRETRAIN, "a mask token of mmpretrain's SimMIM is there"};
    if (head || (config->out_norm == last && !has_foreign(checkpoint, recognition)))
        return (struct verdict){"mmpretrain", SWIN_LINEAGE_MMPRETRAIN,
                         head ? "a classifier's head or masks are there" : "only the last level has a norm"};
    return (struct verdict){"mmdetection", SWIN_LINEAGE_DETECTION, "tensors are named as mmdetection's are"};
}

static struct verdict judge_huggingface(const sw_recognition *recognition)
{
    const char *dialect = recognition->naming->name;
    if (recognition->config.out_norm != 0)
        return (struct verdict){dialect, SWIN_LINEAGE_DETECTION, "levels have norms of their own, as in SwinBackbone"};
    return (struct verdict){dialect, SWIN_LINEAGE_HUGGINGFACE, "tensors are named as transformers' are"};
}

static struct verdict judge(const sw_checkpoint *checkpoint, const sw_recognition *recognition)
{
    if (is_named(recognition, "microsoft"))
        return judge_microsoft(recognition);
    if (is_named(recognition, "mmdetection"))
        return judge_mm(checkpoint, recognition);
    if (is_named(recognition, "torchvision"))
        return (struct verdict){"torchvision", SWIN_LINEAGE_TORCHVISION, "tensors are named as torchvision's are"};
    if (is_named(recognition, "timm"))
        return (struct verdict){"timm", SWIN_LINEAGE_TIMM, "merges are numbered as timm's are"};
    if (is_named(recognition, "timm features_only"))
        return (struct verdict){"timm_features", SWIN_LINEAGE_TIMM, "stages are named as in timm's features_only"};
    return judge_huggingface(recognition);
}

sw_resample_rule sw_lineage_resample_rule(int32_t lineage)
{
    if (lineage == SWIN_LINEAGE_MMPRETRAIN)
        return SW_RESAMPLE_SPLINE;
    return lineage == SWIN_LINEAGE_TIMM ? SW_RESAMPLE_LINEAR : SW_RESAMPLE_BICUBIC;
}

void sw_decide_lineage(const sw_checkpoint *checkpoint, const swin_model_params *params, sw_recognition *recognition)
{
    const struct verdict verdict = judge(checkpoint, recognition);
    const bool asked = params->lineage != SWIN_LINEAGE_AUTO;
    recognition->dialect = verdict.dialect;
    recognition->config.lineage = asked ? params->lineage : (int32_t)verdict.lineage;
    recognition->lineage_reason = asked ? "asked for by the caller" : verdict.reason;
    recognition->unfolded = is_named(recognition, "mmdetection");
    recognition->resample = strcmp(verdict.dialect, "simmim") == 0
                                ? SW_RESAMPLE_SPLINE
                                : sw_lineage_resample_rule(recognition->config.lineage);
}
