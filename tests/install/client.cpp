/* SPDX-License-Identifier: MIT */
/* A C++ program outside libswin's tree: the same as client.c through swin.hpp. */
#define SWIN_HPP_EXCEPTIONS
#include <cstdio>
#include <vector>

#include <swin/swin.hpp>

int main()
{
    try {
        swin::config config = swin::preset("swin_tiny_patch4_window7_224");
        config.embed_dim = 32;
        for (int s = 0; s < config.stages; s++) {
            config.depths[s] = 1;
            config.heads[s] = 1 << s;
        }
        const swin::model model = swin::random_model(config, 1);
        swin::session session = swin::make_session(model);
        const std::vector<unsigned char> pixels(32 * 48 * 3);
        const swin::feature_maps maps = swin::run(session, model, swin::image::rgb8(pixels.data(), 32, 48));
        std::printf("libswin %s: c5[0] = %g\n", swin_version_string(), static_cast<double>(maps.data(3)[0]));
        return maps.size(3) == 256 * 1 * 2 ? 0 : 1;
    } catch (const swin::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
