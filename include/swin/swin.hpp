/* SPDX-License-Identifier: MIT */
/*
 * swin.hpp - swin.h for C++11 and later, header only.
 *
 * The same objects as in swin.h, which is the manual: shapes, units, threads and errors are described there. What this
 * header adds is ownership. Handles release themselves, can be moved and not copied; parameter structs initialise
 * themselves; feature_maps holds the memory of the maps.
 *
 *     swin::model model;
 *     swin::session session;
 *     swin::feature_maps maps;
 *     swin::error error;
 *     const swin::image image = swin::image::bgr8(mat.data, mat.rows, mat.cols, mat.step);
 *
 *     if (model.open("swin_tiny.safetensors", error) != SWIN_OK ||
 *         session.create(model, error) != SWIN_OK ||
 *         maps.fit(model, image, error) != SWIN_OK ||
 *         session.run(image, maps, error) != SWIN_OK) {
 *         std::fprintf(stderr, "%s\n", error.message);
 *         return 1;
 *     }
 *     const float *c5 = maps.data(3); // maps.info(3): 768 channels, stride 32
 *
 * Nothing throws, and the header compiles with -fno-exceptions and -fno-rtti. A program that prefers exceptions defines
 * SWIN_HPP_EXCEPTIONS before the header is included and calls the free functions at its end: they return the object or
 * throw swin::exception. Translation units with and without the macro can be linked together.
 *
 * Every class derives from, or hands out, its C struct: where something is missing here, call the C function.
 */
#ifndef SWIN_SWIN_HPP
#define SWIN_SWIN_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#if defined(SWIN_HPP_EXCEPTIONS)
#include <stdexcept>
#include <string>
#endif

#include "swin.h"

namespace swin {

/* ---------------------------------------------------------------------------------------------------------------
 * Structs that initialise themselves
 */

/* The detail of a failure; goes wherever a swin_error * is taken. */
struct error : swin_error {
    error() noexcept : swin_error() {}

    swin_status code() const noexcept { return static_cast<swin_status>(status); }
};

/* What to take from the caller rather than from the file: all defaults until fields are set. */
struct model_params : swin_model_params {
    model_params() noexcept : swin_model_params() { swin_model_params_init(this, sizeof(swin_model_params)); }
};

/* Precision, threads and profile of a session: all defaults until fields are set. */
struct session_params : swin_session_params {
    session_params() noexcept : swin_session_params() { swin_session_params_init(this, sizeof(swin_session_params)); }
};

/* A configuration: empty until preset() or the fields fill it. */
struct config : swin_config {
    config() noexcept : swin_config() { struct_size = sizeof(swin_config); }

    SWIN_NODISCARD swin_status preset(const char *name) noexcept
    {
        return swin_config_preset(this, sizeof(swin_config), name, nullptr);
    }
    SWIN_NODISCARD swin_status preset(const char *name, swin_error &err) noexcept
    {
        return swin_config_preset(this, sizeof(swin_config), name, &err);
    }
};

/* One image, borrowed: the pixels must stay until the run is over. Height comes before width, and the row stride is in
 * bytes, as in a cv::Mat (data, rows, cols, step); 0 means that rows are dense. */
struct image : swin_image {
    image() noexcept : swin_image() { swin_image_init(this, sizeof(swin_image)); }

    static image rgb8(const void *data, int rows, int columns, std::size_t step = 0) noexcept
    {
        return image(data, SWIN_PIXEL_RGB8, rows, columns, step);
    }

    static image bgr8(const void *data, int rows, int columns, std::size_t step = 0) noexcept
    {
        return image(data, SWIN_PIXEL_BGR8, rows, columns, step);
    }

    /* Three dense float planes R, G, B, already normalised. */
    static image planar(const float *data, int rows, int columns) noexcept
    {
        return image(data, SWIN_PIXEL_F32_PLANAR, rows, columns, 0);
    }

    /* 8-bit formats: other than ImageNet's mean and standard deviation, in 0-255 units, in the order R, G, B. */
    image &normalise(const float (&means)[3], const float (&deviations)[3]) noexcept
    {
        for (int i = 0; i < 3; i++) {
            mean[i] = means[i];
            std[i] = deviations[i];
        }
        return *this;
    }

