/* jpeg_fixture.h - JPEGs of every make, of waves with some noise. */
#ifndef TESTS_JPEG_FIXTURE_H
#define TESTS_JPEG_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

struct jpeg_make {
    unsigned width, height;
    int luma_across, luma_down; /* samples for one of chroma */
    bool is_gray, is_progressive, has_own_codes;
    unsigned restart_interval;
    int quality, noise;
};

struct jpeg_made {
    uint8_t *bytes; /* with 64 readable ones behind */
    unsigned long size;
};

struct jpeg_made jpeg_fixture_make(const struct jpeg_make *make, uint64_t seed);
void jpeg_fixture_free(struct jpeg_made *made);

#endif
