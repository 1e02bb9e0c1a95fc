/* SPDX-License-Identifier: MIT */
#include "info.h"

#include <inttypes.h>
#include <string.h>

#include "json_value.h"
#include "weights.h"

/* What a level's LayerNorm is told by. */
static bool has_out_norm(const swin_config *config, int stage)
{
    return (config->out_norm >> stage & 1) != 0;
}

static json_t *names_json(const swin_model *model, swin_tensor_use use)
{
    json_t *list = json_array();
    const char *name;
    for (size_t i = 0; list != NULL && (name = swin_model_tensor_name(model, use, i)) != NULL; i++) {
        if (json_array_append_new(list, json_value_text(name)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *pairs_json(const int32_t (*pairs)[2], int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count && list != NULL; i++) {
        if (json_array_append_new(list, json_value_integers(pairs[i], 2)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *optional_pair_json(const int32_t pair[2])
{
    return pair[0] != 0 ? json_value_integers(pair, 2) : json_null();
}

static json_t *tensors_json(const swin_model *model, const swin_model_info *info, bool names)
{
    json_t *tensors = json_pack("{s:I, s:I, s:I, s:I, s:I}", "used", (json_int_t)info->used_count, "ignored",
                                (json_int_t)info->ignored_count, "foreign", (json_int_t)info->foreign_count, "unknown",
                                (json_int_t)info->unknown_count, "nonfinite_values", (json_int_t)info->nonfinite_count);
    if (tensors == NULL || !names)
        return tensors;
    if (json_object_set_new(tensors, "ignored_names", names_json(model, SWIN_TENSOR_IGNORED)) != 0 ||
        json_object_set_new(tensors, "foreign_names", names_json(model, SWIN_TENSOR_FOREIGN)) != 0 ||
        json_object_set_new(tensors, "unknown_names", names_json(model, SWIN_TENSOR_UNKNOWN)) != 0) {
        json_decref(tensors);
        return NULL;
    }
    return tensors;
}

/* The library knows both from the model itself, so neither call can fail. */
static bool know(const swin_model *model, swin_config *config, swin_model_info *info)
{
    return swin_model_config(model, config, sizeof *config, NULL) == SWIN_OK &&
           swin_model_get_info(model, info, sizeof *info, NULL) == SWIN_OK;
}

json_t *info_json(const swin_model *model, const char *label, bool names)
{
    swin_config config;
    swin_model_info info;
    if (!know(model, &config, &info))
        return NULL;
    return json_pack(
        "{s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:i, s:i, s:o, s:o, s:o, s:o, s:f, s:b, s:b, s:o, s:o, "
        "s:o, s:i, "
        "s:o, s:o}",
        "weights", json_value_text(label), "name", json_value_text(info.name), "version", config.version, "dialect",
        json_value_text(info.dialect), "lineage", json_value_text(info.lineage), "lineage_reason",
        json_value_text(info.lineage_reason), "window_reason", json_value_text(info.window_reason), "prefix",
        json_value_text(info.prefix), "dtype", json_value_text(info.dtype), "parameters",
        (json_int_t)info.parameter_count, "patch_size", config.patch_size, "embed_dim", config.embed_dim, "depths",
        json_value_integers(config.depths, config.stages), "heads", json_value_integers(config.heads, config.stages),
        "window", pairs_json((const int32_t(*)[2])config.window, config.stages), "pretrained_window",
        pairs_json((const int32_t(*)[2])config.pretrained_window, config.stages), "mlp_ratio", config.mlp_ratio,
        "qkv_bias", config.qkv_bias, "patch_norm", config.patch_norm, "out_norm_levels",
        json_value_bits(config.out_norm), "absolute_position", optional_pair_json(config.absolute_position),
        "image_size", optional_pair_json(config.image_size), "block_norm_period", config.block_norm_period,
        "block_norm_last_stages", json_value_bits(config.block_norm_last), "tensors",
        tensors_json(model, &info, names));
}

static const char *window_text(const int32_t window[2], char text[32])
{
    if (window[0] == 0)
        return "-";
    snprintf(text, 32, "%dx%d", window[0], window[1]);
    return text;
}

static void print_stages(const swin_config *config, FILE *stream)
{
    fprintf(stream, "\n  level  stride  channels  blocks  heads  window  %slevel norm\n",
            config->version == 2 ? "pre-trained  " : "");
    for (int s = 0; s < config->stages; s++) {
        char window[32];
        char pretrained[32];
        fprintf(stream, "  %d c%d   %6d  %8d  %6d  %5d  %6s  ", s, s + 2, config->patch_size << s,
                config->embed_dim << s, config->depths[s], config->heads[s], window_text(config->window[s], window));
        if (config->version == 2)
            fprintf(stream, "%11s  ", window_text(config->pretrained_window[s], pretrained));
        fprintf(stream, "%s\n", has_out_norm(config, s) ? "yes" : "no");
    }
}

static void print_maps(const struct options *options, const swin_model *model, int stages, FILE *stream)
{
    swin_output_info maps[SWIN_MAX_STAGES];
    swin_error error;
    if (options->height == 0)
        return;
    fprintf(stream, "\n  maps of an image of %d x %d pixels (height x width)\n", options->height, options->width);
    if (swin_model_output_info(model, options->height, options->width, maps, &error) != SWIN_OK) {
        fprintf(stream, "  none: %s\n", error.message);
        return;
    }
    for (int s = 0; s < stages; s++)
        fprintf(stream, "  c%d     %d x %d x %d\n", s + 2, maps[s].channels, maps[s].height, maps[s].width);
}

/* A detector's file has hundreds of foreign tensors; people want to see a few, machines get all. */
static void print_names(const swin_model *model, swin_tensor_use use, const char *what, uint64_t count, FILE *stream)
{
    enum { SHOWN = 24 };
    const char *name;
    if (count == 0)
        return;
    fprintf(stream, "\n  %s (%" PRIu64 ")\n", what, count);
    for (size_t i = 0; i < SHOWN && (name = swin_model_tensor_name(model, use, i)) != NULL; i++)
        fprintf(stream, "    %s\n", name);
    if (count > SHOWN)
        fprintf(stream, "    and %" PRIu64 " more: --info --json lists them\n", count - SHOWN);
}

static void print_text(const struct options *options, const swin_model *model, FILE *stream)
{
    swin_config config;
    swin_model_info info;
    if (!know(model, &config, &info))
        return;
    failure_print_name(stream, weights_label(options));
    fputc('\n', stream);
    fprintf(stream, "  architecture  Swin Transformer V%d%s%s\n", config.version, *info.name != '\0' ? ", as " : "",
            info.name);
    fprintf(stream, "  parameters    %.2f million (%" PRIu64 "), %s\n", (double)info.parameter_count / 1e6,
            info.parameter_count, info.dtype);
    fprintf(stream, "  naming        %s%s%s%s\n", info.dialect, *info.prefix != '\0' ? ", behind \"" : "", info.prefix,
            *info.prefix != '\0' ? "\"" : "");
    fprintf(stream, "  lineage       %s: %s\n", info.lineage, info.lineage_reason);
    fprintf(stream, "  windows       %s\n", info.window_reason);
    fprintf(stream, "  patches       %d x %d pixels, %d channels%s\n", config.patch_size, config.patch_size,
            config.embed_dim, config.patch_norm ? ", normed" : "");
    fprintf(stream, "  mlp ratio     %g\n", config.mlp_ratio);
    fprintf(stream, "  qkv bias      %s\n", config.qkv_bias ? "yes" : "no");
    if (config.absolute_position[0] != 0)
        fprintf(stream, "  position      absolute, %d x %d\n", config.absolute_position[0],
                config.absolute_position[1]);
    if (config.image_size[0] != 0)
        fprintf(stream, "  made for      %d x %d pixels\n", config.image_size[0], config.image_size[1]);
    if (config.block_norm_period != 0)
        fprintf(stream, "  block norms   every %d blocks\n", config.block_norm_period);
    print_stages(&config, stream);
    print_maps(options, model, config.stages, stream);
    if (info.used_count > 0)
        fprintf(stream,
                "\n  tensors       %" PRIu64 " used, %" PRIu64 " ignored, %" PRIu64 " foreign, %" PRIu64 " unknown\n",
                info.used_count, info.ignored_count, info.foreign_count, info.unknown_count);
    if (info.nonfinite_count > 0)
        fprintf(stream, "  warning       %" PRIu64 " weights are NaN or infinite\n", info.nonfinite_count);
    print_names(model, SWIN_TENSOR_UNKNOWN, "unknown: in the backbone, but of no use here", info.unknown_count, stream);
    print_names(model, SWIN_TENSOR_IGNORED, "ignored: derived buffers and classifiers", info.ignored_count, stream);
    print_names(model, SWIN_TENSOR_FOREIGN, "foreign: beside the backbone", info.foreign_count, stream);
}

bool info_print(const struct options *options, const swin_model *model, FILE *stream, struct failure *failure)
{
    if (!options->json) {
        print_text(options, model, stream);
        return true;
    }
    json_t *json = info_json(model, weights_label(options), true);
    const bool done = json != NULL && json_value_write(json, stream) == 0;
    json_decref(json);
    return done || failure_set(failure, "the model's description could not be written (no memory or output closed)");
}
