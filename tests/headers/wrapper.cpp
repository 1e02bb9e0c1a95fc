/* SPDX-License-Identifier: MIT */
/*
 * swin.hpp over the real library: handles that move and release, structs that initialise themselves, maps that keep
 * their memory, and the same numbers as the C calls. Built twice: without exceptions, and with SWIN_HPP_EXCEPTIONS.
 */
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include <swin/swin.hpp>

static int failures;

#define EXPECT(condition)                                                           \
    do {                                                                            \
        if (!(condition)) {                                                         \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
            failures++;                                                             \
        }                                                                           \
    } while (0)

static_assert(!std::is_copy_constructible<swin::model>::value && !std::is_copy_assignable<swin::model>::value,
              "a model has one owner");
static_assert(!std::is_copy_constructible<swin::session>::value && !std::is_copy_assignable<swin::session>::value,
              "a session has one owner");
static_assert(!std::is_copy_constructible<swin::feature_maps>::value, "maps are not copied by accident");
static_assert(std::is_nothrow_move_constructible<swin::model>::value, "handles move");
static_assert(std::is_nothrow_move_assignable<swin::session>::value, "handles move");
static_assert(std::is_nothrow_move_constructible<swin::feature_maps>::value, "maps move");

/* As a cv::Mat of type CV_8UC3 shows itself: rows may be padded. */
struct mat {
    std::vector<unsigned char> bytes;
    unsigned char *data;
    int rows, cols;
    std::size_t step;

    mat(int height, int width, std::size_t row_bytes)
        : bytes(static_cast<std::size_t>(height) * row_bytes), data(bytes.data()), rows(height), cols(width),
          step(row_bytes)
    {
        unsigned state = 1;
        for (std::size_t i = 0; i < bytes.size(); i++) {
            state = state * 1103515245u + 12345u;
            bytes[i] = static_cast<unsigned char>(state >> 16);
        }
    }
};

static swin::config small_config()
{
    swin::config config;
    swin::error err;
    EXPECT(config.preset("swin_tiny_patch4_window7_224", err) == SWIN_OK);
    config.embed_dim = 32;
    for (int s = 0; s < config.stages; s++) {
        config.depths[s] = 2;
        config.heads[s] = 1 << s;
    }
    return config;
}

static swin::model small_model()
{
    swin::model model;
    swin::error err;
    EXPECT(model.create_random(small_config(), 1, err) == SWIN_OK);
    if (!model)
        std::fprintf(stderr, "%s\n", err.message);
    return model;
}

static void handles_move_and_release()
{
    swin::model first = small_model();
    swin_model *const handle = first.get();
    swin::model second(std::move(first));
    EXPECT(!first && second.get() == handle);
    first = std::move(second);
    EXPECT(!second && first.get() == handle);
    swin::model &alias = first;
    first = std::move(alias);
    EXPECT(first.get() == handle);

    swin::session session;
    EXPECT(session.create(first) == SWIN_OK && session);
    first.reset();
    EXPECT(!first);
    EXPECT(session.info().threads >= 1); /* the model lives on behind its session */

    swin::model owner(small_model().release());
    EXPECT(owner);
    swin_model_destroy(owner.release());
    EXPECT(!owner);
}

static void failures_leave_empty_handles()
{
    swin::error err;
    swin::model model = small_model();
    EXPECT(model.open("/nonexistent/swin.safetensors", err) == SWIN_ERR_IO);
    EXPECT(!model && err.code() == SWIN_ERR_IO && std::strstr(err.message, "/nonexistent/swin.safetensors") != nullptr);
    EXPECT(model.info().dialect == nullptr && model.config().stages == 0);

    swin::session session;
    EXPECT(session.create(model, err) == SWIN_ERR_ARGUMENT && !session);
    EXPECT(session.info().threads == 0 && session.profile().total_ms == 0);

    swin::feature_maps maps;
    EXPECT(maps.fit(model, swin::image::rgb8("abc", 1, 1), err) == SWIN_ERR_ARGUMENT);
    EXPECT(!maps.has(0) && maps.data(0) == nullptr && maps.size(0) == 0);
    EXPECT(session.run(swin::image::rgb8("abc", 1, 1), maps, err) == SWIN_ERR_ARGUMENT);

    swin::config config;
    EXPECT(config.preset("no such network", err) == SWIN_ERR_ARGUMENT);
}

