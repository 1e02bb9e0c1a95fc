/* SPDX-License-Identifier: MIT */
/* Values, strings decoded in place, and where broken text is said to be broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "memory_counted.h"
#include "weights/json.h"

enum { DEPTH = 4 };

/* Of exactly the size of the text, so that a sanitizer sees what is read behind it. */
static char *copy_of(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    assert_non_null(copy);
    memcpy(copy, text, strlen(text));
    return realloc(copy, strlen(text) + (text[0] == '\0'));
}

static void values_are_read(void **state)
{
    (void)state;
    static const char source[] =
        " {\"b\":[1, -20,0,-0, 9223372036854775807 ,-9223372036854775808],\n\t\"a\":{\"x\":\"\"},"
        "\"r\":[1.5,1e3,-0.0e-2,1E+999],\"w\":[true,false,null],\"e\":[],\"o\":{}}\r\n";
    static const int64_t integers[] = {1, -20, 0, 0, INT64_MAX, INT64_MIN};
    sw_json *root;
    char *text = copy_of(source);
    assert_int_equal(sw_json_parse(text, strlen(source), DEPTH, "it", &root, NULL), SWIN_OK);
    assert_int_equal(sw_json_count(root), 6);
    const sw_json *b = sw_json_member(root, "b");
    assert_ptr_equal(root->first, b); /* the order of the text is kept */
    assert_int_equal(sw_json_count(b), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_true(sw_json_is(sw_json_element(b, i), SW_JSON_INTEGER));
        assert_true(sw_json_integer(sw_json_element(b, i)) == integers[i]);
    }
    assert_null(sw_json_element(b, 6));
    assert_string_equal(sw_json_text(sw_json_member(sw_json_member(root, "a"), "x")), "");
    for (size_t i = 0; i < 4; i++) {
        assert_true(sw_json_is(sw_json_element(sw_json_member(root, "r"), i), SW_JSON_NUMBER));
        assert_true(sw_json_integer(sw_json_element(sw_json_member(root, "r"), i)) == 0);
    }
    assert_true(sw_json_is(sw_json_element(sw_json_member(root, "w"), 1), SW_JSON_BOOLEAN));
    assert_true(sw_json_is(sw_json_element(sw_json_member(root, "w"), 2), SW_JSON_NULL));
    assert_int_equal(sw_json_count(sw_json_member(root, "e")), 0);
    assert_int_equal(sw_json_count(sw_json_member(root, "o")), 0);
    assert_null(sw_json_member(sw_json_member(root, "o"), "x"));
    assert_null(sw_json_member(b, "x"));
    assert_null(sw_json_member(NULL, "x"));
    assert_null(sw_json_element(root, 0));
    assert_null(sw_json_text(NULL));
    assert_int_equal(sw_json_count(NULL), 0);
    sw_free(root);
    free(text);
    assert_int_equal(memory_live_blocks(), 0);
}

static void strings_are_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
        {"\\u0041\\u00e4\\u20AC", "A\xc3\xa4\xe2\x82\xac"},
        {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
        {"\\udbff\\udfff", "\xf4\x8f\xbf\xbf"},
        {"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
         "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[200];
        sw_json *root;
        snprintf(text, sizeof text, "{\"%s\":\"%s\"}", cases[i].text, cases[i].text);
        assert_int_equal(sw_json_parse(text, strlen(text), DEPTH, "it", &root, NULL), SWIN_OK);
        assert_string_equal(root->first->name, cases[i].expected);
        assert_string_equal(sw_json_text(sw_json_member(root, cases[i].expected)), cases[i].expected);
        sw_free(root);
    }
}