    /* Zeros below and to the right, up to the next multiple of `divisor` rows and columns. What does not fit in an
     * int32_t is left to swin_session_run() to refuse. */
    image &pad_to_multiple(int divisor) noexcept
    {
        canvas_height = next_multiple(height, divisor);
        canvas_width = next_multiple(width, divisor);
        return *this;
    }

private:
    image(const void *pixels, swin_pixel_format pixel_format, int rows, int columns, std::size_t step) noexcept
        : swin_image()
    {
        swin_image_init(this, sizeof(swin_image));
        data = pixels;
        format = pixel_format;
        height = rows;
        width = columns;
        row_stride = static_cast<std::ptrdiff_t>(step);
    }

    static std::int32_t next_multiple(std::int32_t size, int divisor) noexcept
    {
        if (divisor <= 1 || size <= 0)
            return size;
        const std::int64_t padded = (static_cast<std::int64_t>(size) + divisor - 1) / divisor * divisor;
        return padded > std::numeric_limits<std::int32_t>::max() ? -1 : static_cast<std::int32_t>(padded);
    }
};

/* Arrays of these are passed where C takes arrays of the structs they derive from. */
static_assert(sizeof(image) == sizeof(swin_image), "swin::image must add no members");

/* Whose attention is asked for: the mean over the heads until `head` is set. */
struct attention_request : swin_attention_request {
    attention_request() noexcept : swin_attention_request()
    {
        swin_attention_request_init(this, sizeof(swin_attention_request));
    }

    /* What the pixel at `row`, `column` attends to, laid out on the map of the stage. */
    static attention_request on_map(int stage, int block, int row, int column) noexcept
    {
        attention_request request;
        request.stage = stage;
        request.block = block;
        request.query[0] = row;
        request.query[1] = column;
        return request;
    }

    /* All weights of a window, or of every one. */
    static attention_request in_window(int stage, int block, int window = SWIN_WINDOW_EACH) noexcept
    {
        attention_request request;
        request.stage = stage;
        request.block = block;
        request.view = SWIN_ATTENTION_IN_WINDOW;
        request.window = window;
        return request;
    }
};

/* ---------------------------------------------------------------------------------------------------------------
 * Model
 */

/* Weights and configuration, immutable once made; may be used by any number of threads. */
class model {
public:
    model() noexcept : handle_(nullptr) {}
    /* Takes the handle over. */
    explicit model(swin_model *handle) noexcept : handle_(handle) {}
    model(model &&other) noexcept : handle_(other.release()) {}
    model &operator=(model &&other) noexcept
    {
        if (this != &other)
            reset(other.release());
        return *this;
    }
    model(const model &) = delete;
    model &operator=(const model &) = delete;
    ~model() { swin_model_destroy(handle_); }

    /* What was held before is released in any case; after a failure the model is empty. */
    SWIN_NODISCARD swin_status open(const char *path, const swin_model_params *params = nullptr,
                                    swin_error *err = nullptr) noexcept
    {
        reset();
        return swin_model_open(path, params, &handle_, err);
    }
    SWIN_NODISCARD swin_status open(const char *path, swin_error &err) noexcept { return open(path, nullptr, &err); }
    SWIN_NODISCARD swin_status open(const char *path, const swin_model_params &params, swin_error &err) noexcept
    {
        return open(path, &params, &err);
    }

    SWIN_NODISCARD swin_status create_random(const swin_config &config, std::uint64_t seed,
                                             const swin_model_params *params = nullptr,
                                             swin_error *err = nullptr) noexcept
    {
        reset();
        return swin_model_create_random(&config, seed, params, &handle_, err);
    }
    SWIN_NODISCARD swin_status create_random(const swin_config &config, std::uint64_t seed, swin_error &err) noexcept
    {
        return create_random(config, seed, nullptr, &err);
    }

    /* All zero for an empty model. */
    swin::config config() const noexcept
    {
        swin::config config;
        if (swin_model_config(handle_, &config, sizeof(swin_config), nullptr) != SWIN_OK)
            config = swin::config();
        return config;
    }

