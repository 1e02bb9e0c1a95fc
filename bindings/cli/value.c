/* SPDX-License-Identifier: MIT */
#include "value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A whole number without sign or space; moves `at` behind it. */
static bool take_integer(const char **at, int32_t *value, int32_t low, int32_t high)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    const long long number = strtoll(*at, &end, 10);
    if (errno != 0 || number < low || number > high)
        return false;
    *value = (int32_t)number;
    *at = end;
    return true;
}

static bool take_float(const char **at, float *value)
{
    char *end;
    if (strchr("+-.0123456789", **at) == NULL || **at == '\0')
        return false;
    const float number = strtof(*at, &end);
    if (end == *at || !isfinite(number))
        return false;
    *value = number;
    *at = end;
    return true;
}

/* The comma before the next value; false at the end, and `ended` tells whether it is a proper one. */
static bool take_comma(const char **at, bool *ended)
{
    *ended = **at == '\0';
    if (**at != ',')
        return false;
    ++*at;
    return true;
}

int value_integers(const char *text, int32_t *values, int most, int32_t low, int32_t high)
{
    bool ended = false;
    int count = 0;
    do {
        if (count == most || !take_integer(&text, &values[count++], low, high))
            return 0;
    } while (take_comma(&text, &ended));
    return ended ? count : 0;
}

int value_floats(const char *text, float *values, int most)
{
    bool ended = false;
    int count = 0;
    do {
        if (count == most || !take_float(&text, &values[count++]))
            return 0;
    } while (take_comma(&text, &ended));
    return ended ? count : 0;
}

int value_sizes(const char *text, int32_t (*values)[2], int most, int32_t low, int32_t high)
{
    bool ended = false;
    int count = 0;
    do {
        if (count == most || !take_integer(&text, &values[count][0], low, high))
            return 0;
        values[count][1] = values[count][0];
        if (*text == 'x') {
            text++;
            if (!take_integer(&text, &values[count][1], low, high))
                return 0;
        }
        count++;
    } while (take_comma(&text, &ended));
    return ended ? count : 0;
}

bool value_pixels(const char *text, uint64_t *pixels)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    double number = strtod(text, &end);
    if (*end == 'M') {
        number *= 1e6;
        end++;
    }
    if (*end != '\0' || !(number >= 1 && number <= INT32_MAX))
        return false;
    *pixels = (uint64_t)number;
    return true;
}