static void maps_know_their_shape()
{
    const swin::model model = small_model();
    swin::error err;
    swin::feature_maps maps;
    EXPECT(maps.fit(model, 97, 131, 2, 1u << 1 | 1u << 3, SWIN_LAYOUT_NHWC, &err) == SWIN_OK);
    EXPECT(!maps.has(0) && maps.has(1) && !maps.has(2) && maps.has(3) && !maps.has(4) && !maps.has(-1));
    EXPECT(maps.count() == 2 && maps.layout() == SWIN_LAYOUT_NHWC);
    const swin_output_info info = maps.info(1);
    EXPECT(info.stride == 8 && info.channels == 64 && info.height == 13 && info.width == 17);
    EXPECT(maps.size(1) == 2u * 64 * 13 * 17);
    EXPECT(maps.info(0).channels == 0);

    /* A smaller image finds its memory there; another object can take it over. */
    const float *const held = maps.data(1);
    EXPECT(maps.fit(model, 64, 64) == SWIN_OK && maps.data(1) == held && maps.count() == 1);
    swin::feature_maps taken(std::move(maps));
    EXPECT(taken.data(1) == held && !maps.has(1));
    maps = std::move(taken);
    EXPECT(maps.data(1) == held && !taken.has(1));

    /* More floats than an address can count is a status, not a bad_alloc. */
    EXPECT(maps.fit(model, 64, 64, static_cast<std::size_t>(-1) / 8, swin::all_levels, SWIN_LAYOUT_NCHW, &err) ==
           SWIN_ERR_NO_MEMORY);
    EXPECT(err.code() == SWIN_ERR_NO_MEMORY && err.message[0] != '\0' && !maps.has(0));

    swin::image padded = swin::image::rgb8("", 97, 131).pad_to_multiple(32);
    EXPECT(padded.canvas_height == 128 && padded.canvas_width == 160);
    EXPECT(maps.fit(model, padded) == SWIN_OK && maps.info(0).height == 32 && maps.info(0).width == 40);
    padded = swin::image::rgb8("", std::numeric_limits<int>::max(), 1).pad_to_multiple(32);
    EXPECT(padded.canvas_height < 0);
}

static void numbers_are_those_of_c()
{
    const swin::model model = small_model();
    swin::session_params params;
    params.threads = 2;
    params.precision = SWIN_PRECISION_F32;
    params.profile = 1;
    swin::session session;
    swin::error err;
    EXPECT(session.create(model, params, err) == SWIN_OK);

    const mat picture(45, 61, 61 * 3 + 5);
    const float means[3] = {1, 2, 3};
    const float deviations[3] = {40, 50, 60};
    swin::image image =
        swin::image::bgr8(picture.data, picture.rows, picture.cols, picture.step).normalise(means, deviations);
    swin::feature_maps maps;
    EXPECT(maps.fit(model, image, err) == SWIN_OK);
    EXPECT(session.run(image, maps, err) == SWIN_OK);
    EXPECT(session.profile().total_ms > 0);

    std::vector<unsigned char> rgb(45 * 61 * 3);
    for (std::size_t y = 0; y < 45; y++)
        for (std::size_t x = 0; x < 61; x++)
            for (std::size_t c = 0; c < 3; c++)
                rgb[(y * 61 + x) * 3 + c] = picture.data[y * picture.step + x * 3 + 2 - c];
    swin_image c_image;
    swin_image_init(&c_image, sizeof c_image);
    c_image.data = rgb.data();
    c_image.height = 45;
    c_image.width = 61;
    std::memcpy(c_image.mean, means, sizeof means);
    std::memcpy(c_image.std, deviations, sizeof deviations);
    swin_maps c_maps;
    swin_maps_init(&c_maps, sizeof c_maps);
    std::vector<std::vector<float>> floats(SWIN_MAX_STAGES);
    for (int s = 0; s < model.config().stages; s++) {
        floats[static_cast<std::size_t>(s)].resize(maps.size(s));
        c_maps.data[s] = floats[static_cast<std::size_t>(s)].data();
        c_maps.capacity[s] = maps.size(s);
    }
    EXPECT(swin_session_run(session.get(), &c_image, 1, &c_maps, nullptr) == SWIN_OK);
    for (int s = 0; s < model.config().stages; s++)
        EXPECT(maps.size(s) > 0 && std::memcmp(maps.data(s), c_maps.data[s], maps.size(s) * sizeof(float)) == 0);

    /* A batch goes in as an array of swin::image. */
    const swin::image batch[2] = {image, image};
    swin::feature_maps two;
    EXPECT(two.fit(model, 45, 61, 2) == SWIN_OK);
    EXPECT(session.run(batch, 2, two, &err) == SWIN_OK);
    for (int s = 0; s < model.config().stages; s++)
        EXPECT(std::memcmp(two.data(s) + maps.size(s), maps.data(s), maps.size(s) * sizeof(float)) == 0);
}

