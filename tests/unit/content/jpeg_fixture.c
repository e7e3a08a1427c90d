#include "jpeg_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../unit_draw.h"

static uint8_t
pixel(const struct jpeg_make *make, uint64_t seed, unsigned x, unsigned y, int c)
{
    double wave = sin(0.05 * x * (c + 1) + (double)seed) * cos(0.07 * y + c);
    double noise = make->noise == 0 ? 0 : (double)(draw() % 201) / 100 - 1;
    double value = 128 + 90 * wave + noise * make->noise;

    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void
set_up(struct jpeg_compress_struct *info, const struct jpeg_make *make)
{
    info->image_width = make->width;
    info->image_height = make->height;
    info->input_components = make->is_gray ? 1 : 3;
    info->in_color_space = make->is_gray ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(info);
    jpeg_set_quality(info, make->quality, TRUE);
    info->comp_info[0].h_samp_factor = make->luma_across;
    info->comp_info[0].v_samp_factor = make->luma_down;
    info->optimize_coding = make->has_own_codes ? TRUE : FALSE;
    info->restart_interval = make->restart_interval;
    if (make->is_progressive)
        jpeg_simple_progression(info);
}

struct jpeg_made
jpeg_fixture_make(const struct jpeg_make *make, uint64_t seed)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    int channels = make->is_gray ? 1 : 3;
    uint8_t *row = malloc(make->width * (size_t)channels);
    struct jpeg_made made;

    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &bytes, &size);
    set_up(&info, make);
    jpeg_start_compress(&info, TRUE);
    for (unsigned y = 0; y < make->height; y++) {
        JSAMPROW rows[] = { row };

        for (unsigned x = 0; x < make->width; x++)
            for (int c = 0; c < channels; c++)
                row[x * (unsigned)channels + (unsigned)c] = pixel(make, seed, x, y, c);
        jpeg_write_scanlines(&info, rows, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    made = (struct jpeg_made){ .bytes = calloc(1, size + 64), .size = size };
    memcpy(made.bytes, bytes, size);
    free(bytes);
    free(row);
    return made;
}

void
jpeg_fixture_free(struct jpeg_made *made)
{
    free(made->bytes);
}