    /* What was recognised; the strings live as long as the model. All zero for an empty model. */
    swin_model_info info() const noexcept
    {
        swin_model_info info = swin_model_info();
        if (swin_model_get_info(handle_, &info, sizeof info, nullptr) != SWIN_OK)
            info = swin_model_info();
        return info;
    }

    SWIN_NODISCARD swin_status output_info(int height, int width, swin_output_info (&infos)[SWIN_MAX_STAGES],
                                           swin_error *err = nullptr) const noexcept
    {
        return swin_model_output_info(handle_, height, width, infos, err);
    }

    /* What a request comes to for an image: weight_count says how many floats session::attention() writes. */
    SWIN_NODISCARD swin_status attention_info(const swin_image &image, const swin_attention_request &request,
                                              swin_attention_info &info, swin_error *err = nullptr) const noexcept
    {
        return swin_model_attention_info(handle_, image.canvas_height != 0 ? image.canvas_height : image.height,
                                         image.canvas_width != 0 ? image.canvas_width : image.width, &request, &info,
                                         sizeof info, err);
    }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    swin_model *get() const noexcept { return handle_; }
    swin_model *release() noexcept
    {
        swin_model *handle = handle_;
        handle_ = nullptr;
        return handle;
    }
    void reset(swin_model *handle = nullptr) noexcept
    {
        swin_model_destroy(handle_);
        handle_ = handle;
    }

private:
    swin_model *handle_;
};

/* ---------------------------------------------------------------------------------------------------------------
 * Maps
 */

/* All levels, for feature_maps::fit(). */
const unsigned all_levels = (1u << SWIN_MAX_STAGES) - 1;

/* The maps of a batch with the memory they lie in. Memory is kept between calls of fit() and grows when it must. */
class feature_maps {
public:
    feature_maps() noexcept : count_(0), infos_() { swin_maps_init(&maps_, sizeof maps_); }
    feature_maps(feature_maps &&other) noexcept : feature_maps() { swap(other); }
    feature_maps &operator=(feature_maps &&other) noexcept
    {
        feature_maps taken(std::move(other));
        swap(taken);
        return *this;
    }
    feature_maps(const feature_maps &) = delete;
    feature_maps &operator=(const feature_maps &) = delete;

    /* Makes room for the maps of `count` images of height x width pixels (canvas, where there is one). Bit s of
     * `levels` chooses level s; levels that the model does not have are left out. After a failure no level is chosen.
     * */
    SWIN_NODISCARD swin_status fit(const model &model, int height, int width, std::size_t count = 1,
                                   unsigned levels = all_levels, swin_layout layout = SWIN_LAYOUT_NCHW,
                                   swin_error *err = nullptr) noexcept
    {
        clear();
        swin_output_info infos[SWIN_MAX_STAGES];
        const swin_status status = swin_model_output_info(model.get(), height, width, infos, err);
        if (status != SWIN_OK)
            return status;
        for (int s = 0; s < SWIN_MAX_STAGES; s++) {
            if ((levels >> s & 1u) == 0 || infos[s].channels == 0)
                continue;
            /* output_info has checked that one image's maps fit in memory's address range. */
            const std::size_t one = static_cast<std::size_t>(infos[s].channels) *
                                    static_cast<std::size_t>(infos[s].height) *
                                    static_cast<std::size_t>(infos[s].width);
            if (count > std::numeric_limits<std::size_t>::max() / sizeof(float) / one || !reserve(s, one * count)) {
                clear();
                return no_memory(err);
            }
            infos_[s] = infos[s];
            maps_.data[s] = memory_[s].floats.get();
            maps_.capacity[s] = one * count;
        }
        maps_.layout = layout;
        count_ = count;
        return SWIN_OK;
    }
    SWIN_NODISCARD swin_status fit(const model &model, const swin_image &image, swin_error *err = nullptr) noexcept
    {
        return fit(model, image.canvas_height != 0 ? image.canvas_height : image.height,
                   image.canvas_width != 0 ? image.canvas_width : image.width, 1, all_levels, SWIN_LAYOUT_NCHW, err);
    }
    SWIN_NODISCARD swin_status fit(const model &model, const swin_image &image, swin_error &err) noexcept
    {
        return fit(model, image, &err);
    }

