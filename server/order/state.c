/* state.c - see state.h. Seven bits a byte, the lowest first. */
#include "order/state.h"

#include <stdlib.h>

#include "core/memory.h"

enum { NUMBER_BYTES = 10, ROOM_AT_FIRST = 1024 };

void
order_state_put(struct order_state_writer *writer, uint64_t number)
{
    if (writer->room - writer->count < NUMBER_BYTES) {
        writer->room = writer->room == 0 ? ROOM_AT_FIRST : 2 * writer->room;
        writer->bytes = tnd_realloc(writer->bytes, writer->room, 1);
    }
    for (; number >= 0x80; number >>= 7)
        writer->bytes[writer->count++] = (uint8_t)(number | 0x80);
    writer->bytes[writer->count++] = (uint8_t)number;
}

/* Numbers near zero are short, whatever their sign. */
void
order_state_put_signed(struct order_state_writer *writer, int64_t number)
{
    order_state_put(writer, (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0));
}

void
order_state_close(struct order_state_writer *writer)
{
    free(writer->bytes);
    *writer = (struct order_state_writer){ 0 };
}

uint64_t
order_state_get(struct order_state_reader *reader)
{
    uint64_t number = 0;

    for (unsigned shift = 0; reader->at < reader->end && shift < 64; shift += 7) {
        uint64_t bits = *reader->at++;

        if (bits == 0 && shift > 0)
            break;
        if (shift == 63 && bits > 1)
            break;
        number |= (bits & 0x7f) << shift;
        if (bits < 0x80)
            return number;
    }
    reader->is_bad = true;
    reader->at = reader->end;
    return 0;
}

int64_t
order_state_get_signed(struct order_state_reader *reader)
{
    uint64_t number = order_state_get(reader);

    return (int64_t)(number >> 1 ^ ((number & 1) != 0 ? UINT64_MAX : 0));
}

bool
order_state_is_whole(const struct order_state_reader *reader)
{
    return !reader->is_bad && reader->at == reader->end;
}
