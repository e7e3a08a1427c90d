/* compress.c - tries codecs on a sample of each column, and takes those that save most for their
 * time. */
#include "session/compress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "session/compress_choose.h"
#include "session/lane_size.h"

/* A sample's size; the least part of it that a codec must save (one of WORTH_PARTS); how often it
 * is timed. */
enum { SAMPLE_BYTES = 256 << 10, WORTH_PARTS = 8, TRIES = 2, ZSTD_LEVEL = 1, ZSTD_CHUNK = 18 };

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

/* Time encoding and decoding. The best of several tries counts, since a try may include page faults
 * or another thread's time. False: the codec cannot hold these values. */
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
    must_in_debug(sample->bytes <= sample->column_bytes);
    share = (double)sample->column_bytes / (double)sample->bytes;
    offers[(*count)++] = (struct offer){
        .column = column,
        .codec = *codec,
        .saved = (uint64_t)((double)(sample->bytes - stored_bytes) * share),
        .cost_ns = (int64_t)((double)ns * share) + 1,
    };
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
    must_in_debug(count <= 2 * fill->plan->element_spec.count);
    return count;
}

/* The measured columns of a slice, and the offers for them. */
struct compression_choice {
    uint32_t column_count, offer_count;
    struct output_column *columns;
    struct offer *offers;
    const struct offer **taken; /* for each column, or NULL */
    uint64_t *saved;            /* of each column by what is taken */
};

static void
take_offer(struct compression_choice *choice, const struct offer *offer)
{
    must_in_debug(offer->column < choice->column_count);
    choice->taken[offer->column] = offer;
    choice->saved[offer->column] = offer->saved;
}

static uint64_t
all_saved(const struct compression_choice *choice)
{
    uint64_t saved = 0;

    for (uint32_t i = 0; i < choice->column_count; i++)
        saved += choice->saved[i];
    return saved;
}

/* With the offers taken, would an arena for such slices fit into `allowed`? */
static bool
arena_fits(const struct fill *fill, const struct compression_choice *choice,
           const struct slice_bytes *bytes, uint64_t allowed)
{
    uint64_t saved = all_saved(choice);
    struct slice_bytes smaller = { .as_is = bytes->as_is };
    struct lane_size size;

    smaller.stored = saved < bytes->as_is ? bytes->as_is - saved : 0;
    lane_size(fill, &smaller, &size);
    return size.arena_bytes <= allowed;
}

static void
apply_compressed(struct fill *fill, const struct compression_choice *choice,
                 struct compressed *compressed)
{
    for (uint32_t i = 0; i < choice->column_count; i++) {
        const struct offer *offer = choice->taken[i];

        if (offer == NULL)
            continue;
        fill->columns[i].codec = offer->codec;
        fill->in_place = false;
        compressed->saved_bytes += offer->saved;
        compressed->cost_ns += offer->cost_ns;
        tnd_log(TND_LOG_NOTICE, "stream",
                "%s: memory is %s: column %s is stored by %s, which saves %llu bytes of a batch",
                fill->plan->stream->name, compressed->why == WHY_SCARCE ? "scarce" : "tight",
                fill->plan->element_spec.columns[i].name, tnd_codec_name(&offer->codec),
                (unsigned long long)offer->saved);
    }
}

/* Take offers until the arena fits, or no offer saves more. */
static void
save_what_must_be(struct fill *fill, struct compression_choice *choice,
                  const struct slice_bytes *bytes, uint64_t allowed)
{
    while (!arena_fits(fill, choice, bytes, allowed)) {
        const struct offer *offer =
            compress_offers_best(choice->offers, choice->offer_count, choice->saved);

        if (offer == NULL)
            return;
        take_offer(choice, offer);
        fill->columns[offer->column].codec = offer->codec; /* as lane_size looks at them */
    }
}

/* Nanoseconds for a byte. */
static double
time_copying(struct scratch *scratch)
{
    uint8_t *to = scratch_alloc(scratch, SAMPLE_BYTES),
            *from = scratch_alloc(scratch, SAMPLE_BYTES);
    int64_t least_ns = INT64_MAX;

    memset(from, 1, SAMPLE_BYTES);
    for (int i = 0; i <= TRIES; i++) {
        int64_t began_ns = tnd_clock_ns(), took_ns;

        memcpy(to, from, SAMPLE_BYTES);
        /* Makes each copy depend on the last one, so that the compiler keeps them all. */
        from[i] = to[SAMPLE_BYTES - 1];
        took_ns = tnd_clock_ns() - began_ns;
        if (took_ns < least_ns)
            least_ns = took_ns;
    }
    return (double)least_ns / SAMPLE_BYTES;
}

/* A saved byte is one that the server does not write and the trainer does not read, while the other
 * replicas do the same. Where memory is tight, freeing it is worth as much again. */
