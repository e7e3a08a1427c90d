/* compress.c - codecs tried on a sample of each column, taken by what they save for their time. */
#include "session/compress.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "session/lane_size.h"

/* A sample's bytes; what a codec must save of them at least, one part of so many; how often it is
 * timed. */
enum { SAMPLE_BYTES = 256 << 10, WORTH_PARTS = 8, TRIES = 2, ZSTD_LEVEL = 1, ZSTD_CHUNK = 18 };

/* What a codec would do for a column of the slice. */
struct offer {
    uint32_t column;
    struct tnd_codec codec;
    uint64_t saved;  /* bytes */
    int64_t cost_ns; /* to encode and decode */
};

struct sample {
    const uint8_t *values;
    uint64_t bytes;
    uint64_t column_bytes; /* of which these are some */
};

static uint64_t
whole_values(const struct output_column *column, uint64_t bytes)
{
    size_t value_bytes = tnd_dtype_bytes(column->spec->dtype);

    return value_bytes == 0 ? bytes : bytes / value_bytes * value_bytes;
}

/* The column's first values; strings are put together. */
static struct sample
take_sample(const struct output_column *column, struct scratch *scratch)
{
    const struct byte_view *strings = column->values;
    struct sample sample = { .column_bytes = fill_values_bytes(column) };
    uint64_t wanted = sample.column_bytes < SAMPLE_BYTES ? sample.column_bytes : SAMPLE_BYTES;
    uint8_t *joined;

    if (column->spec->dtype != TUNDISH_STRING) {
        sample.values = column->values;
        sample.bytes = whole_values(column, wanted);
        return sample;
    }
    sample.values = joined = scratch_alloc(scratch, wanted + 1);
    for (int64_t i = 0; i < column->value_count && sample.bytes < wanted; i++) {
        uint64_t left = wanted - sample.bytes,
                 bytes = strings[i].size < left ? strings[i].size : left;

        if (bytes > 0)
            memcpy(joined + sample.bytes, strings[i].data, bytes);
        sample.bytes += bytes;
    }
    return sample;
}

/* There and back. False: the codec cannot hold these values. */
static bool
time_codec(const struct tnd_codec *codec, const struct sample *sample,
           struct tnd_codec_context *context, struct scratch *scratch, uint64_t *ret_stored_bytes,
           int64_t *ret_ns)
{
    uint8_t *back = scratch_alloc(scratch, sample->bytes);
    uint64_t bound, stored_bytes;
    void *stored;

    *ret_ns = INT64_MAX;
    if (tnd_codec_bound(codec, sample->bytes, &bound) != TUNDISH_OK)
        return false;
    stored = scratch_alloc(scratch, bound);
    for (int i = 0; i < TRIES; i++) {
        int64_t began_ns = tnd_clock_ns(), took_ns;

        if (tnd_codec_encode(codec, sample->values, sample->bytes, stored, bound, context,
                             &stored_bytes) != TUNDISH_OK ||
            tnd_codec_decode(codec, stored, stored_bytes, back, sample->bytes, context) !=
                TUNDISH_OK)
            return false;
        took_ns = tnd_clock_ns() - began_ns;
        if (took_ns < *ret_ns)
            *ret_ns = took_ns;
    }
    *ret_stored_bytes = stored_bytes;
    return true;
}

/* Append an offer if the codec is worth it. */
static void
make_offer(const struct tnd_codec *codec, uint32_t column, const struct sample *sample,
           struct tnd_codec_context *context, struct scratch *scratch, struct offer *offers,
           uint32_t *count)
{
    uint64_t stored_bytes;
    double share;
    int64_t ns;

    if (codec->number == TND_CODEC_RAW || sample->bytes == 0 ||
        !time_codec(codec, sample, context, scratch, &stored_bytes, &ns) ||
        stored_bytes > sample->bytes - sample->bytes / WORTH_PARTS)
        return;
    share = (double)sample->column_bytes / (double)sample->bytes;
    offers[(*count)++] = (struct offer){
        .column = column,
        .codec = *codec,
        .saved = (uint64_t)((double)(sample->bytes - stored_bytes) * share),
        .cost_ns = (int64_t)((double)ns * share) + 1,
    };
}