static void broken_text_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "at byte 0: no value"},
        {"x", "at byte 0: no value"},
        {"{", "at byte 1: no string"},
        {"{\"a\"}", "at byte 4: no :"},
        {"{\"a\":}", "at byte 5: no value"},
        {"{\"a\":1", "neither , nor }"},
        {"{\"a\":1,}", "no string"},
        {"{\"a\":1 \"b\":2}", "neither , nor }"},
        {"{\"a\":[1 2]}", "neither , nor ]"},
        {"{\"a\":[1,]}", "no value"},
        {"{\"a\":[}", "no value"},
        {"{\"a\":[", "no value"},
        {"{\"a\":1}x", "at byte 7: something after the end"},
        {"{\"a\":1}{", "something after"},
        {"{a:1}", "no string"},
        {"{\"a\":tru", "no value"},
        {"{\"a\":nul}", "no value"},
        {"{\"a\":fals3}", "no value"},
        {"{\"a\":01}", "neither"},
        {"{\"a\":-}", "no digit"},
        {"{\"a\":+1}", "no value"},
        {"{\"a\":.5}", "no value"},
        {"{\"a\":1.}", "no digit"},
        {"{\"a\":1e}", "no digit"},
        {"{\"a\":1e+}", "no digit"},
        {"{\"a\":9223372036854775808}", "more than 64 bits"},
        {"{\"a\":-9223372036854775809}", "more than 64 bits"},
        {"{\"a\":99999999999999999999999999}", "more than 64 bits"},
        {"{\"a\":\"b}", "without an end"},
        {"{\"a\":\"b\\", "unknown escape"},
        {"{\"a\":\"b\\\"", "without an end"},
        {"{\"a\":\"\\x\"}", "unknown escape"},
        {"{\"a\":\"\n\"}", "control character"},
        {"{\"a\":\"\\u12\"}", "without four digits"},
        {"{\"a\":\"\\u12", "without four digits"},
        {"{\"a\":\"\\u00g0\"}", "without four digits"},
        {"{\"a\":\"\\u0000\"}", "U+0000"},
        {"{\"a\":\"\\ud800\"}", "surrogate"},
        {"{\"a\":\"\\ud800\\n\"}", "surrogate"},
        {"{\"a\":\"\\ud800\\u0041\"}", "surrogate"},
        {"{\"a\":\"\\udc00\"}", "surrogate"},
        {"{\"a\":\"\\ud800\\u00\"}", "without four digits"},
        {"{\"a\":\"\x80\"}", "no UTF-8"},
        {"{\"a\":\"\xc1\xbf\"}", "no UTF-8"},
        {"{\"a\":\"\xe0\x9f\xbf\"}", "no UTF-8"},
        {"{\"a\":\"\xed\xa0\x80\"}", "no UTF-8"},
        {"{\"a\":\"\xf0\x8f\xbf\xbf\"}", "no UTF-8"},
        {"{\"a\":\"\xf4\x90\x80\x80\"}", "no UTF-8"},
        {"{\"a\":\"\xf5\x80\x80\x80\"}", "no UTF-8"},
        {"{\"a\":\"\xe2\x82", "no UTF-8"},
        {"{\"a\":\"\xe2\x28\xa1\"}", "no UTF-8"},
        {"{\"a\":1,\"a\":2}", "twice"},
        {"{\"b\":{\"c\":1,\"a\":2,\"\\u0063\":3}}", "twice"},
        {"[1]", "no JSON object"},
        {"\"a\"", "no JSON object"},
        {"7", "no JSON object"},
        {"{\"a\":[[[[]]]]}", "nests deeper than 4"},
        {"]]]]{\"a\":[[[[]]]]}", "no value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        swin_error err = {0};
        sw_json *root = (sw_json *)(void *)&err;
        char *text = copy_of(cases[i].text);
        const swin_status status = sw_json_parse(text, strlen(cases[i].text), DEPTH, "it", &root, &err);
        if (status != SWIN_ERR_FORMAT || strstr(err.message, cases[i].words) == NULL || root != NULL)
            fail_msg("%s: status %d, \"%s\", expected \"%s\"", cases[i].text, (int)status, err.message, cases[i].words);
        free(text);
        assert_int_equal(memory_live_blocks(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(broken_text_is_refused),
    };
    return cmocka_run_group_tests_name("JSON", tests, NULL, NULL);
}
