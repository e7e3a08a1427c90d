/* fuzz_picture.c - any bytes as an image file: the first one chooses the options. */
#include <stdlib.h>
#include <string.h>

#include "content/images/picture.h"
#include "core/must.h"

/* The receiver of a part. */
struct reading {
    struct picture_part part;
    int64_t channels, row;
    uint8_t *memory, *values;
};

static uint8_t *
begin(void *context, const struct picture_size *size, size_t bytes, struct picture_part *part)
{
    struct reading *reading = context;

    must(size->dims[2] == reading->channels && part->height >= reading->part.height);
    *part = reading->part;
    reading->row = 0;
    free(reading->memory);
    reading->memory = malloc(bytes + 64);
    must(reading->memory != NULL);
    return reading->memory;
}

static void
take_row(void *context, const uint8_t *row)
{
    struct reading *reading = context;
    int64_t bytes = reading->part.width * reading->channels;

    must(reading->row < reading->part.height);
    memcpy(reading->values + reading->row++ * bytes, row, (size_t)bytes);
}

/* A part, read alone, is the whole picture's, and bad wherever that is (values NULL). */
static void
read_part(const struct picture_options *options, struct byte_view file,
          const struct picture_size *size, uint8_t choice, const uint8_t *values)
{
    struct scratch *scratch = scratch_open();
    struct reading reading = { .channels = size->dims[2] };
    const struct picture_rows rows = { begin, take_row, &reading };
    struct picture_part *part = &reading.part;
    struct picture_fault fault;
    int64_t bytes;

    part->top = size->dims[0] * (choice & 3) / 4;
    part->left = size->dims[1] * (choice >> 2 & 3) / 4;
    part->height = 1 + (size->dims[0] - part->top - 1) * (choice >> 4 & 3) / 3;
    part->width = 1 + (size->dims[1] - part->left - 1) * (choice >> 6) / 3;
    bytes = part->width * size->dims[2];
    reading.values = scratch_alloc(scratch, (size_t)(part->height * bytes));
    must(picture_read_rows(options, file, scratch, &rows, &fault) == (values != NULL));
    must(values == NULL || reading.row == part->height);
    for (int64_t y = 0; values != NULL && y < part->height; y++)
        must(memcmp(reading.values + y * bytes,
                    values + ((part->top + y) * size->dims[1] + part->left) * size->dims[2],
                    (size_t)bytes) == 0);
    free(reading.memory);
    scratch_close(scratch);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const tundish_dtype dtypes[] = { TUNDISH_UINT8, TUNDISH_UINT16, TUNDISH_FLOAT32 };
    static const int channels[] = { 0, 1, 3, 4 };
    uint8_t choice = bytes > 0 ? data[0] : 0;
    struct picture_options options = { .stage = "decode_image",
                                       .channels = channels[choice & 3],
                                       .dtype = dtypes[(choice >> 2 & 3) % 3],
                                       .takes_everything = true,
                                       .expand_animations = (choice & 16) != 0,
                                       .jpeg = picture_jpeg_default };
    struct byte_view file = { bytes > 0 ? data + 1 : data, bytes > 0 ? bytes - 1 : 0 };
    struct picture_size size;
    struct picture_fault fault;
    uint64_t count = 1;
    bool is_good;

    options.jpeg.try_recover_truncated = (choice & 32) != 0;
    options.jpeg.cover_height = (choice & 64) != 0 ? 1 + data[bytes - 1] % 64 : 0;
    options.jpeg.cover_width = options.jpeg.cover_height;
    if (!picture_measure(&options, file, &size, &fault))
        return 0;
    must(size.rank == 3 || size.rank == 4);
    for (uint32_t k = 0; k < size.rank; k++) {
        must(size.dims[k] > 0);
        count *= (uint64_t)size.dims[k];
    }
    if (count <= 1 << 20) {
        struct scratch *scratch = scratch_open();
        void *values = malloc(count * tnd_dtype_bytes(options.dtype));

        must(values != NULL);
        is_good = picture_read(&options, file, &size, scratch, values, &fault);
        if (options.dtype == TUNDISH_UINT8 && size.rank == 3)
            read_part(&options, file, &size, data[bytes / 2], is_good ? values : NULL);
        free(values);
        scratch_close(scratch);
    }
    return 0;
}
