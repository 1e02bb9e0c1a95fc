/* SPDX-License-Identifier: MIT */
/*
 * model_checks.h - opening models, comparing them and having them refused, with the test failed where that does not go
 * as it must.
 */
#ifndef TESTS_MODEL_MODEL_CHECKS_H
#define TESTS_MODEL_MODEL_CHECKS_H

#include "model/model.h"

/* The model that the caller destroys, or a failed test. */
sw_model *must_open(const char *path, const swin_model_params *params);
sw_model *must_create(const swin_config *config, uint64_t seed);

/* Fails the test unless every tensor and every position bias of both are equal, bit for bit. */
void assert_models_equal(const sw_model *a, const sw_model *b);

/* Opens a file that must be refused with this status and these words in the message. */
void must_refuse(const char *path, const swin_model_params *params, swin_status status, const char *words);

#endif
