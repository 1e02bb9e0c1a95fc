/* SPDX-License-Identifier: MIT */
#include "attention_sheet.h"

#include <math.h>

#include "resample.h"
#include "sheet_parts.h"

enum {
    PANEL_AREA = 260000, /* pixels of the photo's panel, whatever its shape */
    PANEL_LEAST = 120,
    PANEL_MOST = 1100,
    WIDTH_LEAST = 330, /* that a label needs */
    CELLS_LEAST = 5    /* across what is shown enlarged */
};

static const struct colour light = {255, 255, 255};
static const struct colour dark = {0, 0, 0};

/* A part of the photo, and the panel that shows it. */
struct view {
    const struct attention *attention;
    const struct colormap *colours;
    struct rectangle part, panel;
};

/* The cell that a pixel of the panel lies in, as an index into the weights. */
static size_t cell_at(const struct view *view, double x, double y)
{
    const swin_attention_info *info = &view->attention->info;
    const struct rectangle part = view->part, panel = view->panel;
    const double row = (part.y + (y - panel.y) * part.height / panel.height) / info->stride;
    const double column = (part.x + (x - panel.x) * part.width / panel.width) / info->stride;
    const double last_row = info->map[0] - 1, last_column = info->map[1] - 1;
    return (size_t)fmin(fmax(floor(row), 0), last_row) * (size_t)info->map[1] +
           (size_t)fmin(fmax(floor(column), 0), last_column);
}

static bool is_seen(const struct view *view, size_t cell)
{
    return view->attention->weights[cell] >= ATTENTION_SEEN;
}

static void blend(uint8_t *pixel, struct colour colour, double share)
{
    const uint8_t channels[3] = {colour.red, colour.green, colour.blue};
    for (int i = 0; i < 3; i++)
        pixel[i] = (uint8_t)lround(pixel[i] + share * (channels[i] - pixel[i]));
}

/* Outside of the window a dark, gray memory of the photo; inside the colour of the weight, with the photo's light and
 * shade in it. */
static void tint(const struct view *view, uint8_t *pixel, size_t cell)
{
    const struct value_range range = view->attention->range;
    const double luminance = (0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]) / 255;
    if (!is_seen(view, cell)) {
        for (int i = 0; i < 3; i++)
            pixel[i] = (uint8_t)lround(0.34 * (0.4 * pixel[i] + 0.6 * 255 * luminance) + 6);
        return;
    }
    const double span = range.high - range.low;
    const double value = span > 0 ? ((double)view->attention->weights[cell] - range.low) / span : 0.5;
    const struct colour colour = colormap_at(view->colours, value);
    const uint8_t channels[3] = {colour.red, colour.green, colour.blue};
    for (int i = 0; i < 3; i++)
        pixel[i] = (uint8_t)lround(fmin(channels[i] * (0.62 + 0.5 * luminance) + 30 * luminance, 255));
}

static void draw_weights(struct picture *sheet, const struct view *view)
{
    const struct rectangle panel = view->panel;
    for (int32_t y = panel.y; y < panel.y + panel.height; y++) {
        for (int32_t x = panel.x; x < panel.x + panel.width; x++)
            tint(view, picture_at(sheet, x, y), cell_at(view, x + 0.5, y + 0.5));
    }
}

/* Lines between cells: bright where what is seen ends, faint within it. */
static void draw_edges(struct picture *sheet, const struct view *view, bool within)
{
    const struct rectangle panel = view->panel;
    for (int32_t y = panel.y; y < panel.y + panel.height; y++) {
        for (int32_t x = panel.x; x < panel.x + panel.width; x++) {
            const size_t here = cell_at(view, x + 0.5, y + 0.5);
            const size_t left = x > panel.x ? cell_at(view, x - 0.5, y + 0.5) : here;
            const size_t above = y > panel.y ? cell_at(view, x + 0.5, y - 0.5) : here;
            const bool seen = is_seen(view, here);
            if (is_seen(view, left) != seen || is_seen(view, above) != seen)
                blend(picture_at(sheet, x, y), light, 0.8);
            else if (within && seen && (left != here || above != here))
                blend(picture_at(sheet, x, y), dark, 0.28);
        }
    }
}

/* A ring about (x, y), smooth at the edges, on a dark one that keeps it visible on anything. */
static void draw_ring(struct picture *sheet, struct rectangle panel, double x, double y, double radius, double width)
{
    const struct {
        struct colour colour;
        double width, strength;
    } rings[] = {{dark, width + 2.4, 0.65}, {light, width, 1}};
    for (size_t i = 0; i < sizeof rings / sizeof rings[0]; i++) {
        for (int32_t v = panel.y; v < panel.y + panel.height; v++) {
            for (int32_t u = panel.x; u < panel.x + panel.width; u++) {
                const double off = fabs(hypot(u + 0.5 - x, v + 0.5 - y) - radius) - rings[i].width / 2;
                if (off < 0.5)
                    blend(picture_at(sheet, u, v), rings[i].colour, rings[i].strength * fmin(0.5 - off, 1));
            }
        }
    }
}

/* Where the query lies in a panel: the middle of its pixel. */
static void mark_query(struct picture *sheet, const struct view *view, double radius)
{
    const int32_t *query = view->attention->request.query;
    const struct rectangle part = view->part, panel = view->panel;
    const double x = panel.x + (query[1] + 0.5 - part.x) * panel.width / part.width;
    const double y = panel.y + (query[0] + 0.5 - part.y) * panel.height / part.height;
    draw_ring(sheet, panel, x, y, radius, 2);
}

