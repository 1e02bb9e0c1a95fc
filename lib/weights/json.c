/* SPDX-License-Identifier: MIT */
#include "json.h"

/* Counts what jansson would build. Text that is no JSON is counted somehow; jansson will refuse it. */
static swin_status check_size(const char *text, size_t length, int max_depth, const char *what, swin_error *err)
{
    size_t values = 0;
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
    return SWIN_OK;
}

swin_status sw_json_parse(const char *text, size_t length, int max_depth, const char *what, json_t **root,
                          swin_error *err)
{
    *root = NULL;
    SW_TRY(check_size(text, length, max_depth, what, err));
    json_error_t detail;
    json_t *parsed = json_loadb(text, length, JSON_REJECT_DUPLICATES, &detail);
    if (parsed == NULL) {
        const enum json_error_code code = json_error_code(&detail);
        if (code == json_error_out_of_memory)
            return sw_fail_memory(err, length, "parsing JSON");
        return sw_fail(err, SWIN_ERR_FORMAT, "%.200s is broken at byte %d: %.150s", what, detail.position, detail.text);
    }
    if (!json_is_object(parsed)) {
        json_decref(parsed);
        return sw_fail(err, SWIN_ERR_FORMAT, "%.300s is no JSON object", what);
    }
    *root = parsed;
    return SWIN_OK;
}
