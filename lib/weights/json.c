/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <stdlib.h>
#include <string.h>

#include "../base/checked.h"
#include "../base/memory.h"

typedef struct parser {
    char *start, *at, *end;
    sw_json *values;
    const sw_json **sorted;
    size_t used, sorted_used, capacity;
    int depth; /* left */
    const char *problem;
} parser;

/* Counts what would be built: every comma and every opening bracket stands for a value at most, besides the root. Text
 * that is no JSON is counted up to where it is none. */
static swin_status count_values(const char *text, size_t length, int max_depth, const char *what, size_t *count,
                                swin_error *err)
{
    size_t values = 1;
    int depth = 0;
    for (size_t i = 0; i < length; i++) {
        switch (text[i]) {
        case '"':
            for (i++; i < length && text[i] != '"'; i++) {
                if (text[i] == '\\')
                    i++;
            }
            break;
        case '{':
        case '[':
            values++;
            if (++depth > max_depth)
                return sw_fail(err, SWIN_ERR_FORMAT, "%.300s nests deeper than %d levels", what, max_depth);
            break;
        case '}':
        case ']':
            depth--;
            break;
        case ',':
            values++;
            break;
        default:
            break;
        }
    }
    if (values > SW_JSON_MAX_VALUES)
        return sw_fail(err, SWIN_ERR_LIMIT, "%.300s has %zu values, expected at most %zu", what, values,
                       SW_JSON_MAX_VALUES);
    *count = values;
    return SWIN_OK;
}

static bool fail(parser *p, const char *problem)
{
    p->problem = problem;
    return false;
}

