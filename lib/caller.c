/* SPDX-License-Identifier: MIT */
#include "caller.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "exec/plan.h"
#include "model/config.h"

swin_status sw_take_struct(void *ours, size_t size, const void *theirs, size_t minimum, const char *name,
                           swin_error *err)
{
    size_t struct_size;
    memcpy(&struct_size, theirs, sizeof struct_size);
    if (struct_size < minimum || struct_size > 16 * size)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "%s has struct_size %zu, expected %zu: was it initialised?", name,
                       struct_size, size);
    for (size_t i = size; i < struct_size; i++) {
        if (((const unsigned char *)theirs)[i] != 0)
            return sw_fail(err, SWIN_ERR_ARGUMENT, "%s has a field set that this libswin (%s) does not know", name,
                           SW_VERSION_TEXT);
    }
    memset(ours, 0, size);
    memcpy(ours, theirs, struct_size < size ? struct_size : size);
    return SWIN_OK;
}

swin_status sw_give_struct(void *theirs, size_t struct_size, const void *ours, size_t size, const char *name,
                           swin_error *err)
{
    if (theirs == NULL)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "%s is NULL", name);
    if (struct_size < sizeof(size_t) || struct_size > 16 * size)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "struct_size of %s is %zu, expected %zu", name, struct_size, size);
    memset(theirs, 0, struct_size);
    memcpy(theirs, ours, struct_size < size ? struct_size : size);
    memcpy(theirs, &struct_size, sizeof struct_size);
    return SWIN_OK;
}

swin_status sw_require(const void *pointer, const char *name, swin_error *err)
{
    return pointer != NULL ? SWIN_OK : sw_fail(err, SWIN_ERR_ARGUMENT, "%s is NULL", name);
}

swin_status sw_require_range(int32_t value, int32_t low, int32_t high, const char *name, swin_error *err)
{
    if (value >= low && value <= high)
        return SWIN_OK;
    return sw_fail(err, SWIN_ERR_ARGUMENT, "%s is %d, expected %d to %d", name, value, low, high);
}

static swin_status check_normalisation(const swin_image *image, size_t index, swin_error *err)
{
    for (int i = 0; i < 3; i++) {
        if (!isfinite(image->mean[i]))
            return sw_fail(err, SWIN_ERR_ARGUMENT, "image %zu: mean[%d] is %f, expected a finite number", index, i,
                           (double)image->mean[i]);
        if (!isfinite(image->std[i]) || !(image->std[i] > 0.0f) || !isfinite(1.0f / image->std[i]))
            return sw_fail(err, SWIN_ERR_ARGUMENT, "image %zu: std[%d] is %g, expected a positive number", index, i,
                           (double)image->std[i]);
    }
    return SWIN_OK;
}

swin_status sw_take_image(sw_pixels *pixels, int32_t canvas[2], const swin_image *image, size_t index,
                          swin_error *err)
{
    if (image->data == NULL)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "image %zu: data is NULL", index);
    const bool planar = image->format == SWIN_PIXEL_F32_PLANAR;
    if (image->format < SWIN_PIXEL_RGB8 || image->format > SWIN_PIXEL_F32_PLANAR)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "image %zu: format is %d, expected a swin_pixel_format", index,
                       image->format);
    if (image->height < 1 || image->width < 1)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "image %zu is %d x %d pixels, expected at least 1 x 1", index,
                       image->height, image->width);
    const int32_t wanted[2] = {image->canvas_height != 0 ? image->canvas_height : image->height,
                               image->canvas_width != 0 ? image->canvas_width : image->width};
    if (wanted[0] < image->height || wanted[1] < image->width)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "image %zu: canvas of %d x %d is smaller than the image, %d x %d", index,
                       wanted[0], wanted[1], image->height, image->width);
    if (index == 0) {
        canvas[0] = wanted[0];
        canvas[1] = wanted[1];
    } else if (wanted[0] != canvas[0] || wanted[1] != canvas[1]) {
        return sw_fail(err, SWIN_ERR_ARGUMENT, "image %zu is %d x %d, expected %d x %d as image 0", index, wanted[0],
                       wanted[1], canvas[0], canvas[1]);
    }
    const ptrdiff_t dense = (ptrdiff_t)image->width * (planar ? 4 : 3);
    const ptrdiff_t stride = image->row_stride != 0 ? image->row_stride : dense;
    if (stride == PTRDIFF_MIN || (image->height > 1 && stride < dense && stride > -dense))
        return sw_fail(err, SWIN_ERR_ARGUMENT, "image %zu: row_stride is %td bytes, a row has %td", index, stride,
                       dense);
    ptrdiff_t span;
    if (__builtin_mul_overflow(stride < 0 ? -stride : stride, (ptrdiff_t)image->height, &span))
        return sw_fail(err, SWIN_ERR_ARGUMENT, "image %zu: %d rows of row_stride %td do not fit the address range",
                       index, image->height, stride);
    *pixels = (sw_pixels){.data = image->data,
                          .height = image->height,
                          .width = image->width,
                          .row_stride = stride,
                          .planar_f32 = planar,
                          .bgr = image->format == SWIN_PIXEL_BGR8};
    if (planar) {
        /* dense planes follow one another also where their rows are stored upside down */
        pixels->plane_stride = image->plane_stride != 0 ? image->plane_stride : span;
        ptrdiff_t end;
        if (__builtin_mul_overflow(pixels->plane_stride, (ptrdiff_t)2, &end) ||
            __builtin_add_overflow(end, end < 0 ? -span : span, &end))
            return sw_fail(err, SWIN_ERR_ARGUMENT,
                           "image %zu: three planes of plane_stride %td do not fit the address range", index,
                           pixels->plane_stride);
        if (((uintptr_t)image->data | (uintptr_t)stride | (uintptr_t)pixels->plane_stride) % sizeof(float) != 0)
            return sw_fail(err, SWIN_ERR_ARGUMENT, "image %zu: float32 data and strides are to be multiples of 4 bytes",
                           index);
        return SWIN_OK;
    }
    SW_TRY(check_normalisation(image, index, err));
    for (int i = 0; i < 3; i++) {
        pixels->scale[i] = (float)(1.0 / (double)image->std[i]);
        pixels->shift[i] = (float)(-(double)image->mean[i] / (double)image->std[i]);
    }
    return SWIN_OK;
}

