/* SPDX-License-Identifier: MIT */
#include "pattern.h"

#include <stdio.h>
#include <string.h>

struct field {
    char letter;
    int32_t factor;
    int32_t summand;
};

/* Reads "{2s+1}" and returns what follows it. */
static const char *read_field(const char *p, struct field *field)
{
    field->factor = 1;
    field->summand = 0;
    p++;
    if (*p >= '0' && *p <= '9')
        field->factor = *p++ - '0';
    field->letter = *p++;
    if (*p == '+') {
        field->summand = p[1] - '0';
        p += 2;
    }
    return p + 1;
}

static const char *read_number(const char *p, int32_t *number)
{
    if (*p < '0' || *p > '9' || (p[0] == '0' && p[1] >= '0' && p[1] <= '9'))
        return NULL;
    int32_t value = 0;
    while (*p >= '0' && *p <= '9') {
        value = value * 10 + (*p++ - '0');
        if (value > SW_PATTERN_MAX_NUMBER)
            return NULL;
    }
    *number = value;
    return p;
}

const char *sw_pattern_match(const char *pattern, const char *text, int32_t *stage, int32_t *block)
{
    while (*pattern != '\0') {
        if (*pattern != '{') {
            if (*pattern++ != *text++)
                return NULL;
            continue;
        }
        struct field field;
        int32_t number;
        pattern = read_field(pattern, &field);
        text = read_number(text, &number);
        if (text == NULL || number < field.summand || (number - field.summand) % field.factor != 0)
            return NULL;
        *(field.letter == 's' ? stage : block) = (number - field.summand) / field.factor;
    }
    return text;
}

size_t sw_pattern_format(const char *pattern, int32_t stage, int32_t block, char *buffer, size_t size, size_t used)
{
    while (*pattern != '\0') {
        char *end = used < size ? buffer + used : buffer;
        const size_t room = used < size ? size - used : 0;
        if (*pattern == '{') {
            struct field field;
            pattern = read_field(pattern, &field);
            const int32_t value = field.letter == 's' ? stage : block;
            used += (size_t)snprintf(end, room, "%d", field.factor * value + field.summand);
        } else {
            const size_t literal = strcspn(pattern, "{");
            used += (size_t)snprintf(end, room, "%.*s", (int)literal, pattern);
            pattern += literal;
        }
    }
    return used;
}
