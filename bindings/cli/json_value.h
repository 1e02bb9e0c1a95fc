/* SPDX-License-Identifier: MIT */
/*
 * json_value.h - JSON values that jansson would refuse: numbers that are not finite become null, text that is not UTF-8
 * (a file name may be anything) has its foreign bytes replaced. All return NULL without memory, which json_pack()
 * passes on.
 */
#ifndef CLI_JSON_VALUE_H
#define CLI_JSON_VALUE_H

#include <jansson.h>
#include <stdint.h>

json_t *json_value_number(double number);
json_t *json_value_text(const char *text);
json_t *json_value_integers(const int32_t *values, int count);
json_t *json_value_floats(const float *values, int count);

/* The numbers of the bits that are set: 0x5 is [0, 2]. */
json_t *json_value_bits(int32_t bits);

/* To the stream, indented, with a line feed. */
int json_value_write(const json_t *value, FILE *stream);

#endif