static void skip_blanks(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

/* Whether `c` comes next; then it is passed. */
static bool take(parser *p, char c)
{
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Strings
 */

/* The bytes of the UTF-8 sequence at p->at; 0 where there is none. */
static size_t sequence_length(const parser *p)
{
    const unsigned char *s = (const unsigned char *)p->at;
    const size_t left = (size_t)(p->end - p->at);
    if (s[0] < 0x80)
        return 1;
    const size_t length = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    /* Overlong forms, surrogates, and what lies beyond U+10FFFF. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

static bool read_hex(parser *p, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        const char c = (char)(p->at < p->end ? *p->at : '\0');
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return fail(p, "\\u without four digits");
        *value = *value << 4 | (uint32_t)digit;
    }
    return true;
}

/* What follows "\u", as UTF-8: no longer than it was. */
static bool read_code_point(parser *p, char **dst)
{
    uint32_t code, low;
    if (!read_hex(p, &code))
        return false;
    if (code == 0)
        return fail(p, "U+0000 in a string");
    if (code >= 0xd800 && code <= 0xdfff) {
        if (code > 0xdbff || !take(p, '\\') || !take(p, 'u'))
            return fail(p, "half of a surrogate pair");
        if (!read_hex(p, &low))
            return false;
        if (low < 0xdc00 || low > 0xdfff)
            return fail(p, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
    }
    char *d = *dst;
    if (code < 0x80) {
        *d++ = (char)code;
    } else if (code < 0x800) {
        *d++ = (char)(0xc0 | code >> 6);
        *d++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *d++ = (char)(0xe0 | code >> 12);
        *d++ = (char)(0x80 | (code >> 6 & 0x3f));
        *d++ = (char)(0x80 | (code & 0x3f));
    } else {
        *d++ = (char)(0xf0 | code >> 18);
        *d++ = (char)(0x80 | (code >> 12 & 0x3f));
        *d++ = (char)(0x80 | (code >> 6 & 0x3f));
        *d++ = (char)(0x80 | (code & 0x3f));
    }
    *dst = d;
    return true;
}

static bool read_escape(parser *p, char **dst)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char c = (char)(p->at < p->end ? *p->at++ : '\0');
    if (c == 'u')
        return read_code_point(p, dst);
    const char *letter = c == '\0' ? NULL : strchr(letters, c);
    if (letter == NULL)
        return fail(p, "unknown escape");
    *(*dst)++ = meanings[letter - letters];
    return true;
}

/* Decodes in place: the result is never longer, and its terminator takes the place of the closing quote at the latest.
 * */
static bool read_string(parser *p, const char **text)
{
    if (!take(p, '"'))
        return fail(p, "no string where one is expected");
    char *dst = p->at;
    *text = dst;
    while (p->at < p->end) {
        const char c = *p->at;
        if (c == '"') {
            p->at++;
            *dst = '\0';
            return true;
        }
        if ((unsigned char)c < 0x20)
            return fail(p, "control character in a string");
        if (c == '\\') {
            p->at++;
            if (!read_escape(p, &dst))
                return false;
            continue;
        }
        const size_t length = sequence_length(p);
        if (length == 0)
            return fail(p, "no UTF-8");
        memmove(dst, p->at, length);
        dst += length;
        p->at += length;
    }
    return fail(p, "string without an end");
}

/* ------------------------------------------------------------------------------------------------------------------
 * Numbers and words
 */

static bool is_digit(const parser *p)
{
    return p->at < p->end && *p->at >= '0' && *p->at <= '9';
}

static bool skip_digits(parser *p)
{
    if (!is_digit(p))
        return fail(p, "no digit where one is expected");
    while (is_digit(p))
        p->at++;
    return true;
}

static bool read_number(parser *p, sw_json *value)
{
    const bool negative = take(p, '-');
    bool fits = true;
    int64_t number = 0;
    if (!is_digit(p))
        return fail(p, negative ? "no digit where one is expected" : "no value where one is expected");
    if (!take(p, '0')) {
        for (; is_digit(p); p->at++) {
            const int digit = *p->at - '0';
            fits = fits && !__builtin_mul_overflow(number, 10, &number) &&
                   !__builtin_add_overflow(number, negative ? -digit : digit, &number);
        }
    }
    value->type = SW_JSON_INTEGER;
    if (take(p, '.')) {
        value->type = SW_JSON_NUMBER;
        if (!skip_digits(p))
            return false;
    }
    if (take(p, 'e') || take(p, 'E')) {
        value->type = SW_JSON_NUMBER;
        if (!take(p, '+'))
            take(p, '-');
        if (!skip_digits(p))
            return false;
    }
    if (value->type == SW_JSON_INTEGER) {
        if (!fits)
            return fail(p, "integer of more than 64 bits");
        value->integer = number;
    }
    return true;
}

static bool read_word(parser *p, const char *word)
{
    const size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0)
        return fail(p, "no value where one is expected");
    p->at += length;
    return true;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Arrays and objects: each in the other, as deep as max_depth lets them. NOLINTBEGIN(misc-no-recursion)
 */

static bool read_value(parser *p, sw_json *value);

/* A new value at the end of a list. */
static bool append(parser *p, sw_json *list, sw_json **last, const char *name)
{
    if (p->used == p->capacity)
        return fail(p, "more values than were counted");
    sw_json *value = &p->values[p->used++];
    *value = (sw_json){.name = name};
    if (*last == NULL)
        list->first = value;
    else
        (*last)->next = value;
    *last = value;
    list->count++;
    return read_value(p, value);
}

static bool read_array(parser *p, sw_json *array)
{
    sw_json *last = NULL;
    array->type = SW_JSON_ARRAY;
    p->at++;
    skip_blanks(p);
    if (take(p, ']'))
        return true;
    for (;;) {
        if (!append(p, array, &last, NULL))
            return false;
        skip_blanks(p);
        if (take(p, ']'))
            return true;
        if (!take(p, ','))
            return fail(p, "neither , nor ] after an element");
        skip_blanks(p);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const sw_json *const *)a)->name, (*(const sw_json *const *)b)->name);
}

static bool sort_members(parser *p, sw_json *object)
{
    object->sorted = p->sorted + p->sorted_used;
    p->sorted_used += object->count;
    size_t n = 0;
    for (const sw_json *member = object->first; member != NULL; member = member->next)
        object->sorted[n++] = member;
    qsort(object->sorted, n, sizeof(*object->sorted), compare_names);
    for (size_t i = 1; i < n; i++) {
        if (compare_names(&object->sorted[i - 1], &object->sorted[i]) == 0)
            return fail(p, "a name occurs twice in an object");
    }
    return true;
}

static bool read_object(parser *p, sw_json *object)
{
    sw_json *last = NULL;
    object->type = SW_JSON_OBJECT;
    p->at++;
    skip_blanks(p);
    if (take(p, '}'))
        return true;
    for (;;) {
        const char *name;
        if (!read_string(p, &name))
            return false;
        skip_blanks(p);
        if (!take(p, ':'))
            return fail(p, "no : after a name");
        skip_blanks(p);
        if (!append(p, object, &last, name))
            return false;
        skip_blanks(p);
        if (take(p, '}'))
            return sort_members(p, object);
        if (!take(p, ','))
            return fail(p, "neither , nor } after a member");
        skip_blanks(p);
    }
}

static bool read_value(parser *p, sw_json *value)
{
    switch (p->at < p->end ? *p->at : '\0') {
    case '{':
    case '[': {
        /* The text was counted, so this is not reached with text that is JSON so far. */
        if (p->depth == 0)
            return fail(p, "nested deeper than was counted");
        p->depth--;
        const bool read = *p->at == '{' ? read_object(p, value) : read_array(p, value);
        p->depth++;
        return read;
    }
    case '"':
        value->type = SW_JSON_STRING;
        return read_string(p, &value->text);
    case 't':
        value->type = SW_JSON_BOOLEAN;
        return read_word(p, "true");
    case 'f':
        value->type = SW_JSON_BOOLEAN;
        return read_word(p, "false");
    case 'n':
        value->type = SW_JSON_NULL;
        return read_word(p, "null");
    default:
        return read_number(p, value);
    }
}
/* NOLINTEND(misc-no-recursion) */

static bool read_document(parser *p, sw_json *root)
{
    p->used = 1;
    *root = (sw_json){0};
    skip_blanks(p);
    if (!read_value(p, root))
        return false;
    skip_blanks(p);
    return p->at == p->end || fail(p, "something after the end");
}

swin_status sw_json_parse(char *text, size_t length, int max_depth, const char *what, sw_json **root, swin_error *err)
{
    size_t count = 0;
    *root = NULL;
    SW_TRY(count_values(text, length, max_depth, what, &count, err));
    sw_json *values = sw_alloc(count, sizeof *values + sizeof(sw_json *));
    if (values == NULL)
        return sw_fail_memory(err, count * (sizeof *values + sizeof(sw_json *)), "the values of a JSON text");
    parser p = {
        .start = text,
        .at = text,
        .end = text + length,
        .values = values,
        .sorted = (const sw_json **)(void *)(values + count),
        .capacity = count,
        .depth = max_depth,
    };
    if (!read_document(&p, values)) {
        sw_free(values);
        return sw_fail(err, SWIN_ERR_FORMAT, "%.200s is broken at byte %zu: %s", what, (size_t)(p.at - p.start),
                       p.problem);
    }
    if (values->type != SW_JSON_OBJECT) {
        sw_free(values);
        return sw_fail(err, SWIN_ERR_FORMAT, "%.300s is no JSON object", what);
    }
    *root = values;
    return SWIN_OK;
}

const sw_json *sw_json_member(const sw_json *object, const char *name)
{
    if (!sw_json_is(object, SW_JSON_OBJECT) || object->count == 0)
        return NULL;
    const sw_json key = {.name = name}, *const wanted = &key;
    const sw_json *const *found = bsearch(&wanted, object->sorted, object->count, sizeof(*object->sorted),
                                          compare_names);
    return found == NULL ? NULL : *found;
}

const sw_json *sw_json_element(const sw_json *array, size_t index)
{
    if (!sw_json_is(array, SW_JSON_ARRAY))
        return NULL;
    const sw_json *element = array->first;
    for (; element != NULL && index > 0; index--)
        element = element->next;
    return element;
}