static void attention_is_that_of_c()
{
    const swin::model model = small_model();
    swin::session session;
    swin::error err;
    EXPECT(session.create(model, err) == SWIN_OK);
    const mat picture(45, 61, 61 * 3);
    swin::image image = swin::image::rgb8(picture.data, picture.rows, picture.cols);
    image.pad_to_multiple(32);

    swin::attention_request request = swin::attention_request::on_map(1, 1, 63, 9);
    EXPECT(request.head == SWIN_HEAD_MEAN && request.view == SWIN_ATTENTION_ON_MAP);
    swin_attention_info info = swin_attention_info();
    EXPECT(model.attention_info(image, request, info, &err) == SWIN_OK);
    EXPECT(info.map[0] == 8 && info.map[1] == 8 && info.cell[0] == 7 && info.cell[1] == 1 && info.weight_count == 64);
    std::vector<float> weights(info.weight_count);
    EXPECT(session.attention(image, request, weights.data(), weights.size() - 1, &err) == SWIN_ERR_ARGUMENT);
    EXPECT(session.attention(image, request, weights.data(), weights.size(), &err) == SWIN_OK);

    std::vector<float> expected(info.weight_count);
    swin_attention attention;
    swin_attention_init(&attention, sizeof attention);
    attention.weights = expected.data();
    attention.weight_capacity = expected.size();
    EXPECT(swin_session_attention(session.get(), &image, &request, &attention, nullptr) == SWIN_OK);
    EXPECT(weights == expected);

    request = swin::attention_request::in_window(0, 0);
    EXPECT(model.attention_info(image, request, info) == SWIN_OK);
    EXPECT(info.weight_count == 9u * 49 * 49);
    request = swin::attention_request::in_window(0, 0, 9);
    EXPECT(model.attention_info(image, request, info, &err) == SWIN_ERR_ARGUMENT && err.message[0] != '\0');
}

#if defined(SWIN_HPP_EXCEPTIONS)
static void failures_throw_on_request()
{
    try {
        swin::open_model("/nonexistent/swin.safetensors");
        EXPECT(!"open_model() threw");
    } catch (const swin::exception &e) {
        EXPECT(e.status() == SWIN_ERR_IO && std::strstr(e.what(), "/nonexistent/swin.safetensors") != nullptr);
    }
    try {
        swin::preset("no such network");
        EXPECT(!"preset() threw");
    } catch (const std::runtime_error &e) {
        EXPECT(e.what()[0] != '\0');
    }
    const mat picture(32, 32, 32 * 3);
    const swin::model model = swin::random_model(small_config(), 1);
    swin::session session = swin::make_session(model);
    const swin::image image = swin::image::rgb8(picture.data, picture.rows, picture.cols, picture.step);
    swin::feature_maps maps = swin::run(session, model, image);
    EXPECT(maps.has(3) && maps.info(3).stride == 32);
    swin::run(session, &image, 1, maps);
    try {
        swin::run(session, model, swin::image());
        EXPECT(!"run() threw");
    } catch (const swin::exception &e) {
        EXPECT(e.status() == SWIN_ERR_ARGUMENT);
    }
}
#endif

int main()
{
    handles_move_and_release();
    failures_leave_empty_handles();
    maps_know_their_shape();
    numbers_are_those_of_c();
    attention_is_that_of_c();
#if defined(SWIN_HPP_EXCEPTIONS)
    failures_throw_on_request();
#endif
    std::printf("%d failures\n", failures);
    return failures != 0;
}