/* Of those that save more than the column does already, the one that saves most for its time. */
static const struct offer *
best_offer(const struct offer *offers, uint32_t count, const uint64_t *saved)
{
    const struct offer *best = NULL;
    double best_gain = 0;

    for (uint32_t i = 0; i < count; i++) {
        double gain =
            (double)(offers[i].saved - saved[offers[i].column]) / (double)offers[i].cost_ns;

        if (offers[i].saved > saved[offers[i].column] && gain > best_gain) {
            best = &offers[i];
            best_gain = gain;
        }
    }
    return best;
}

static uint32_t
collect_offers(const struct fill *fill, struct evaluation *evaluation,
               struct tnd_codec_context *context, const struct output_column *columns,
               struct offer *offers)
{
    const struct tnd_codec zstd = { .number = TND_CODEC_ZSTD,
                                    .width = ZSTD_CHUNK,
                                    .level = ZSTD_LEVEL };
    uint32_t count = 0;

    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++) {
        struct tnd_codec narrow = fill_narrow_codec(columns[i].spec);
        struct sample sample = take_sample(&columns[i], evaluation->scratch);

        make_offer(&narrow, i, &sample, context, evaluation->scratch, offers, &count);
        make_offer(&zstd, i, &sample, context, evaluation->scratch, offers, &count);
    }
    return count;
}

static void
accept(struct fill *fill, const struct offer *offer)
{
    fill->columns[offer->column].codec = offer->codec;
    fill->in_place = false;
}

static void
tell(const struct fill *fill, const uint64_t *saved)
{
    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++)
        if (saved[i] > 0)
            tnd_log(TND_LOG_NOTICE, "stream",
                    "%s: memory is scarce: column %s is stored by %s, which saves %llu bytes of a "
                    "batch",
                    fill->plan->stream->name, fill->plan->element_spec.columns[i].name,
                    tnd_codec_name(&fill->columns[i].codec), (unsigned long long)saved[i]);
}

/* Would an arena for such slices, so much smaller, take no more than that? */
static bool
fits(const struct fill *fill, const struct slice_bytes *bytes, uint64_t saved, uint64_t allowed)
{
    struct slice_bytes smaller = { .as_is = bytes->as_is };
    struct lane_size size;

    smaller.stored = saved < bytes->as_is ? bytes->as_is - saved : 0;
    lane_size(fill, &smaller, &size);
    return size.arena_bytes <= allowed;
}

void
compress_columns(struct fill *fill, struct evaluation *evaluation,
                 struct tnd_codec_context *context, const struct deal_slice *slice,
                 const struct slice_bytes *bytes, uint64_t allowed)
{
    uint32_t column_count = fill->plan->element_spec.count, count;
    struct output_column *columns = tnd_zalloc(column_count, sizeof *columns);
    struct offer *offers = tnd_zalloc(2 * (size_t)column_count, sizeof *offers);
    uint64_t *saved = tnd_zalloc(column_count, sizeof *saved);
    uint64_t total = 0;

    scratch_reset(evaluation->scratch);
    if (fill_columns(fill, evaluation, slice, columns) == TUNDISH_OK) {
        count = collect_offers(fill, evaluation, context, columns, offers);
        while (!fits(fill, bytes, total, allowed)) {
            const struct offer *offer = best_offer(offers, count, saved);

            if (offer == NULL)
                break;
            total += offer->saved - saved[offer->column];
            saved[offer->column] = offer->saved;
            accept(fill, offer);
        }
        tell(fill, saved);
    }
    scratch_reset(evaluation->scratch);
    free(columns);
    free(offers);
    free(saved);
}
