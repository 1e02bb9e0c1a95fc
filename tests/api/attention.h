/* SPDX-License-Identifier: MIT */
/*
 * attention.h - attention weights as tests ask for them. A failure of the library's ends the test.
 */
#ifndef TESTS_API_ATTENTION_H
#define TESTS_API_ATTENTION_H

#include <swin/swin.h>

/* Room for the weights and tokens of a request, filled with what no weight or token is. */
swin_attention attention_room(const swin_model *model, const swin_image *image, const swin_attention_request *request,
                              swin_attention_info *info);

/* The weights and tokens of a request. */
swin_attention attention_of(swin_session *session, const swin_model *model, const swin_image *image,
                            const swin_attention_request *request, swin_attention_info *info);

void attention_release(swin_attention *attention);

#endif