/* Two levels in one place: the second would destroy the first. `floats` are what each level takes. */
static swin_status check_apart(const swin_maps *maps, const size_t floats[SWIN_MAX_STAGES], swin_error *err)
{
    for (int32_t a = 0; a < SWIN_MAX_STAGES; a++) {
        for (int32_t b = a + 1; b < SWIN_MAX_STAGES && maps->data[a] != NULL; b++) {
            const uintptr_t first = (uintptr_t)maps->data[a], second = (uintptr_t)maps->data[b];
            if (maps->data[b] != NULL && first < second + floats[b] * sizeof(float) &&
                second < first + floats[a] * sizeof(float))
                return sw_fail(err, SWIN_ERR_ARGUMENT,
                               "maps.data[%d] and maps.data[%d] overlap: level %d takes %zu floats, level %d %zu", a, b,
                               a, floats[a], b, floats[b]);
        }
    }
    return SWIN_OK;
}

swin_status sw_take_maps(swin_maps *ours, const swin_maps *theirs, const swin_config *config, const int32_t canvas[2],
                         size_t count, swin_error *err)
{
    SW_TRY(sw_take_struct(ours, sizeof *ours, theirs, sizeof ours->struct_size, "maps", err));
    const swin_maps *maps = ours;
    SW_TRY(sw_require_range(maps->layout, 0, SWIN_LAYOUT_NHWC, "maps.layout", err));
    SW_TRY(sw_require_range(maps->reserved, 0, 0, "maps.reserved", err));
    int32_t sizes[SWIN_MAX_STAGES][2];
    SW_TRY(sw_plan_maps(config, canvas[0], canvas[1], sizes, err));
    bool any = false;
    size_t floats[SWIN_MAX_STAGES] = {0};
    for (int32_t s = 0; s < SWIN_MAX_STAGES; s++) {
        if (maps->data[s] == NULL)
            continue;
        any = true;
        if (s >= config->stages)
            return sw_fail(err, SWIN_ERR_ARGUMENT, "level %d is asked for, the model has levels 0 to %d", s,
                           config->stages - 1);
        const size_t image_floats =
            (size_t)sizes[s][0] * (size_t)sizes[s][1] * (size_t)sw_config_channels(config, s);
        if (!sw_mul(image_floats, count, &floats[s]) || floats[s] > PTRDIFF_MAX / sizeof(float))
            return sw_fail(err, SWIN_ERR_LIMIT, "level %d of %zu images does not fit the address range", s, count);
        if (maps->capacity[s] < floats[s])
            return sw_fail(err, SWIN_ERR_ARGUMENT, "maps.capacity[%d] is %zu floats, expected at least %zu", s,
                           maps->capacity[s], floats[s]);
        if ((uintptr_t)maps->data[s] % sizeof(float) != 0)
            return sw_fail(err, SWIN_ERR_ARGUMENT, "maps.data[%d] is not aligned to 4 bytes", s);
    }
    if (!any)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "no level is asked for: every maps.data is NULL");
    return check_apart(maps, floats, err);
}