/* The part of the photo goes to the panel, and the weights over it. */
static bool draw_view(struct picture *sheet, const struct picture *photo, const struct view *view, bool close,
                      struct failure *failure)
{
    const struct rectangle part = view->part;
    struct picture cut = {0}, fitted = {0};
    bool done = picture_create(&cut, part.width, part.height, failure);
    for (int32_t y = 0; y < part.height && done; y++) {
        const uint8_t *from = picture_at(photo, part.x, part.y + y);
        uint8_t *to = picture_at(&cut, 0, y);
        for (int32_t i = 0; i < 3 * part.width; i++)
            to[i] = from[i];
    }
    done = done && picture_resize(&cut, view->panel.height, view->panel.width, &fitted, failure);
    if (done) {
        picture_paste(sheet, &fitted, view->panel.x, view->panel.y);
        draw_weights(sheet, view);
        draw_edges(sheet, view, close);
        mark_query(sheet, view, close ? 9 : 6);
    }
    picture_destroy(&cut);
    picture_destroy(&fitted);
    return done;
}

/* `cells` cells about the middle of first .. last, along one side of the photo: moved to where the photo is. */
static void frame(int32_t first, int32_t last, int32_t cells, int32_t stride, int32_t side, int32_t *from,
                  int32_t *length)
{
    const double wanted = (double)cells * stride, middle = ((double)first + last + 1) / 2 * stride;
    *length = wanted < side ? (int32_t)wanted : side;
    *from = (int32_t)fmax(fmin(middle - wanted / 2, side - *length), 0);
}

/* What is seen, with a cell around it. */
static struct rectangle seen_part(const struct picture *photo, const struct attention *attention)
{
    const swin_attention_info *info = &attention->info;
    int32_t top = info->cell[0], bottom = top, left = info->cell[1], right = left;
    for (int32_t row = 0; row < info->map[0]; row++) {
        for (int32_t column = 0; column < info->map[1]; column++) {
            if (attention->weights[(size_t)row * (size_t)info->map[1] + (size_t)column] < ATTENTION_SEEN)
                continue;
            top = row < top ? row : top;
            bottom = row > bottom ? row : bottom;
            left = column < left ? column : left;
            right = column > right ? column : right;
        }
    }
    struct rectangle part;
    int32_t cells = right - left > bottom - top ? right - left + 3 : bottom - top + 3;
    cells = cells > CELLS_LEAST ? cells : CELLS_LEAST;
    frame(left, right, cells, info->stride, photo->width, &part.x, &part.width);
    frame(top, bottom, cells, info->stride, photo->height, &part.y, &part.height);
    return part;
}

static int32_t clamped(double value, int32_t least, int32_t most)
{
    return (int32_t)lround(fmin(fmax(value, least), most));
}

/* As large as fits into a place, in its middle. */
static struct rectangle fit(struct rectangle part, struct rectangle place)
{
    const double scale = fmin((double)place.width / part.width, (double)place.height / part.height);
    const int32_t width = clamped(scale * part.width, 1, place.width);
    const int32_t height = clamped(scale * part.height, 1, place.height);
    return (struct rectangle){place.x + (place.width - width) / 2, place.y + (place.height - height) / 2, width,
                              height};
}

bool attention_sheet_draw(struct picture *sheet, const struct picture *photo, const char *title,
                          const struct attention *attention, const struct colormap *colours, struct failure *failure)
{
    const double aspect = (double)photo->width / photo->height;
    const double ideal = sqrt(PANEL_AREA * aspect), shrink = fmin(1, PANEL_MOST / fmax(ideal, ideal / aspect));
    const struct rectangle whole = {0, 0, photo->width, photo->height};
    const int32_t height = clamped(shrink * ideal / aspect, PANEL_LEAST, PANEL_MOST);
    const int32_t width = clamped(shrink * ideal, PANEL_LEAST, PANEL_MOST);
    const struct rectangle left = {SHEET_MARGIN, SHEET_TITLE, width > WIDTH_LEAST ? width : WIDTH_LEAST, height};
    const int32_t square = height > WIDTH_LEAST ? height : WIDTH_LEAST;
    const struct rectangle right = {left.x + left.width + SHEET_GAP, SHEET_TITLE, square, height};
    const struct rectangle near = seen_part(photo, attention);
    const struct view views[2] = {
        {attention, colours, whole, fit(whole, left)},
        {attention, colours, near, fit(near, right)},
    };
    char text[160], head[ATTENTION_HEAD_TEXT], detail[64];

    const struct rectangle last = {right.x, right.y, right.width, height + SHEET_LABEL};
    if (!sheet_parts_begin(sheet, last, failure))
        return false;
    int used = snprintf(text, sizeof text, "stage %d   block %d   %s", attention->request.stage,
                        attention->request.block, attention_head(attention, head));
    if (attention->on_map < 0.995)
        snprintf(text + used, sizeof text - (size_t)used, "   %.0f%% on padding", 100 * (1 - attention->on_map));
    sheet_parts_title(sheet, text, title, colours);
    for (int i = 0; i < 2; i++) {
        if (!draw_view(sheet, photo, &views[i], i == 1, failure)) {
            picture_destroy(sheet);
            return false;
        }
    }
    snprintf(text, sizeof text, "query at row %d, column %d", attention->query[0], attention->query[1]);
    snprintf(detail, sizeof detail, "%d x %d pixels", photo->width, photo->height);
    sheet_parts_label(sheet, left, left, text, detail);
    const swin_attention_info *info = &attention->info;
    snprintf(text, sizeof text, "window %d x %d, stride %d%s", info->window[0], info->window[1], info->stride,
             info->shift[0] > 0 || info->shift[1] > 0 ? ", shifted" : "");
    snprintf(detail, sizeof detail, "%.3g .. %.3g", attention->range.low, attention->range.high);
    sheet_parts_label(sheet, right, right, text, detail);
    return true;
}
