/* SPDX-License-Identifier: MIT */
#include "lettering.h"

#include <math.h>
#include <string.h>

/* A glyph is strokes separated by spaces. A point is two letters, column and row, on a grid where 'a' is 0: capitals
 * and digits reach from row a to row s (18), small letters begin at g (6), tails end at y (24). A stroke is a polyline,
 * or with '~' before it a smooth curve from its first to its last point, which the others pull (a quadratic B-spline).
 */
static const char *const glyphs['~' - ' ' + 1] = {
    "",
    "aaam arar",
    "aaae eaee",
    "dbcr ibhr agkg amkm",
    "~jdiaaaajjjjsbsap fafs",
    "~caeaegagaaca ~kmmmmsisimkm labs",
    "msdf ~dfcajaie ieej ~ejalasjtlk",
    "aaae",
    "~eaafaqeu",
    "~aaefeqau",
    "ecek behi hebi",
    "fgfq alkl",
    "brav",
    "algl",
    "arar",
    "haau",
    /* 0 to 9 */
    "~fakaksasaafa",
    "bdfafs bsjs",
    "~aeaakakjas asks",
    "~adaakakiei ~eikiksasao",
    "hshaamkm",
    "jababi ~bidgkfksasap",
    "~iaabam ~amahkhksasam",
    "aakads",
    "~fibibajajifi ~fiaiaskskifi",
    "~kgklalaakakg ~kgkrcs",
    "ahah arar",
    "bhbh brav",
    "jgaljq",
    "aiki aoko",
    "agjlaq",
    "~aeaajajhej ejem erer",
    "~hgkgkoeoeghg kgkm ~kmkpopoj ~ojoaaaasks",
    /* A to Z */
    "asgams cmkm",
    "asaaga ~gakakigi giai ~gililsgs gsas",
    "~melaaaaslsmo",
    "fsasaafa ~famamsfs",
    "laaaasls aiji",
    "laaaas aiji",
    "~melaaaasmsmk mkhk",
    "aaas mams aimi",
    "aaas",
    "iaim ~imisasan",
    "aaas laal eils",
    "aaasks",
    "asaahnoaos",
    "asaamsma",
    "~gamamsasaaga",
    "asaaga ~gamamjgj gjaj",
    "~gamamsasaaga inmt",
    "asaaga ~galaljgj gjaj gjls",
    "~lekaaaajljlsbsao",
    "aama gags",
    "aaal ~alasmsml mlma",
    "aagsma",
    "aaesicmsqa",
    "aals laas",
    "aagjma gjgs",
    "aalaasls",
    "eaaaaueu",
    "aahu",
    "aaeaeuau",
    "agfakg",
    "auku",
    "aace",
    /* a to z */
    "jgjs ~jmjgagasjsjm",
    "aaas ~amagjgjsasam",
    "~iihgagashsiq",
    "jajs ~jmjgagasjsjm",
    "amjm ~jmjgagasisjp",
    "~hadadf dfds aghg",
    "~jmjgagasjsjm jgjt ~jtjybyav",
    "aaas ~amagjgjm jmjs",
    "agas aaab",
    "dgdt ~dtdyay dadb",
    "aaas igao dljs",
    "aaas",
    "agas ~amaghghm hmhs ~hmhgogom omos",
    "agas ~amagjgjm jmjs",
    "~fgkgksasagfg",
    "agay ~amagjgjsasam",
    "jgjy ~jmjgagasjsjm",
    "agas ~amaggg",
    "~iihgagamjmjsbsaq",
    "dbdn ~dndshs aghg",
    "agam ~amasjsjm jgjs",
    "agfskg",
    "ageshhksog",
    "agjs jgas",
    "agfs kgdy",
    "agjgasjs",
    "~facaekak ~akekcufu",
    "aaau",
    "~aadabkfk ~fkbkduau",
    "~ambhipkk",
};

enum {
    CAPITAL = 18, /* grid rows of a capital */
    DIGIT_WIDTH = 10,
    SPACE_WIDTH = 7,
    SPACING = 5,   /* grid columns between glyphs */
    PIECES = 8,    /* lines that stand for one arc of a curve */
    MAX_SIZE = 40, /* pixels of a capital, what the buffer of a glyph holds */
    BUFFER = 64
};

struct point {
    double x, y;
};

/* The ink of one glyph, pixel by pixel. */
struct stencil {
    float ink[BUFFER][BUFFER];
    struct point origin; /* of the glyph's grid, in the stencil */
    double unit;         /* pixels per grid step */
    double radius;       /* of the pen, in pixels */
};

static const char *glyph_of(char c)
{
    return glyphs[(c >= ' ' && c <= '~' ? c : '?') - ' '];
}

static double glyph_width(char c)
{
    if (c == ' ')
        return SPACE_WIDTH;
    if (c >= '0' && c <= '9')
        return DIGIT_WIDTH;
    double width = 0;
    for (const char *p = glyph_of(c); *p != '\0'; p++) {
        if (*p == ' ' || *p == '~')
            continue;
        width = fmax(width, *p - 'a');
        p++;
    }
    return width;
}

/* Bytes that continue a UTF-8 sequence draw nothing: each character of a foreign script is one '?'. */
static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

double lettering_width(const char *text, double size)
{
    double width = 0;
    int count = 0;
    for (; *text != '\0'; text++) {
        if (continues(*text))
            continue;
        width += glyph_width(*text);
        count++;
    }
    return count > 0 ? (width + SPACING * (count - 1)) * size / CAPITAL : 0;
}

