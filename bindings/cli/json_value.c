/* SPDX-License-Identifier: MIT */
#include "json_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *json_value_number(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *json_value_text(const char *text)
{
    json_t *value = json_string(text);
    if (value != NULL)
        return value;
    char *ascii = strdup(text);
    if (ascii == NULL)
        return NULL;
    for (char *p = ascii; *p != '\0'; p++) {
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    }
    value = json_string(ascii);
    free(ascii);
    return value;
}

/* Appends and takes over `item`; a list that failed is NULL from then on. */
static json_t *appended(json_t *list, json_t *item)
{
    if (list == NULL || json_array_append_new(list, item) != 0) {
        json_decref(list);
        return NULL;
    }
    return list;
}

json_t *json_value_integers(const int32_t *values, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count && list != NULL; i++)
        list = appended(list, json_integer(values[i]));
    return list;
}

/* As few digits as tell the float from its neighbours: 123.675, not 123.675003. */
static double shortest(float value)
{
    char text[32];
    snprintf(text, sizeof text, "%.7g", (double)value);
    return strtof(text, NULL) == value ? strtod(text, NULL) : (double)value;
}

json_t *json_value_floats(const float *values, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count && list != NULL; i++)
        list = appended(list, json_value_number(shortest(values[i])));
    return list;
}

json_t *json_value_bits(int32_t bits)
{
    json_t *list = json_array();
    for (int i = 0; i < 31 && list != NULL; i++) {
        if ((bits >> i & 1) != 0)
            list = appended(list, json_integer(i));
    }
    return list;
}

int json_value_write(const json_t *value, FILE *stream)
{
    if (json_dumpf(value, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0)
        return -1;
    return fputc('\n', stream) == EOF ? -1 : 0;
}
