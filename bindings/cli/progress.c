/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"

static int terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col - 1;
    return 79;
}

static int left_text(char *text, size_t size, double seconds)
{
    const long left = lround(fmin(seconds, 359999));
    return left >= 3600 ? snprintf(text, size, "%ld:%02ld:%02ld left", left / 3600, left / 60 % 60, left % 60)
                        : snprintf(text, size, "%ld:%02ld left", left / 60, left % 60);
}

void progress_bar(char line[PROGRESS_LINE], int width, int done, int total, double seconds, const char *path)
{
    enum { CELLS = 24 };
    char cells[CELLS + 1];
    char left[32] = "";
    const int full = total > 0 ? (int)((long long)CELLS * done / total) : CELLS;
    const double rate = seconds > 0 ? done / seconds : 0;

    memset(cells, '-', CELLS);
    memset(cells, '#', (size_t)full);
    cells[CELLS] = '\0';
    if (rate > 0)
        left_text(left, sizeof left, (total - done) / rate);
    snprintf(line, PROGRESS_LINE, "[%s] %d/%d  %.3g images/s  %s  %s", cells, done, total, rate, left, path);
    if (width < PROGRESS_LINE - 1)
        line[width] = '\0';
}

static void draw(struct progress *progress, const char *path)
{
    char line[PROGRESS_LINE];
    const char *slash = strrchr(path, '/');
    progress_bar(line, terminal_width(), progress->done, progress->total, clock_now() - progress->started,
                 slash != NULL ? slash + 1 : path);
    fputc('\r', stderr);
    failure_print_name(stderr, line);
    fputs("\033[K", stderr);
    fflush(stderr);
}

void progress_start(struct progress *progress, int total, bool quiet)
{
    *progress = (struct progress){.total = total, .started = clock_now()};
    pthread_mutex_init(&progress->lock, NULL);
    progress->bar = !quiet && total > 1 && isatty(STDERR_FILENO);
    progress->lines = !quiet && total > 1 && !progress->bar;
    if (progress->bar)
        draw(progress, "");
}

static void wipe(const struct progress *progress)
{
    if (progress->bar) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}

void progress_step(struct progress *progress, const char *path, const char *report, const struct failure *failed)
{
    pthread_mutex_lock(&progress->lock);
    progress->done++;
    progress->failed += failed != NULL;
    if (failed != NULL || *report != '\0')
        wipe(progress);
    if (*report != '\0')
        printf("%s\n", report);
    if (failed != NULL) {
        fflush(stdout);
        fprintf(stderr, "swin-dump: %s\n", failed->text);
    } else if (progress->lines) {
        printf("[%d/%d] ", progress->done, progress->total);
        failure_print_name(stdout, path);
        putchar('\n');
        fflush(stdout);
    }
    if (progress->bar)
        draw(progress, path);
    pthread_mutex_unlock(&progress->lock);
}

void progress_finish(struct progress *progress)
{
    wipe(progress);
    pthread_mutex_destroy(&progress->lock);
}
