/* SPDX-License-Identifier: MIT */
/*
 * swin-dump - feature maps of a Swin Transformer from the command line. Uses libswin through swin.h alone.
 */
#include <errno.h>
#include <png.h>
#include <signal.h>
#include <stdio.h>

#include "attention.h"
#include "batch.h"
#include "info.h"
#include "interruption.h"
#include "output.h"
#include "picture.h"
#include "selftest.h"
#include "summary.h"
#include "verify.h"
#include "weights.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static int complain(const struct failure *failure, int code)
{
    fprintf(stderr, "swin-dump: %s\n", failure->text);
    return code;
}

/* Output that did not arrive (a full disk, a closed pipe) is a failure too. */
static int finish(int code)
{
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_DONE) {
        fprintf(stderr, "swin-dump: standard output cannot be written: %s\n", failure_of_errno(errno));
        return EXIT_FAILED;
    }
    return code;
}

static void give_notes(const struct options *options)
{
    if (options->quiet)
        return;
    if (options->weights == NULL)
        fputs("swin-dump: no --weights FILE: using the built-in " WEIGHTS_DEMO_PRESET
              " with random weights; its maps show shapes and speed, not meaning\n",
              stderr);
    float most = 0;
    for (int i = 0; i < 3; i++)
        most = options->mean[i] > most ? options->mean[i] : most;
    if (most > 0 && most <= 1)
        fputs("swin-dump: --mean and --std are in 0-255 units, these look like 0-1; multiply them by 255\n", stderr);
}

static int dump(const struct options *options, const struct inputs *inputs, const swin_model *model)
{
    struct plan plan = {.options = options, .model = model, .label = weights_label(options)};
    struct failure failure;
    swin_error error;

    if (swin_model_config(model, &plan.config, sizeof plan.config, &error) != SWIN_OK ||
        swin_model_get_info(model, &plan.info, sizeof plan.info, &error) != SWIN_OK) {
        failure_set(&failure, "%s", error.message);
        return complain(&failure, EXIT_FAILED);
    }
    if (options->attention && !attention_check(options, &plan.config, &failure))
        return complain(&failure, EXIT_FAILED);
    if (!inputs->single && !options->quiet) {
        char preprocessing[SUMMARY_PREPROCESSING];
        fputs("model    ", stdout);
        failure_print_name(stdout, plan.label);
        printf("\nwindows  %s\ninput    %s\n", plan.info.window_reason,
               summary_preprocessing(options, preprocessing));
        if (options_write(options)) {
            fputs("output   ", stdout);
            failure_print_name(stdout, options->out);
            puts("/<image name>/");
        }
        fflush(stdout);
    }
    colormap_create(&plan.colours);
    interruption_watch();
    return batch_run(&plan, inputs) ? EXIT_DONE : EXIT_FAILED;
}

/* What can be seen to go wrong before the model is opened, which can take a while: a single image that cannot be read,
 * no references, no room for what is to be written. */
static bool prepare(const struct options *options, struct inputs *inputs, struct failure *failure)
{
    return inputs_collect(inputs, options->inputs, options->input_count, failure) &&
           (!inputs->single || picture_probe_png(inputs->items[0].path, options->max_pixels, failure)) &&
           (options->verify == NULL || verify_probe(options, inputs->single, failure)) &&
           (!options_write(options) || output_probe(options->out, failure));
}

static int run(const struct options *options)
{
    struct inputs inputs = {0};
    struct failure failure;
    swin_model *model = NULL;
    int code;

    if (options->task == OPTIONS_DUMP && !prepare(options, &inputs, &failure)) {
        code = complain(&failure, EXIT_FAILED);
    } else {
        give_notes(options);
        if (!weights_open(options, &model, &failure))
            code = complain(&failure, EXIT_FAILED);
        else if (options->task == OPTIONS_DUMP)
            code = dump(options, &inputs, model);
        else
            code = info_print(options, model, stdout, &failure) ? EXIT_DONE : complain(&failure, EXIT_FAILED);
    }
    swin_model_destroy(model);
    inputs_destroy(&inputs);
    return code;
}

int main(int argc, char **argv)
{
    struct options options;
    struct failure failure;

    /* A file that outgrows its limit and a reader who left are failures to be told, not deaths. */
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    if (!options_parse(&options, argc, argv, &failure))
        return complain(&failure, EXIT_USAGE);
    if (options.task == OPTIONS_HELP) {
        fputs(options_help(), stdout);
        return finish(EXIT_DONE);
    }
    if (options.task == OPTIONS_VERSION) {
        printf("swin-dump %d.%d.%d (libswin %s, libpng %s)\n", SWIN_VERSION_MAJOR, SWIN_VERSION_MINOR,
               SWIN_VERSION_PATCH, swin_version_string(), png_get_libpng_ver(NULL));
        return finish(EXIT_DONE);
    }
    if (swin_abi_version() != SWIN_ABI_VERSION) {
        failure_set(&failure, "libswin has ABI %u, this program needs %d; install libswin and swin-dump of one version",
                    swin_abi_version(), SWIN_ABI_VERSION);
        return complain(&failure, EXIT_FAILED);
    }
    if (options.task == OPTIONS_SELFTEST)
        return finish(selftest_print(stdout, &failure) ? EXIT_DONE : complain(&failure, EXIT_FAILED));
    return finish(run(&options));
}
