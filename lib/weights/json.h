/* SPDX-License-Identifier: MIT */
/*
 * json.h - hostile JSON, as RFC 8259 has it and no name twice in an object; numbers that are no integers of 64 bits are
 * only told to be numbers, and U+0000 is refused.
 *
 * Why not a library for it: jansson, otherwise a good one, ignores that a buffer could not grow and then reads past its
 * end (2.14); its objects take many times the room of their text; and a program may have changed how it allocates.
 * Here memory is counted beforehand, bounded, and had in one piece; strings stay in the text.
 */
#ifndef SW_WEIGHTS_JSON_H
#define SW_WEIGHTS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/status.h"

/* Values in one document: some 100 000 tensors. */
#define SW_JSON_MAX_VALUES ((size_t)1 << 20)

typedef enum sw_json_type {
    SW_JSON_NULL,
    SW_JSON_BOOLEAN,
    SW_JSON_INTEGER,
    SW_JSON_NUMBER, /* any other */
    SW_JSON_STRING,
    SW_JSON_ARRAY,
    SW_JSON_OBJECT
} sw_json_type;

typedef struct sw_json {
    sw_json_type type;
    const char *name;            /* of a member of an object, else NULL      */
    int64_t integer;             /* of an integer, else 0                    */
    const char *text;            /* of a string, else NULL                   */
    size_t count;                /* elements of an array, members of an object */
    const struct sw_json *first; /* of them, in the order of the text        */
    const struct sw_json *next;  /* after this one                           */
    const struct sw_json **sorted; /* members by name                        */
} sw_json;

/* Parses a document whose root is an object and which nests at most `max_depth` deep, the root counting as 1. `what`
 * names it in messages. Strings are decoded within `text`, which must stay as long as the result, to be released with
 * sw_free(). */
swin_status sw_json_parse(char *text, size_t length, int max_depth, const char *what, sw_json **root, swin_error *err);

/* What these ask for may be NULL or of another type: then there is nothing. */
const sw_json *sw_json_member(const sw_json *object, const char *name);
const sw_json *sw_json_element(const sw_json *array, size_t index);

static inline bool sw_json_is(const sw_json *value, sw_json_type type)
{
    return value != NULL && value->type == type;
}

static inline int64_t sw_json_integer(const sw_json *value)
{
    return value == NULL ? 0 : value->integer;
}

static inline const char *sw_json_text(const sw_json *value)
{
    return value == NULL ? NULL : value->text;
}

static inline size_t sw_json_count(const sw_json *value)
{
    return value == NULL ? 0 : value->count;
}

#endif
