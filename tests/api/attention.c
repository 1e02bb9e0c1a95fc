/* SPDX-License-Identifier: MIT */
#include "attention.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

swin_attention attention_room(const swin_model *model, const swin_image *image, const swin_attention_request *request,
                              swin_attention_info *info)
{
    swin_error err;
    if (swin_model_attention_info(model, image->height, image->width, request, info, sizeof *info, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    swin_attention attention;
    swin_attention_init(&attention, sizeof attention);
    attention.weight_capacity = info->weight_count;
    attention.token_capacity = info->token_count;
    attention.weights = malloc(info->weight_count * sizeof *attention.weights);
    attention.tokens = malloc(info->token_count * sizeof *attention.tokens);
    assert_non_null(attention.weights);
    assert_non_null(attention.tokens);
    memset(attention.weights, 0xff, info->weight_count * sizeof *attention.weights);
    memset(attention.tokens, 0x7f, info->token_count * sizeof *attention.tokens);
    return attention;
}

swin_attention attention_of(swin_session *session, const swin_model *model, const swin_image *image,
                            const swin_attention_request *request, swin_attention_info *info)
{
    swin_error err;
    swin_attention attention = attention_room(model, image, request, info);
    if (swin_session_attention(session, image, request, &attention, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    return attention;
}

void attention_release(swin_attention *attention)
{
    free(attention->weights);
    free(attention->tokens);
    swin_attention_init(attention, sizeof *attention);
}
