/* SPDX-License-Identifier: MIT */
/*
 * session.h - the forward pass: scratch memory and threads of one worker, and the way of an image through the network.
 */
#ifndef SW_EXEC_SESSION_H
#define SW_EXEC_SESSION_H

#include "run.h"

typedef struct sw_session sw_session;

/* The network must outlive the session. */
swin_status sw_session_create(sw_network *network, const sw_kernels *kernels, int32_t threads, bool profile,
                              sw_session **session, swin_error *err);
void sw_session_destroy(sw_session *session);

/* `pixels` [count]; the canvas is what the maps are computed of. `maps` has been checked against it. */
swin_status sw_session_run(sw_session *session, const sw_pixels *pixels, size_t count, const int32_t canvas[2],
                           const swin_maps *maps, swin_error *err);

/* What the request asks for, of one image; `info` is what sw_attention_weights_find() makes of it on this canvas, and
 * `out` has been checked against that. */
swin_status sw_session_attention(sw_session *session, const sw_pixels *pixels, const int32_t canvas[2],
                                 const swin_attention_request *request, const swin_attention_info *info,
                                 const swin_attention *out, swin_error *err);

/* Replaces the element-wise kernels: benchmarks measure the products alone with kernels that do nothing. */
void sw_session_set_kernels(sw_session *session, const sw_kernels *kernels);

const sw_network *sw_session_network(const sw_session *session);
int32_t sw_session_threads(const sw_session *session);
size_t sw_session_scratch_bytes(const sw_session *session);
const char *sw_session_kernels(const sw_session *session);
void sw_session_profile(const sw_session *session, swin_profile *profile);

#endif
