/* SPDX-License-Identifier: MIT */
/* The input is a file that claims to be a PNG. Mutated ones mostly get correct checksums, or none would come far. */
#include <stdlib.h>
#include <string.h>

#include "picture.h"
#include "target.h"

enum { MAX_PIXELS = 1 << 16, SIGNATURE = 8, FRAME = 12 };

static uint32_t number_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t checksum(const uint8_t *bytes, size_t count)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~sum;
}

static void correct_checksums(uint8_t *data, size_t size)
{
    for (size_t at = SIGNATURE; at + FRAME <= size;) {
        const size_t length = number_at(data + at);
        if (length > size - at - FRAME)
            break;
        const uint32_t sum = checksum(data + at + 4, length + 4);
        for (size_t i = 0; i < 4; i++)
            data[at + 8 + length + i] = (uint8_t)(sum >> (24 - 8 * i));
        at += FRAME + length;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8 != 0)
        correct_checksums(data, size);
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct picture picture;
    struct failure failure = {.text = ""};
    target_memory_write(data, size);
    const bool probed = picture_probe_png(target_memory_path(), MAX_PIXELS, &failure);
    TARGET_REQUIRE(probed || failure.text[0] != '\0');
    failure.text[0] = '\0';
    if (picture_read_png(&picture, target_memory_path(), MAX_PIXELS, &failure)) {
        TARGET_REQUIRE(probed && picture.width >= 1 && picture.height >= 1);
        TARGET_REQUIRE((uint64_t)picture.width * (uint64_t)picture.height <= MAX_PIXELS);
        unsigned sum = 0;
        for (size_t i = 0; i < (size_t)picture.width * (size_t)picture.height * 3; i++)
            sum += picture.pixels[i];
        TARGET_REQUIRE(sum <= 255u * 3u * MAX_PIXELS);
        picture_destroy(&picture);
    } else {
        TARGET_REQUIRE(failure.text[0] != '\0' && picture.pixels == NULL);
    }
    return 0;
}
