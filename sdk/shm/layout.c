/* layout.c - layout.h, held to its word at compile time. */
#include "shm/layout.h"

#include <stddef.h>

#define AT(type, field, offset)                                                                    \
    _Static_assert(offsetof(struct type, field) == (offset), #type "." #field " moved")
#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type " changed size")

AT(tnd_batches, magic, 0);
AT(tnd_batches, layout_major, 8);
AT(tnd_batches, layout_minor, 10);
AT(tnd_batches, slot_count, 12);
AT(tnd_batches, segment_bytes, 16);
AT(tnd_batches, slots_offset, 24);
AT(tnd_batches, slot_stride, 32);
AT(tnd_batches, column_capacity, 40);
AT(tnd_batches, buffer_capacity, 44);
AT(tnd_batches, spec_offset, 48);
AT(tnd_batches, spec_bytes, 56);
AT(tnd_batches, payload_offset, 64);
AT(tnd_batches, payload_bytes, 72);
AT(tnd_batches, server_generation, 80);
AT(tnd_batches, lines_offset, 88);
AT(tnd_batches, line_count, 96);
AT(tnd_batches, delivery, 100);
AT(tnd_batches, ready, 104);
AT(tnd_batches, groups_present, 108);
AT(tnd_batches, groups_gone, 112);
AT(tnd_batches, published, TND_LINE);
AT(tnd_batches, signal, TND_LINE + 8);
AT(tnd_batches, notice, TND_LINE + 12);
AT(tnd_batches, heartbeat_ns, TND_LINE + 16);
AT(tnd_batches, newest, TND_LINE + 24);
AT(tnd_batches, server_waits, 2 * TND_LINE);
SIZE(tnd_batches, 3 * TND_LINE);

AT(tnd_line, granted, 0);
AT(tnd_line, told, 8);
AT(tnd_line, starves, 12);
AT(tnd_line, back_until, 16);
SIZE(tnd_line, TND_LINE);

AT(tnd_returns, magic, 0);
AT(tnd_returns, layout_major, 8);
AT(tnd_returns, layout_minor, 10);
AT(tnd_returns, slot_count, 12);
AT(tnd_returns, waits, 16);
AT(tnd_returns, released, TND_LINE);
AT(tnd_returns, taken, TND_LINE + 8);
AT(tnd_returns, sleeping, TND_LINE + 16);
AT(tnd_returns, polling, TND_LINE + 20);
AT(tnd_returns, wanted, TND_LINE + 24);
AT(tnd_returns, waiting_since_ns, TND_LINE + 32);
AT(tnd_returns, waited_ns, TND_LINE + 40);
AT(tnd_returns, passed_from, TND_LINE + 48);
AT(tnd_returns, device_mode, TND_LINE + 56);
AT(tnd_returns, device_why, TND_LINE + 60);
AT(tnd_returns, device_copied_bytes, TND_LINE + 64);
AT(tnd_returns, device_copy_ns, TND_LINE + 72);
AT(tnd_returns, device_kernel_ns, TND_LINE + 80);
AT(tnd_returns, device_waited_ns, TND_LINE + 88);
AT(tnd_returns, claim, TND_LINE + 96);
SIZE(tnd_returns, 2 * TND_LINE);

AT(tnd_slot, position, 0);
AT(tnd_slot, epoch, 8);
AT(tnd_slot, step, 16);
AT(tnd_slot, kind, 24);
AT(tnd_slot, status, 28);
AT(tnd_slot, flags, 32);
AT(tnd_slot, segment, 36);
AT(tnd_slot, shard, 40);
AT(tnd_slot, visits, 48);
AT(tnd_slot, place_bytes, 56);
AT(tnd_slot, column_count, 64);
AT(tnd_slot, buffer_count, 68);
AT(tnd_slot, text_bytes, 72);
SIZE(tnd_slot, 120);

AT(tnd_column, dtype, 0);
AT(tnd_column, kind, 4);
AT(tnd_column, rank, 8);
AT(tnd_column, ragged_rank, 12);
AT(tnd_column, buffer_first, 16);
AT(tnd_column, buffer_count, 20);
AT(tnd_column, shape, 32);
SIZE(tnd_column, 96);

AT(tnd_buffer, offset, 0);
AT(tnd_buffer, stored_bytes, 8);
AT(tnd_buffer, decoded_bytes, 16);
AT(tnd_buffer, role, 24);
AT(tnd_buffer, has_checksum, 26);
AT(tnd_buffer, checksum, 28);
AT(tnd_buffer, codec, 32);
SIZE(tnd_buffer, 64);
SIZE(tnd_codec, 16);

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
               "shared atomics must not need a lock");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "segments are little-endian");
