/* view.h - a consumer's checked view of a lane's segment.
 *
 * The server may be broken, or another program altogether. Headers and slots are copied, then
 * checked, then used: after these calls nothing that is used again lies in shared memory, and every
 * offset and size is known to be inside of its segment.
 */
#ifndef TND_SHM_VIEW_H
#define TND_SHM_VIEW_H

#include <stdbool.h>

#include "shm/layout.h"
#include "shm/spec.h"

/* The header, as copied. */
struct tnd_view {
    const struct tnd_batches *batches; /* for its counters */
    uint64_t segment_bytes;
    uint32_t slot_count;
    uint64_t slots_offset;
    uint64_t slot_stride;
    uint32_t column_capacity;
    uint32_t buffer_capacity;
    uint64_t server_generation;
    uint64_t lines_offset;
    uint32_t line_count;
    enum tnd_delivery delivery;
    struct tnd_spec spec;
};

/* A slot, as copied. Made once for a view, used for many slots. */
struct tnd_view_slot {
    struct tnd_slot slot;
    struct tnd_column *columns; /* column_capacity */
    struct tnd_buffer *buffers; /* buffer_capacity */
    uint64_t payload_bytes;     /* stored, all buffers together */
};

/* Check a mapped segment of a lane. E_LAYOUT: another version of the layout. E_CORRUPT. */
tundish_status tnd_view_open(const void *bytes, uint64_t segment_bytes, struct tnd_view *ret_view);
void tnd_view_close(struct tnd_view *view); /* accepts zeros */

tundish_status tnd_view_slot_open(const struct tnd_view *view, struct tnd_view_slot *ret_slot);
void tnd_view_slot_close(struct tnd_view_slot *slot); /* accepts zeros */

/* Copy slot `index` and check it: kind, columns against the spec, shapes, the sizes of dense
 * columns, roles. Not yet where its buffers lie. E_CORRUPT names what is wrong. */
tundish_status tnd_view_slot_read(const struct tnd_view *view, uint32_t index,
                                  struct tnd_view_slot *slot);

/* Does every buffer lie inside a segment of that many bytes? */
tundish_status tnd_view_slot_check_buffers(const struct tnd_view_slot *slot,
                                           uint64_t segment_bytes);

/* The text of an ERROR slot, cut to `text_bytes` with its NUL, unprintable bytes as '?'. */
void tnd_view_slot_text(const struct tnd_view *view, uint32_t index,
                        const struct tnd_view_slot *slot, char *text, size_t text_bytes);

/* The slot that entry `entry` of a line names, checked. */
const struct tnd_line *tnd_view_line(const struct tnd_view *view, uint32_t line);
tundish_status tnd_view_entry(const struct tnd_view *view, uint32_t line, uint64_t entry,
                              uint32_t *ret_index);

#endif
