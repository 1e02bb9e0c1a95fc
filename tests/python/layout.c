/* SPDX-License-Identifier: MIT */
/*
 * Prints size and offsets of every public struct, one "struct.field offset size" per line, for test_library.py to
 * compare with what the package thinks.
 */
#include <stdio.h>

#include <swin/swin.h>

#define STRUCT(type) printf(#type " %zu\n", sizeof(type))
#define FIELD(type, field) printf(#type "." #field " %zu %zu\n", offsetof(type, field), sizeof(((type *)NULL)->field))

int main(void)
{
    STRUCT(swin_error);
    FIELD(swin_error, status);
    FIELD(swin_error, backend);
    FIELD(swin_error, message);

    STRUCT(swin_selftest_result);
    FIELD(swin_selftest_result, struct_size);
    FIELD(swin_selftest_result, kernel);
    FIELD(swin_selftest_result, isa);
    FIELD(swin_selftest_result, error);

    STRUCT(swin_config);
    FIELD(swin_config, struct_size);
    FIELD(swin_config, version);
    FIELD(swin_config, lineage);
    FIELD(swin_config, patch_size);
    FIELD(swin_config, embed_dim);
    FIELD(swin_config, stages);
    FIELD(swin_config, depths);
    FIELD(swin_config, heads);
    FIELD(swin_config, window);
    FIELD(swin_config, pretrained_window);
    FIELD(swin_config, qkv_bias);
    FIELD(swin_config, patch_norm);
    FIELD(swin_config, out_norm);
    FIELD(swin_config, absolute_position);
    FIELD(swin_config, image_size);
    FIELD(swin_config, block_norm_period);
    FIELD(swin_config, block_norm_last);
    FIELD(swin_config, mlp_ratio);

    STRUCT(swin_model_params);
    FIELD(swin_model_params, struct_size);
    FIELD(swin_model_params, version);
    FIELD(swin_model_params, lineage);
    FIELD(swin_model_params, window);
    FIELD(swin_model_params, pretrained_window);
    FIELD(swin_model_params, image_size);
    FIELD(swin_model_params, out_norm);
    FIELD(swin_model_params, precision);
    FIELD(swin_model_params, max_header_bytes);
    FIELD(swin_model_params, prefix);

    STRUCT(swin_model_info);
    FIELD(swin_model_info, struct_size);
    FIELD(swin_model_info, name);
    FIELD(swin_model_info, dialect);
    FIELD(swin_model_info, lineage);
    FIELD(swin_model_info, lineage_reason);
    FIELD(swin_model_info, window_reason);
    FIELD(swin_model_info, prefix);
    FIELD(swin_model_info, dtype);
    FIELD(swin_model_info, parameter_count);
    FIELD(swin_model_info, used_count);
    FIELD(swin_model_info, ignored_count);
    FIELD(swin_model_info, foreign_count);
    FIELD(swin_model_info, unknown_count);
    FIELD(swin_model_info, nonfinite_count);

    STRUCT(swin_output_info);
    FIELD(swin_output_info, level);
    FIELD(swin_output_info, stride);
    FIELD(swin_output_info, channels);
    FIELD(swin_output_info, height);
    FIELD(swin_output_info, width);
    FIELD(swin_output_info, normed);

    STRUCT(swin_session_params);
    FIELD(swin_session_params, struct_size);
    FIELD(swin_session_params, precision);
    FIELD(swin_session_params, threads);
    FIELD(swin_session_params, profile);

    STRUCT(swin_image);
    FIELD(swin_image, struct_size);
    FIELD(swin_image, data);
    FIELD(swin_image, format);
    FIELD(swin_image, height);
    FIELD(swin_image, width);
    FIELD(swin_image, canvas_height);
    FIELD(swin_image, canvas_width);
    FIELD(swin_image, row_stride);
    FIELD(swin_image, plane_stride);
    FIELD(swin_image, mean);
    FIELD(swin_image, std);

    STRUCT(swin_maps);
    FIELD(swin_maps, struct_size);
    FIELD(swin_maps, layout);
    FIELD(swin_maps, reserved);
    FIELD(swin_maps, data);
    FIELD(swin_maps, capacity);

    STRUCT(swin_session_info);
    FIELD(swin_session_info, struct_size);
    FIELD(swin_session_info, precision);
    FIELD(swin_session_info, threads);
    FIELD(swin_session_info, kernels);
    FIELD(swin_session_info, backend);
    FIELD(swin_session_info, matmul);
    FIELD(swin_session_info, weight_bytes);
    FIELD(swin_session_info, scratch_bytes);

    STRUCT(swin_profile);
    FIELD(swin_profile, struct_size);
    FIELD(swin_profile, total_ms);
    FIELD(swin_profile, patch_embed_ms);
    FIELD(swin_profile, blocks_ms);
    FIELD(swin_profile, patch_merge_ms);
    FIELD(swin_profile, output_ms);
    FIELD(swin_profile, gflop);

    STRUCT(swin_attention_request);
    FIELD(swin_attention_request, struct_size);
    FIELD(swin_attention_request, stage);
    FIELD(swin_attention_request, block);
    FIELD(swin_attention_request, head);
    FIELD(swin_attention_request, view);
    FIELD(swin_attention_request, query);
    FIELD(swin_attention_request, window);
    FIELD(swin_attention_request, reserved);

    STRUCT(swin_attention_info);
    FIELD(swin_attention_info, struct_size);
    FIELD(swin_attention_info, stride);
    FIELD(swin_attention_info, heads);
    FIELD(swin_attention_info, map);
    FIELD(swin_attention_info, window);
    FIELD(swin_attention_info, shift);
    FIELD(swin_attention_info, windows);
    FIELD(swin_attention_info, cell);
    FIELD(swin_attention_info, query_window);
    FIELD(swin_attention_info, query_slot);
    FIELD(swin_attention_info, weight_count);
    FIELD(swin_attention_info, token_count);

    STRUCT(swin_attention);
    FIELD(swin_attention, struct_size);
    FIELD(swin_attention, weights);
    FIELD(swin_attention, weight_capacity);
    FIELD(swin_attention, tokens);
    FIELD(swin_attention, token_capacity);
    return 0;
}
