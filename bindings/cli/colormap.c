/* SPDX-License-Identifier: MIT */
#include "colormap.h"

#include <math.h>

struct oklab {
    double lightness, a, b;
};

/* Linear light, in and out of [0, 1] for colours that a screen has and has not. */
static void linear_rgb(struct oklab lab, double rgb[3])
{
    const double l = pow(lab.lightness + 0.3963377774 * lab.a + 0.2158037573 * lab.b, 3);
    const double m = pow(lab.lightness - 0.1055613458 * lab.a - 0.0638541728 * lab.b, 3);
    const double s = pow(lab.lightness - 0.0894841775 * lab.a - 1.2914855480 * lab.b, 3);
    rgb[0] = +4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s;
    rgb[1] = -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s;
    rgb[2] = -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s;
}

static bool on_screen(const double rgb[3])
{
    for (int i = 0; i < 3; i++) {
        if (rgb[i] < 0 || rgb[i] > 1)
            return false;
    }
    return true;
}

static uint8_t srgb_byte(double linear)
{
    const double value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;
    return (uint8_t)lround(255 * fmin(fmax(value, 0), 1));
}

static struct colour path_colour(double t)
{
    const double pi = 3.14159265358979323846;
    const double lightness = 0.13 + 0.84 * t;
    const double hue = (276 + 183 * pow(t, 1.1)) * pi / 180;
    double chroma = 0.183 * pow(sin(pi * (0.05 + 0.84 * t)), 0.68);
    double rgb[3];

    linear_rgb((struct oklab){lightness, chroma * cos(hue), chroma * sin(hue)}, rgb);
    while (!on_screen(rgb) && chroma >= 1e-3) {
        chroma *= 0.995;
        linear_rgb((struct oklab){lightness, chroma * cos(hue), chroma * sin(hue)}, rgb);
    }
    return (struct colour){srgb_byte(rgb[0]), srgb_byte(rgb[1]), srgb_byte(rgb[2])};
}

void colormap_create(struct colormap *map)
{
    for (int i = 0; i < COLORMAP_SIZE; i++)
        map->entries[i] = path_colour(i / (double)(COLORMAP_SIZE - 1));
}

struct colour colormap_at(const struct colormap *map, double value)
{
    if (isnan(value))
        return (struct colour){128, 128, 128};
    const double index = fmin(fmax(value, 0), 1) * (COLORMAP_SIZE - 1);
    return map->entries[(int)lround(index)];
}
