/* fuzz_picture.c - any bytes as an image file: the first one chooses the options. */
#include <stdlib.h>

#include "content/images/picture.h"
#include "core/must.h"

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
        picture_read(&options, file, &size, scratch, values, &fault);
        free(values);
        scratch_close(scratch);
    }
    return 0;
}
