/* make_jpegs.c - photographs of 500 by 375 pixels for the benchmark: waves, noise and quality 90.
 *
 *     make_jpegs DIR      jpegs-0.tfrecord, jpegs-1.tfrecord: 500 files each
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "core/memory.h"

#include "draw.h"
#include "sample_output.h"

enum { SEED = 20240607, WIDTH = 500, HEIGHT = 375, SHARDS = 2, FILES_PER_SHARD = 500, WAVES = 4 };

/* sin(ax + by + c) as a product of what goes across and what goes down. */
struct wave {
    float sine[WIDTH], cosine[WIDTH];
    float down_sine[HEIGHT], down_cosine[HEIGHT];
};

static struct wave
make_wave(uint64_t row, uint64_t number)
{
    double a = 0.02 * draw_normal(SEED, row, number * 8),
           b = 0.02 * draw_normal(SEED, row, number * 8 + 2);
    double c = 6.28 * draw_uniform(SEED, row, number * 8 + 4);
    struct wave wave;

    for (int x = 0; x < WIDTH; x++) {
        wave.sine[x] = (float)sin(a * x + c);
        wave.cosine[x] = (float)cos(a * x + c);
    }
    for (int y = 0; y < HEIGHT; y++) {
        wave.down_sine[y] = (float)sin(b * y);
        wave.down_cosine[y] = (float)cos(b * y);
    }
    return wave;
}

/* Nearly normal, of deviation 5. */
static float
noise(uint64_t row, uint64_t pixel)
{
    uint64_t bits = draw_bits(SEED, row, 1000 + pixel);
    int sum = 0;

    for (int i = 0; i < 8; i++)
        sum += (int)(bits >> (i * 8) & 255);
    return (float)(sum - 1020) * (5.0F / 209.0F);
}

static void
make_pixels(uint64_t row, uint8_t *pixels)
{
    struct wave *waves = tnd_alloc(3 * WAVES * sizeof *waves);

    for (uint64_t i = 0; i < 3 * WAVES; i++)
        waves[i] = make_wave(row, i);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            float grain = noise(row, (uint64_t)(y * WIDTH + x));

            for (int c = 0; c < 3; c++) {
                float value = 128 + grain;

                for (int k = 0; k < WAVES; k++) {
                    const struct wave *wave = &waves[c * WAVES + k];

                    value += 28 * (wave->sine[x] * wave->down_cosine[y] +
                                   wave->cosine[x] * wave->down_sine[y]);
                }
                *pixels++ = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
            }
        }
    free(waves);
}

static void
write_jpeg(struct output *output, uint8_t *pixels)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long size = 0;

    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &bytes, &size);
    info.image_width = WIDTH;
    info.image_height = HEIGHT;
    info.input_components = 3;
    info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 90, TRUE);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < HEIGHT) {
        JSAMPROW row = pixels + (size_t)info.next_scanline * WIDTH * 3;

        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    output_record(output, bytes, size);
    free(bytes);
}

int
main(int argc, char **argv)
{
    uint8_t *pixels = tnd_alloc(WIDTH * HEIGHT * 3);

    if (argc != 2)
        fail("usage: make_jpegs DIR");
    make_folder("%s", argv[1]);
    for (uint64_t shard = 0; shard < SHARDS; shard++) {
        struct output output;

        output_open(&output, "%s/jpegs-%" PRIu64 ".tfrecord", argv[1], shard);
        for (uint64_t i = 0; i < FILES_PER_SHARD; i++) {
            make_pixels(shard * FILES_PER_SHARD + i, pixels);
            write_jpeg(&output, pixels);
        }
        output_close(&output);
    }
    free(pixels);
    return 0;
}
