/* SPDX-License-Identifier: MIT */
/* The input is a command line: words end at line feeds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "target.h"

enum { MAX_WORDS = 40 };

static void check_image(const struct options *options)
{
    TARGET_REQUIRE((options->height == 0) == (options->width == 0) && options->height >= 0 && options->width >= 0);
    TARGET_REQUIRE(options->pad_divisor >= 1 && options->max_pixels >= 1);
    for (int i = 0; i < 3; i++)
        TARGET_REQUIRE(isfinite(options->mean[i]) && isfinite(options->std[i]) && options->std[i] != 0);
}

static void check(const struct options *options)
{
    TARGET_REQUIRE(options->out != NULL && options->bench >= 0 && options->threads >= 0);
    TARGET_REQUIRE(options->precision >= SWIN_PRECISION_AUTO && options->precision <= SWIN_PRECISION_BF16);
    TARGET_REQUIRE(options->model.lineage >= SWIN_LINEAGE_AUTO && options->model.lineage <= SWIN_LINEAGE_MMPRETRAIN);
    bool any = !options->levels_given;
    for (int s = 0; s < SWIN_MAX_STAGES; s++) {
        any = any || options->levels[s];
        for (int axis = 0; axis < 2; axis++)
            TARGET_REQUIRE(options->model.window[s][axis] >= 0 && options->model.pretrained_window[s][axis] >= 0);
    }
    TARGET_REQUIRE(any);
    TARGET_REQUIRE(options->task != OPTIONS_DUMP || options->input_count > 0);
    for (int i = 0; i < options->input_count; i++)
        TARGET_REQUIRE(options->inputs[i] != NULL);
    TARGET_REQUIRE(!options->attention || (options->attention_stage >= 0 && options->attention_block >= 0));
    TARGET_REQUIRE(!options->attention || options->attention_head >= 0 || options->attention_head == SWIN_HEAD_MEAN);
    TARGET_REQUIRE(!options->query_given || (options->attention && options->query[0] >= 0 && options->query[1] >= 0));
    check_image(options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *words[MAX_WORDS + 2];
    static char program[] = "swin-dump";
    int count = 0;
    char *text = malloc(size + 1);
    TARGET_REQUIRE(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    words[count++] = program;
    for (char *at = text; count <= MAX_WORDS; count++) {
        words[count] = at;
        at = strchr(at, '\n');
        if (at == NULL) {
            count++;
            break;
        }
        *at++ = '\0';
    }
    words[count] = NULL;

    struct options options;
    struct failure failure = {.text = ""};
    if (options_parse(&options, count, words, &failure)) {
        if (options.task == OPTIONS_DUMP || options.task == OPTIONS_INFO)
            check(&options);
    } else {
        TARGET_REQUIRE(failure.text[0] != '\0' && strlen(failure.text) < sizeof failure.text);
        for (const unsigned char *p = (const unsigned char *)failure.text; *p != '\0'; p++)
            TARGET_REQUIRE(*p >= 0x20 && *p != 0x7f);
    }
    free(text);
    return 0;
}
