/* SPDX-License-Identifier: MIT */
/*
 * from_model.h - the weights of an open model, read through lib/model alone, for the reference.
 */
#ifndef TESTS_REFERENCE_FROM_MODEL_H
#define TESTS_REFERENCE_FROM_MODEL_H

#include "model/model.h"
#include "weights.h"

/* `model` must outlive the weights: position biases are asked for during the forward. A failure of the library's ends
 * the test with its message. Released with reference_weights_release(). */
reference_weights reference_weights_from_model(const sw_model *model);

#endif
