/* fuzz_npy.c - any bytes as an .npy file. */
#include <stdlib.h>

#include "core/memory.h"
#include "core/must.h"
#include "source/rows/npy.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct npy_header header;
    uint64_t value_bytes;

    if (npy_read_header(data, bytes, &header) != TUNDISH_OK)
        return 0;
    value_bytes = (uint64_t)header.value_count * header.item_bytes;
    must(header.data_offset <= bytes && header.rank <= RANK_MAX && header.value_count >= 0);
    if (value_bytes <= bytes - header.data_offset && header.rank > 0) {
        uint8_t *rows = tnd_alloc(value_bytes + 1);

        npy_transpose(&header, data + header.data_offset, rows);
        free(rows);
    }
    return 0;
}