static double distance(struct point p, struct point a, struct point b)
{
    const double dx = b.x - a.x;
    const double dy = b.y - a.y;
    const double square = dx * dx + dy * dy;
    double t = square > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / square : 0;
    t = fmin(fmax(t, 0), 1);
    return hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

static void draw_line(struct stencil *stencil, struct point a, struct point b)
{
    const struct point from = {stencil->origin.x + a.x * stencil->unit, stencil->origin.y + a.y * stencil->unit};
    const struct point to = {stencil->origin.x + b.x * stencil->unit, stencil->origin.y + b.y * stencil->unit};
    const double reach = stencil->radius + 1;
    const int left = (int)fmax(floor(fmin(from.x, to.x) - reach), 0);
    const int top = (int)fmax(floor(fmin(from.y, to.y) - reach), 0);
    const int right = (int)fmin(ceil(fmax(from.x, to.x) + reach), BUFFER - 1);
    const int bottom = (int)fmin(ceil(fmax(from.y, to.y) + reach), BUFFER - 1);
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            const double gap = distance((struct point){x + 0.5, y + 0.5}, from, to);
            const float ink = (float)fmin(fmax(stencil->radius + 0.5 - gap, 0), 1);
            if (ink > stencil->ink[y][x])
                stencil->ink[y][x] = ink;
        }
    }
}

static struct point point_at(const char *text)
{
    return (struct point){text[0] - 'a', text[1] - 'a'};
}

static struct point middle(struct point a, struct point b)
{
    return (struct point){(a.x + b.x) / 2, (a.y + b.y) / 2};
}

static void draw_arc(struct stencil *stencil, struct point from, struct point pull, struct point to)
{
    struct point last = from;
    for (int i = 1; i <= PIECES; i++) {
        const double t = (double)i / PIECES;
        const double u = 1 - t;
        const struct point next = {u * u * from.x + 2 * u * t * pull.x + t * t * to.x,
                                   u * u * from.y + 2 * u * t * pull.y + t * t * to.y};
        draw_line(stencil, last, next);
        last = next;
    }
}

static void draw_stroke(struct stencil *stencil, const char *points, size_t count, bool curved)
{
    struct point last = point_at(points);
    for (size_t i = 1; i < count; i++) {
        const struct point here = point_at(points + 2 * i);
        if (!curved || count == 2) {
            draw_line(stencil, last, here);
            last = here;
        } else if (i + 1 < count) {
            const struct point next = point_at(points + 2 * i + 2);
            const struct point joint = i + 2 < count ? middle(here, next) : next;
            draw_arc(stencil, last, here, joint);
            last = joint;
        }
    }
}

static void draw_glyph(struct stencil *stencil, char c)
{
    const char *p = glyph_of(c);
    while (*p != '\0') {
        const bool curved = *p == '~';
        p += curved;
        const size_t length = strcspn(p, " ");
        draw_stroke(stencil, p, length / 2, curved);
        p += length;
        p += *p == ' ';
    }
}

static void press(struct picture *picture, int32_t left, int32_t top, const struct stencil *stencil,
                  struct colour colour)
{
    const uint8_t channels[3] = {colour.red, colour.green, colour.blue};
    for (int32_t y = 0; y < BUFFER; y++) {
        for (int32_t x = 0; x < BUFFER; x++) {
            const float ink = stencil->ink[y][x];
            const int32_t to_x = left + x;
            const int32_t to_y = top + y;
            if (ink <= 0 || to_x < 0 || to_y < 0 || to_x >= picture->width || to_y >= picture->height)
                continue;
            uint8_t *pixel = picture_at(picture, to_x, to_y);
            for (int i = 0; i < 3; i++)
                pixel[i] = (uint8_t)lroundf((float)pixel[i] + ink * (float)(channels[i] - pixel[i]));
        }
    }
}

static void draw_text(struct picture *picture, double x, double y, const char *text, size_t length, double size,
                      struct colour colour)
{
    enum { MARGIN = 4 };
    if (size > MAX_SIZE)
        size = MAX_SIZE;
    for (size_t i = 0; i < length; i++) {
        if (continues(text[i]))
            continue;
        struct stencil stencil = {.unit = size / CAPITAL, .radius = fmax(size * 0.062, 0.55)};
        stencil.origin = (struct point){x - floor(x) + MARGIN, y - floor(y) + MARGIN};
        draw_glyph(&stencil, text[i]);
        press(picture, (int32_t)floor(x) - MARGIN, (int32_t)floor(y) - MARGIN, &stencil, colour);
        x += (glyph_width(text[i]) + SPACING) * stencil.unit;
    }
}

void lettering_draw(struct picture *picture, double x, double y, const char *text, double size, struct colour colour)
{
    draw_text(picture, x, y, text, strlen(text), size, colour);
}

void lettering_draw_within(struct picture *picture, double x, double y, double width, const char *text, double size,
                           struct colour colour)
{
    if (lettering_width(text, size) <= width) {
        lettering_draw(picture, x, y, text, size, colour);
        return;
    }
    const double room = width - lettering_width("...", size);
    const double unit = size / CAPITAL;
    double used = 0;
    size_t length = 0;
    for (; text[length] != '\0'; length++) {
        const double step = continues(text[length]) ? 0 : (glyph_width(text[length]) + SPACING) * unit;
        if (used + step > room)
            break;
        used += step;
    }
    draw_text(picture, x, y, text, length, size, colour);
    if (room >= 0)
        lettering_draw(picture, x + used, y, "..", size, colour);
}
