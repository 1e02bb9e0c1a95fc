/* SPDX-License-Identifier: MIT */
#include "crowd.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models.h"
#include "picture.h"

static const int32_t sizes[CROWD_SIZES][2] = {{33, 17}, {1, 1}, {60, 97}, {5, 120}, {28, 28}};

void crowd_make(crowd *c, const swin_model *model, int32_t precision)
{
    *c = (crowd){.model = model, .precision = precision};
    swin_session *session = models_session(model, precision, 1);
    for (int i = 0; i < CROWD_SIZES; i++) {
        c->planes[i] = picture_planes(sizes[i][0], sizes[i][1], (uint64_t)i, 1);
        c->images[i] = picture_image(c->planes[i], sizes[i][0], sizes[i][1]);
        c->expected[i] = picture_maps(model, sizes[i][0], sizes[i][1], 1, 0xf, SWIN_LAYOUT_NCHW);
        swin_error err;
        if (swin_session_run(session, &c->images[i], 1, &c->expected[i], &err) != SWIN_OK)
            fail_msg("%s", err.message);
    }
    swin_session_destroy(session);
}

void crowd_release(crowd *c)
{
    for (int i = 0; i < CROWD_SIZES; i++) {
        picture_maps_release(&c->expected[i]);
        free(c->planes[i]);
    }
}

/* Maps of the same sizes, without assertions. */
static bool make_room(swin_maps *maps, const swin_maps *like)
{
    *maps = *like;
    bool complete = true;
    for (int s = 0; s < SWIN_MAX_STAGES; s++) {
        maps->data[s] = like->data[s] == NULL ? NULL : malloc(like->capacity[s] * sizeof(float));
        complete = complete && (maps->data[s] != NULL) == (like->data[s] != NULL);
    }
    return complete;
}

bool crowd_runs(const crowd *c, swin_session *session, int first)
{
    bool good = true;
    for (int i = 0; i < CROWD_SIZES && good; i++) {
        const int which = (first + i) % CROWD_SIZES;
        swin_maps maps;
        good = make_room(&maps, &c->expected[which]) &&
               swin_session_run(session, &c->images[which], 1, &maps, NULL) == SWIN_OK &&
               picture_maps_equal(&maps, &c->expected[which]);
        picture_maps_release(&maps);
    }
    return good;
}

bool crowd_visit(const crowd *c, int32_t threads, int first)
{
    const swin_session_params params = {.struct_size = sizeof params, .precision = c->precision, .threads = threads};
    swin_session *session;
    if (swin_session_create(c->model, &params, &session, NULL) != SWIN_OK)
        return false;
    const bool good = crowd_runs(c, session, first) && crowd_runs(c, session, first + 1);
    swin_session_destroy(session);
    return good;
}

int crowd_thread_count(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = -2; /* . and .. */
    while (tasks != NULL && readdir(tasks) != NULL)
        count++;
    if (tasks != NULL)
        closedir(tasks);
    return count;
}