    bool has(int level) const noexcept { return in_range(level) && maps_.data[level] != nullptr; }

    /* [N, C, H, W], or [N, H, W, C] with SWIN_LAYOUT_NHWC; nullptr for a level that was not chosen. */
    float *data(int level) noexcept { return in_range(level) ? maps_.data[level] : nullptr; }
    const float *data(int level) const noexcept { return in_range(level) ? maps_.data[level] : nullptr; }

    /* Floats behind data(level). */
    std::size_t size(int level) const noexcept { return in_range(level) ? maps_.capacity[level] : 0; }

    /* Stride, channels, height and width; all zero for a level that was not chosen. */
    swin_output_info info(int level) const noexcept { return in_range(level) ? infos_[level] : swin_output_info(); }

    std::size_t count() const noexcept { return count_; }
    swin_layout layout() const noexcept { return static_cast<swin_layout>(maps_.layout); }
    const swin_maps *get() const noexcept { return &maps_; }

    void swap(feature_maps &other) noexcept
    {
        std::swap(maps_, other.maps_);
        std::swap(count_, other.count_);
        for (int s = 0; s < SWIN_MAX_STAGES; s++) {
            std::swap(infos_[s], other.infos_[s]);
            std::swap(memory_[s], other.memory_[s]);
        }
    }

private:
    struct memory {
        std::unique_ptr<float[]> floats;
        std::size_t size;

        memory() noexcept : floats(), size(0) {}
    };

    static bool in_range(int level) noexcept { return level >= 0 && level < SWIN_MAX_STAGES; }

    static swin_status no_memory(swin_error *err) noexcept
    {
        const char message[] = "no memory for the feature maps";
        if (err != nullptr) {
            *err = swin_error();
            err->status = SWIN_ERR_NO_MEMORY;
            for (std::size_t i = 0; i < sizeof message; i++)
                err->message[i] = message[i];
        }
        return SWIN_ERR_NO_MEMORY;
    }

    void clear() noexcept
    {
        swin_maps_init(&maps_, sizeof maps_);
        count_ = 0;
        for (int s = 0; s < SWIN_MAX_STAGES; s++)
            infos_[s] = swin_output_info();
    }

    bool reserve(int level, std::size_t size) noexcept
    {
        memory &held = memory_[level];
        if (held.size >= size)
            return true;
        held = memory();
        held.floats.reset(new (std::nothrow) float[size]);
        if (held.floats == nullptr)
            return false;
        held.size = size;
        return true;
    }

    swin_maps maps_;
    std::size_t count_;
    swin_output_info infos_[SWIN_MAX_STAGES];
    memory memory_[SWIN_MAX_STAGES];
};

/* ---------------------------------------------------------------------------------------------------------------
 * Session
 */

/* Scratch memory and threads for one worker; one thread at a time. Keeps its model alive. */
class session {
public:
    session() noexcept : handle_(nullptr) {}
    /* Takes the handle over. */
    explicit session(swin_session *handle) noexcept : handle_(handle) {}
    session(session &&other) noexcept : handle_(other.release()) {}
    session &operator=(session &&other) noexcept
    {
        if (this != &other)
            reset(other.release());
        return *this;
    }
    session(const session &) = delete;
    session &operator=(const session &) = delete;
    ~session() { swin_session_destroy(handle_); }

    /* What was held before is released in any case; after a failure the session is empty. */
    SWIN_NODISCARD swin_status create(const model &model, const swin_session_params *params = nullptr,
                                      swin_error *err = nullptr) noexcept
    {
        reset();
        return swin_session_create(model.get(), params, &handle_, err);
    }
    SWIN_NODISCARD swin_status create(const model &model, swin_error &err) noexcept
    {
        return create(model, nullptr, &err);
    }
    SWIN_NODISCARD swin_status create(const model &model, const swin_session_params &params, swin_error &err) noexcept
    {
        return create(model, &params, &err);
    }

