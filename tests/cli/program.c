/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 32 };

static const char *program_path;
static const char *checkpoint_path;

void program_set_paths(const char *program, const char *checkpoint)
{
    program_path = program;
    checkpoint_path = checkpoint;
}

static void die(const char *what)
{
    perror(what);
    abort();
}

struct text {
    char *bytes;
    size_t count;
};

/* False at the end; a terminal whose other side is closed ends in EIO. */
static bool append(struct text *text, int descriptor)
{
    char bytes[4096];
    const ssize_t count = read(descriptor, bytes, sizeof bytes);
    if (count <= 0)
        return count < 0 && errno == EINTR;
    text->bytes = realloc(text->bytes, text->count + (size_t)count + 1);
    if (text->bytes == NULL)
        die("realloc");
    memcpy(text->bytes + text->count, bytes, (size_t)count);
    text->count += (size_t)count;
    text->bytes[text->count] = '\0';
    return true;
}

/* Both sides of a pseudo-terminal; false where the system has none to give. */
static bool open_terminal(int *ours, int *theirs)
{
    *theirs = -1;
    *ours = posix_openpt(O_RDWR | O_NOCTTY);
    if (*ours >= 0 && grantpt(*ours) == 0 && unlockpt(*ours) == 0 && ptsname(*ours) != NULL)
        *theirs = open(ptsname(*ours), O_RDWR | O_NOCTTY);
    return *theirs >= 0;
}

bool program_has_terminals(void)
{
    int ours, theirs;
    const bool had = open_terminal(&ours, &theirs);
    if (ours >= 0)
        close(ours);
    if (theirs >= 0)
        close(theirs);
    return had;
}

static void open_channel(bool terminal, int *ours, int *theirs)
{
    int ends[2];
    if (terminal) {
        if (!open_terminal(ours, theirs))
            die("a pseudo-terminal");
    } else {
        if (pipe(ends) != 0)
            die("pipe");
        *ours = ends[0];
        *theirs = ends[1];
    }
    fcntl(*ours, F_SETFD, FD_CLOEXEC);
}

static void become(const struct circumstances *circumstances, char **arguments, int out, int err)
{
    const int nothing = open("/dev/null", O_RDONLY);
    if (circumstances->stdout_to != NULL)
        out = open(circumstances->stdout_to, O_WRONLY);
    if (circumstances->file_limit > 0) {
        const struct rlimit limit = {(rlim_t)circumstances->file_limit, (rlim_t)circumstances->file_limit};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    signal(SIGHUP, SIG_DFL); /* the tests themselves may run under nohup */
    dup2(nothing, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(program_path, arguments);
    _exit(127);
}

static void collect(const struct circumstances *circumstances, pid_t child, int out, int err, struct program *program)
{
    struct text texts[2] = {{calloc(1, 1), 0}, {calloc(1, 1), 0}};
    struct pollfd channels[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
    bool waiting = circumstances->interrupt != NULL;
    while (channels[0].fd >= 0 || channels[1].fd >= 0) {
        if (poll(channels, 2, waiting ? 5 : -1) < 0 && errno != EINTR)
            die("poll");
        if (waiting && access(circumstances->interrupt, F_OK) == 0) {
            kill(child, circumstances->signal != 0 ? circumstances->signal : SIGINT);
            waiting = false;
        }
        for (int i = 0; i < 2; i++) {
            if (channels[i].fd >= 0 && channels[i].revents != 0 && !append(&texts[i], channels[i].fd))
                channels[i].fd = -1;
        }
    }
    program->out = texts[0].bytes;
    program->err = texts[1].bytes;
    for (const char *p = program->err; (p = strchr(p, '\n')) != NULL; p++)
        program->err_lines++;
}

struct program program_run(const struct circumstances *circumstances, const char *line, ...)
{
    static const struct circumstances ordinary;
    char text[4096];
    char *arguments[MAX_ARGUMENTS + 1];
    int count = 0;
    struct program program = {0};
    int out, out_theirs, err, err_theirs, status;
    struct rusage usage;
    va_list values;

    va_start(values, line);
    vsnprintf(text, sizeof text, line, values);
    va_end(values);
    arguments[count++] = (char *)"swin-dump";
    for (char *word = strtok(text, " "); word != NULL && count < MAX_ARGUMENTS - 1; word = strtok(NULL, " ")) {
        const bool checkpoint = strcmp(word, "@") == 0;
        if (checkpoint)
            arguments[count++] = (char *)"--weights";
        arguments[count++] = checkpoint ? (char *)checkpoint_path : word;
    }
    arguments[count] = NULL;
    if (circumstances == NULL)
        circumstances = &ordinary;

    open_channel(false, &out, &out_theirs);
    open_channel(circumstances->terminal, &err, &err_theirs);
    const pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0)
        become(circumstances, arguments, out_theirs, err_theirs);
    close(out_theirs);
    close(err_theirs);
    if (circumstances->deaf) {
        close(out);
        out = -1;
    }
    collect(circumstances, child, out, err, &program);
    if (out >= 0)
        close(out);
    close(err);
    while (wait4(child, &status, 0, &usage) < 0) {
        if (errno != EINTR)
            die("wait4");
    }
    program.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    program.peak_kilobytes = usage.ru_maxrss;
    return program;
}

void program_free(struct program *program)
{
    free(program->out);
    free(program->err);
    program->out = program->err = NULL;
}

void program_assert(struct program program, int code, const char *out, const char *err)
{
    if (program.code != code)
        fail_msg("exit code %d, expected %d: '%s', '%s'", program.code, code, program.out, program.err);
    if (out != NULL && strstr(program.out, out) == NULL)
        fail_msg("stdout '%.4000s', expected '%.400s'", program.out, out);
    if (err != NULL && strstr(program.err, err) == NULL)
        fail_msg("stderr '%s', expected '%s'", program.err, err);
    program_free(&program);
}

void program_assert_failure(struct program program, int code, const char *err)
{
    if (program.err_lines != 1 || strncmp(program.err, "swin-dump: ", 11) != 0)
        fail_msg("not one line: '%s'", program.err);
    program_assert(program, code, NULL, err);
}
