/* SPDX-License-Identifier: MIT */
/* A program outside libswin's tree: uses the installed header and library, and computes maps of one image. */
#include <stdio.h>
#include <stdlib.h>

#include <swin/swin.h>

int main(void)
{
    static unsigned char pixels[32 * 48 * 3];
    static float c5[256 * 1 * 2];
    swin_config config;
    swin_model *model;
    swin_session *session;
    swin_image image;
    swin_maps maps;
    swin_error err;
    int s;

    if (swin_abi_version() != SWIN_ABI_VERSION) {
        fprintf(stderr, "the library is another one than the header\n");
        return 1;
    }
    if (swin_config_preset(&config, sizeof config, "swin_tiny_patch4_window7_224", &err) != SWIN_OK)
        goto fail;
    config.embed_dim = 32;
    for (s = 0; s < config.stages; s++) {
        config.depths[s] = 1;
        config.heads[s] = 1 << s;
    }
    if (swin_model_create_random(&config, 1, NULL, &model, &err) != SWIN_OK)
        goto fail;
    if (swin_session_create(model, NULL, &session, &err) != SWIN_OK) {
        swin_model_destroy(model);
        goto fail;
    }
    swin_image_init(&image, sizeof image);
    image.data = pixels;
    image.height = 32;
    image.width = 48;
    swin_maps_init(&maps, sizeof maps);
    maps.data[3] = c5;
    maps.capacity[3] = sizeof c5 / sizeof c5[0];
    if (swin_session_run(session, &image, 1, &maps, &err) != SWIN_OK) {
        swin_session_destroy(session);
        swin_model_destroy(model);
        goto fail;
    }
    printf("libswin %s: c5[0] = %g\n", swin_version_string(), (double)c5[0]);
    swin_session_destroy(session);
    swin_model_destroy(model);
    return c5[0] == c5[0] ? 0 : 1;

fail:
    fprintf(stderr, "%s\n", err.message);
    return 1;
}
