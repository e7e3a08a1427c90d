/* lane_stats.c - metrics of a lane. */
#include "deliver/lane_private.h"

#include <string.h>

static enum lane_encoding
encoding_of(const struct tnd_codec *codec)
{
    switch (codec->number) {
    case TND_CODEC_RAW:
        return LANE_RAW;
    case TND_CODEC_NARROW:
        return LANE_NARROW;
    case TND_CODEC_BITPACK:
        return LANE_BITPACK;
    case TND_CODEC_ZSTD:
        return LANE_ZSTD;
    default:
        return LANE_OTHER;
    }
}

const char *
lane_encoding_name(enum lane_encoding encoding)
{
    static const char *const names[] = { "raw", "narrow", "bitpack", "zstd", "other" };

    return names[encoding];
}

void
lane_count_encoded(struct lane *lane, const struct slot *slot)
{
    for (uint32_t i = 0; i < slot->buffer_count; i++) {
        struct lane_encoded *encoded = &lane->encoded[encoding_of(&slot->buffers[i].codec)];

        encoded->buffers++;
        encoded->decoded_bytes += lane_decoded_bytes(&slot->buffers[i]);
        encoded->stored_bytes += slot->buffers[i].stored_bytes;
    }
}

void
lane_stats(struct lane *lane, struct lane_stats *ret_stats)
{
    struct lane_stats stats = { .trainer_waits_ns = -1 };

    pthread_mutex_lock(&lane->lock);
    lane_collect(lane);
    stats.published = stats.taken = lane->published;
    stats.released = lane->released;
    stats.passed_from = lane->passed_from;
    stats.reserved_count = lane->reserved_count;
    stats.payload_bytes = lane->arena.used_bytes + lane->own_bytes;
    stats.arena_bytes = lane->config.arena_bytes;
    memcpy(stats.encoded, lane->encoded, sizeof stats.encoded);
    for (int i = 0; i < LANE_ENCODINGS; i++) {
        stats.decoded_bytes += lane->encoded[i].decoded_bytes;
        stats.stored_bytes += lane->encoded[i].stored_bytes;
    }
    stats.segment_bytes = lane->segment.segment_bytes + lane_own_all_bytes(lane);
    stats.own_segment_count = lane->own_total;
    stats.full = lane->reserved_count + lane->visible_count == lane->config.slots;
    for (uint32_t i = 0; i < lane->reader_limit; i++) {
        const struct lane_reader *reader = lane->readers[i];
        int64_t waits_ns;

        /* A trainer that was cut off no longer holds the lane back, so it must not count as the
         * slowest. */
        if (reader == NULL || reader->cut_off)
            continue;
        if (reader->taken < stats.taken)
            stats.taken = reader->taken;
        waits_ns = lane_reader_waits_ns(reader);
        stats.trainer_waits |= waits_ns >= 0;
        if (waits_ns > stats.trainer_waits_ns)
            stats.trainer_waits_ns = waits_ns;
    }
    pthread_mutex_unlock(&lane->lock);
    *ret_stats = stats;
}