static enum compress_why
save_what_pays(const struct fill *fill, struct compression_choice *choice, struct scratch *scratch,
               const struct slice_bytes *bytes, uint32_t sharers, int64_t *ret_worth_ns)
{
    enum { COPIES = 2, TIGHT_TIMES = 2 };
    double copy_ns = time_copying(scratch);
    struct saving saving = {
        .byte_ns = copy_ns * COPIES * TIGHT_TIMES * sharers,
        .begun_ns = fill->in_place ? copy_ns * (double)bytes->as_is : 0,
    };
    bool pays = compress_offers_paying(choice->offers, choice->offer_count, &saving,
                                       choice->column_count, choice->taken);

    for (uint32_t i = 0; pays && i < choice->column_count; i++)
        if (choice->taken[i] != NULL)
            take_offer(choice, choice->taken[i]);
    *ret_worth_ns = (int64_t)(saving.byte_ns * (double)all_saved(choice));
    return pays ? WHY_PAYS : WHY_COSTLY;
}

static void
open_choice(const struct fill *fill, struct compression_choice *ret_choice)
{
    uint32_t count = fill->plan->element_spec.count;

    *ret_choice = (struct compression_choice){
        .column_count = count,
        .columns = tnd_zalloc(count, sizeof *ret_choice->columns),
        .offers = tnd_zalloc(2 * (size_t)count, sizeof *ret_choice->offers),
        .taken = tnd_zalloc(count, sizeof(struct offer *)),
        .saved = tnd_zalloc(count, sizeof *ret_choice->saved),
    };
}

static void
close_choice(struct compression_choice *choice)
{
    free(choice->columns);
    free(choice->offers);
    free(choice->taken);
    free(choice->saved);
}

static enum compress_why
choose_compression(struct fill *fill, struct compression_choice *choice,
                   struct evaluation *evaluation, const struct slice_bytes *bytes,
                   const struct compress_room *room, int64_t *ret_worth_ns)
{
    uint64_t spare = room->spare_bytes;

    if (arena_fits(fill, choice, bytes, room->scarce_bytes))
        return save_what_pays(fill, choice, evaluation->scratch, bytes, room->sharers,
                              ret_worth_ns);
    save_what_must_be(fill, choice, bytes,
                      room->scarce_bytes > spare ? room->scarce_bytes - spare : 0);
    return WHY_SCARCE;
}

void
compress_columns(struct fill *fill, struct evaluation *evaluation,
                 struct tnd_codec_context *context, const struct deal_slice *slice,
                 const struct slice_bytes *bytes, const struct compress_room *room,
                 struct compressed *ret_compressed)
{
    struct compressed compressed = { .why = WHY_UNMEASURED };
    struct compression_choice choice;

    open_choice(fill, &choice);
    scratch_reset(evaluation->scratch);
    if (arena_fits(fill, &choice, bytes, room->tight_bytes)) {
        compressed.why = WHY_ROOMY;
    } else if (fill_columns(fill, evaluation, slice, choice.columns) == TUNDISH_OK) {
        choice.offer_count =
            collect_offers(fill, evaluation, context, choice.columns, choice.offers);
        compressed.why =
            choose_compression(fill, &choice, evaluation, bytes, room, &compressed.worth_ns);
        apply_compressed(fill, &choice, &compressed);
    }
    scratch_reset(evaluation->scratch);
    close_choice(&choice);
    *ret_compressed = compressed;
}

const char *
compress_reason(enum compress_why why)
{
    static const char *const reasons[] = {
        [WHY_ASKED] = "as the file says",
        [WHY_UNMEASURED] = "since there was no first batch to measure",
        [WHY_ROOMY] = "since there is memory for that",
        [WHY_SCARCE] = "since memory is scarce",
        [WHY_PAYS] = "since memory is tight and that costs less than it saves",
        [WHY_COSTLY] = "since less memory would cost more than it saves",
    };

    return reasons[why];
}

void
compress_describe(const struct fill *fill, char text[COMPRESS_TEXT_BYTES])
{
    enum { NAMED = 3 };
    uint32_t stored = 0;
    int at = 0;

    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++) {
        const struct tnd_codec *codec = &fill->columns[i].codec;

        if (codec->number != TND_CODEC_RAW && stored++ < NAMED)
            at += snprintf(text + at, (size_t)(COMPRESS_TEXT_BYTES - at), "%s%.24s by %s",
                           stored == 1 ? "" : ", ", fill->plan->element_spec.columns[i].name,
                           tnd_codec_name(codec));
    }
    if (stored > NAMED)
        snprintf(text + at, (size_t)(COMPRESS_TEXT_BYTES - at), " and %u more", stored - NAMED);
    if (stored == 0)
        snprintf(text, COMPRESS_TEXT_BYTES, "columns as they are");
}