    /* Into maps that feature_maps::fit() or the caller has made room for. */
    SWIN_NODISCARD swin_status run(const swin_image *images, std::size_t count, const swin_maps &maps,
                                   swin_error *err = nullptr) noexcept
    {
        return swin_session_run(handle_, images, count, &maps, err);
    }
    SWIN_NODISCARD swin_status run(const swin_image *images, std::size_t count, feature_maps &maps,
                                   swin_error *err = nullptr) noexcept
    {
        return swin_session_run(handle_, images, count, maps.get(), err);
    }
    SWIN_NODISCARD swin_status run(const swin_image &image, feature_maps &maps, swin_error *err = nullptr) noexcept
    {
        return swin_session_run(handle_, &image, 1, maps.get(), err);
    }
    SWIN_NODISCARD swin_status run(const swin_image &image, feature_maps &maps, swin_error &err) noexcept
    {
        return run(image, maps, &err);
    }

    /* Attention weights, into `capacity` floats of the caller; see swin_session_attention(). */
    SWIN_NODISCARD swin_status attention(const swin_image &image, const swin_attention_request &request, float *weights,
                                         std::size_t capacity, swin_error *err = nullptr) noexcept
    {
        swin_attention attention = swin_attention();
        swin_attention_init(&attention, sizeof attention);
        attention.weights = weights;
        attention.weight_capacity = capacity;
        return swin_session_attention(handle_, &image, &request, &attention, err);
    }

    /* All zero for an empty session. */
    swin_session_info info() const noexcept
    {
        swin_session_info info = swin_session_info();
        if (swin_session_get_info(handle_, &info, sizeof info, nullptr) != SWIN_OK)
            info = swin_session_info();
        return info;
    }

    /* Where the last run spent its time; all zero unless the session was created with `profile`. */
    swin_profile profile() const noexcept
    {
        swin_profile profile = swin_profile();
        if (swin_session_get_profile(handle_, &profile, sizeof profile, nullptr) != SWIN_OK)
            profile = swin_profile();
        return profile;
    }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    swin_session *get() const noexcept { return handle_; }
    swin_session *release() noexcept
    {
        swin_session *handle = handle_;
        handle_ = nullptr;
        return handle;
    }
    void reset(swin_session *handle = nullptr) noexcept
    {
        swin_session_destroy(handle_);
        handle_ = handle;
    }

private:
    swin_session *handle_;
};

/* ---------------------------------------------------------------------------------------------------------------
 * Exceptions, on request
 */

#if defined(SWIN_HPP_EXCEPTIONS)

/* A status other than SWIN_OK, with the library's message. */
class exception : public std::runtime_error {
public:
    exception(swin_status status, const char *message)
        : std::runtime_error(message[0] != '\0' ? message : swin_status_string(status)), status_(status)
    {
    }

    swin_status status() const noexcept { return status_; }

private:
    swin_status status_;
};

/* Throws swin::exception unless `status` is SWIN_OK. */
inline void check(swin_status status, const swin_error &err)
{
    if (status != SWIN_OK)
        throw exception(status, err.message);
}

inline config preset(const std::string &name)
{
    config config;
    error err;
    check(config.preset(name.c_str(), err), err);
    return config;
}

inline model open_model(const std::string &path, const swin_model_params *params = nullptr)
{
    model model;
    error err;
    check(model.open(path.c_str(), params, &err), err);
    return model;
}

inline model random_model(const swin_config &config, std::uint64_t seed, const swin_model_params *params = nullptr)
{
    model model;
    error err;
    check(model.create_random(config, seed, params, &err), err);
    return model;
}

inline session make_session(const model &model, const swin_session_params *params = nullptr)
{
    session session;
    error err;
    check(session.create(model, params, &err), err);
    return session;
}

/* The maps of one image, in memory of their own. */
inline feature_maps run(session &session, const model &model, const swin_image &image)
{
    feature_maps maps;
    error err;
    check(maps.fit(model, image, &err), err);
    check(session.run(image, maps, &err), err);
    return maps;
}

/* The maps of `count` images, into memory that fit() made. */
inline void run(session &session, const swin_image *images, std::size_t count, feature_maps &maps)
{
    error err;
    check(session.run(images, count, maps, &err), err);
}

#endif

} // namespace swin

#endif
