/* spec.h - the element spec as bytes in a lane's segment. */
#ifndef TND_SHM_SPEC_H
#define TND_SHM_SPEC_H

#include <stdbool.h>

#include "shm/layout.h"
#include "tundish/tundish.h"

/* A spec that owns the memory it points to. */
struct tnd_spec {
    tundish_spec spec;
    uint8_t *storage; /* names, columns, numbers */
};

/* Buffers that a column has in a slot: one a ragged dimension, indices, offsets, values. */
uint32_t tnd_spec_buffer_count(const tundish_column_spec *column);
/* The role of buffer `index` of it. */
uint32_t tnd_spec_buffer_role(const tundish_column_spec *column, uint32_t index);

/* Bytes that tnd_spec_write needs. */
uint64_t tnd_spec_bytes(const tundish_spec *spec);
void tnd_spec_write(const tundish_spec *spec, uint8_t *bytes);

/* Is this a spec that can be served? E_ARGUMENT says what not. */
tundish_status tnd_spec_check(const tundish_spec *spec);

/* Read bytes that may be hostile, and may change while they are read. E_CORRUPT, E_MEMORY. */
tundish_status tnd_spec_read(const uint8_t *bytes, uint64_t spec_bytes, struct tnd_spec *ret_spec);

/* A copy of the caller's. */
tundish_status tnd_spec_copy(const tundish_spec *spec, struct tnd_spec *ret_spec);

void tnd_spec_close(struct tnd_spec *spec); /* accepts zeros */

#endif
