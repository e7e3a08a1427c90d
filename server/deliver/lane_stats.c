/* lane_stats.c - metrics of a lane and of its readers. */
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

    must_in_debug(encoding < LANE_ENCODINGS);
    return names[encoding];
}

void
lane_count_encoded(struct lane *lane, const struct slot *slot)
{
    must_hold(&lane->lock);
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

    tnd_lock_take(&lane->lock);
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
        waits_ns = lane_reader_waits_ns(reader);
        stats.trainer_waits |= waits_ns >= 0;
        if (waits_ns > stats.trainer_waits_ns)
            stats.trainer_waits_ns = waits_ns;
    }
    lane->delivery->count_taken(lane, &stats);
    tnd_lock_release(&lane->lock);
    *ret_stats = stats;
}

/* Count its trainer's waits by duration. Add differences: the page counts modulo 2^32, and the next
 * trainer's page begins at 0. */
void
lane_reader_count_waits(struct lane_reader *reader)
{
    const struct tnd_returns *page = lane_reader_page(reader);

    for (int i = 0; i < TND_WAIT_BUCKETS; i++) {
        uint32_t count = atomic_load_explicit(&page->waits[i], memory_order_relaxed);

        reader->waits[i] += (uint32_t)(count - reader->page_waits[i]);
        reader->page_waits[i] = count;
    }
}

static struct device_stats
device_of(const struct lane_reader *reader)
{
    const struct tnd_returns *page;

    if (reader->connection == NULL)
        return (struct device_stats){ 0 };
    page = lane_reader_page(reader);
    return (struct device_stats){
        .mode = atomic_load_explicit(&page->device_mode, memory_order_relaxed),
        .why = atomic_load_explicit(&page->device_why, memory_order_relaxed),
        .copied_bytes = atomic_load_explicit(&page->device_copied_bytes, memory_order_relaxed),
        .copy_ns = atomic_load_explicit(&page->device_copy_ns, memory_order_relaxed),
        .kernel_ns = atomic_load_explicit(&page->device_kernel_ns, memory_order_relaxed),
        .waited_ns = atomic_load_explicit(&page->device_waited_ns, memory_order_relaxed),
    };
}

bool
lane_is_for_device(struct lane *lane)
{
    bool is = false;

    tnd_lock_take(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit && !is; i++)
        is = lane->readers[i] != NULL && !lane->readers[i]->cut_off &&
             device_of(lane->readers[i]).mode != 0;
    tnd_lock_release(&lane->lock);
    return is;
}

void
lane_reader_stats(struct lane_reader *reader, struct lane_reader_stats *ret_stats)
{
    struct lane *lane = reader->lane;

    tnd_lock_take(&lane->lock);
    lane_collect(lane);
    if (reader->connection != NULL)
        lane_reader_count_waits(reader);
    *ret_stats = (struct lane_reader_stats){
        .attached = reader->connection != NULL,
        .released = lane->delivery->count_released(reader),
        .taken = reader->taken,
        .published = *reader->given,
        .taken_in_all = reader->taken_in_all,
        .waits_ns = lane_reader_waits_ns(reader),
        .waited_ns = lane_reader_waited_ns(reader),
        .device = device_of(reader),
    };
    memcpy(ret_stats->waits, reader->waits, sizeof reader->waits);
    tnd_lock_release(&lane->lock);
}
