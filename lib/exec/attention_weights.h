/* SPDX-License-Identifier: MIT */
/*
 * attention_weights.h - the softmax weights of a block, handed out on request.
 *
 * A run keeps none: they are computed here from the block's input, once an image has come that far. The projection is
 * the block's own; what follows is written to be read, in double precision, with memory that lives as long as the call.
 */
#ifndef SW_EXEC_ATTENTION_WEIGHTS_H
#define SW_EXEC_ATTENTION_WEIGHTS_H

#include "run.h"

/* What a request comes to on a canvas of rows x columns pixels; the place where it is checked. */
swin_status sw_attention_weights_find(const swin_config *config, const int32_t canvas[2],
                                      const swin_attention_request *request, swin_attention_info *info,
                                      swin_error *err);

/* Of the one image in work, whose map of the request's stage is the input of the request's block. `info` is what
 * sw_attention_weights_find() makes of the request; `out` has room for that. */
swin_status sw_attention_weights_run(sw_run *run, const swin_attention_request *request,
                                     const swin_attention_info *info, const swin_attention *out, swin_error *err);

#endif
