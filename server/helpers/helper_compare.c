/* helper_compare.c - a part that was made on both sides. */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "helpers/helper_line.h"

/* The buffer's bytes as they were before they were stored, in `room` if that differs. NULL: they
 * cannot be had. */
static const void *
restore(const struct slot_buffer *buffer, void *room, struct tnd_codec_context *context)
{
    if (buffer->codec.number == TND_CODEC_RAW)
        return buffer->data;
    return tnd_codec_decode(&buffer->codec, buffer->data, buffer->stored_bytes, room,
                            buffer->decoded_bytes, context) == TUNDISH_OK
               ? room
               : NULL;
}

static bool
holds_same_values(const struct slot_buffer *one, const struct slot_buffer *other)
{
    size_t bytes = one->decoded_bytes;
    struct tnd_codec_context *context;
    const void *first, *second;
    bool is_same;
    uint8_t *room;

    if (bytes != other->decoded_bytes || tnd_codec_context_open(false, &context) != TUNDISH_OK)
        return false;
    room = tnd_alloc(2 * bytes + 1);
    first = restore(one, room, context);
    second = restore(other, room + bytes, context);
    is_same = first != NULL && second != NULL && memcmp(first, second, bytes) == 0;
    free(room);
    tnd_codec_context_close(context);
    return is_same;
}

static bool
is_same_buffer(const struct slot_buffer *one, const struct slot_buffer *other)
{
    /* Another release of zstd may store the same values in other bytes. */
    if (one->codec.number == TND_CODEC_ZSTD || other->codec.number == TND_CODEC_ZSTD)
        return holds_same_values(one, other);
    return one->codec.number == other->codec.number && one->stored_bytes == other->stored_bytes &&
           (one->stored_bytes == 0 || memcmp(one->data, other->data, one->stored_bytes) == 0);
}

static bool
is_same_slice(const struct share *share, const struct slot *came)
{
    for (uint32_t i = 0; i < came->column_count; i++)
        if (memcmp(share->slot.columns[i].shape, came->columns[i].shape,
                   (size_t)share->fill->plan->element_spec.columns[i].rank *
                       sizeof *came->columns[i].shape) != 0)
            return false;
    for (uint32_t i = 0; i < came->buffer_count; i++)
        if (!is_same_buffer(&share->slot.buffers[i], &came->buffers[i]))
            return false;
    return true;
}

bool
helper_line_is_same(const struct helper_line *line, const struct part *part)
{
    const struct share *share = &part->step->shares[part->replica];
    const uint8_t *came = line->answer.bytes;

    if (share->fill->in_place) {
        (void)fill_places(share->fill, part->begin, part->end, &share->slot, line->places);
        for (uint32_t i = 0; i < share->slot.column_count; i++) {
            if (line->places[i].iov_len > 0 &&
                memcmp(line->places[i].iov_base, came, line->places[i].iov_len) != 0)
                return false;
            came += line->places[i].iov_len;
        }
        return true;
    }
    for (uint32_t i = 0; i <= part->more; i++)
        if (!is_same_slice(&share[i], &line->slots[i]))
            return false;
    return true;
}
