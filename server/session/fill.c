/* fill.c - how the slices of a stream are filled. */
#include "session/fill.h"

#include <stdlib.h>

#include "batch/verbatim.h"
#include "core/memory.h"

struct tnd_codec
fill_narrow_codec(const struct column_spec *spec)
{
    size_t bytes = tnd_dtype_bytes(spec->dtype);

    if (spec->has_range && (bytes == 4 || bytes == 8) && tnd_dtype_is_integer(spec->dtype))
        return tnd_codec_for_range((uint8_t)bytes, spec->minimum, spec->maximum);
    return (struct tnd_codec){ .number = TND_CODEC_RAW };
}

/* `auto` is decided later, when there is a first step to measure (compress.h). */
static struct tnd_codec
choose_codec(const struct spec_deliver *deliver, const struct column_spec *spec)
{
    struct tnd_codec codec = { .number = TND_CODEC_RAW };

    if (deliver->compression == COMPRESS_NARROW || deliver->compression == COMPRESS_ZSTD)
        codec = fill_narrow_codec(spec);
    if (deliver->compression == COMPRESS_ZSTD && codec.number == TND_CODEC_RAW)
        codec = (struct tnd_codec){
            .number = TND_CODEC_ZSTD,
            .width = 18,
            .level = (int8_t)deliver->zstd_level,
        };
    return codec;
}

static int64_t
values_of_row(const struct column_spec *spec)
{
    int64_t values = 1;

    if (spec->kind != TUNDISH_DENSE || spec->dtype == TUNDISH_STRING || spec->rank < 1)
        return -1;
    for (int k = 1; k < spec->rank; k++)
        if (spec->shape[k] < 0 || __builtin_mul_overflow(values, spec->shape[k], &values))
            return -1;
    return values;
}

static uint64_t (*row_bytes_of(const struct plan *plan, uint32_t column))(const uint64_t *words)
{
    const struct column_spec *spec = &plan->element_spec.columns[column];
    const struct source_ops *source = NULL;

    if (spec->kind == TUNDISH_DENSE && spec->dtype == TUNDISH_STRING && spec->rank == 1)
        source = verbatim_source(plan->graph->root, column);
    return source != NULL ? source->row_bytes : NULL;
}

void
fill_open(const struct plan *plan, struct fill *ret_fill)
{
    const struct schema *schema = &plan->element_spec;
    bool rows_known = plan->rows_apart && !plan->stream->deliver.skip_errors;
    struct fill fill = {
        .plan = plan,
        .columns = tnd_zalloc(schema->count, sizeof *fill.columns),
        .in_place = rows_known,
        .is_even = rows_known,
    };

    for (uint32_t i = 0; i < schema->count; i++) {
        const struct column_spec *spec = &schema->columns[i];
        struct fill_column *column = &fill.columns[i];

        column->row_values = values_of_row(spec);
        column->value_bytes = spec->dtype == TUNDISH_STRING ? 1 : tnd_dtype_bytes(spec->dtype);
        column->codec = choose_codec(&plan->stream->deliver, spec);
        column->row_bytes = row_bytes_of(plan, i);
        if ((column->row_values < 0 && column->row_bytes == NULL) ||
            column->codec.number != TND_CODEC_RAW)
            fill.in_place = false;
        fill.is_even &= column->row_values >= 0;
    }
    *ret_fill = fill;
}

/* Does the column's type allow the codec? */
static bool
may_store(const struct column_spec *spec, const struct tnd_codec *codec)
{
    uint64_t stored;

    switch (codec->number) {
    case TND_CODEC_RAW:
        return true;
    case TND_CODEC_NARROW:
    case TND_CODEC_BITPACK:
        return tnd_dtype_is_integer(spec->dtype) &&
               codec->value_bytes == tnd_dtype_bytes(spec->dtype) &&
               tnd_codec_bound(codec, codec->value_bytes, &stored) == TUNDISH_OK;
    case TND_CODEC_ZSTD:
        return tnd_codec_bound(codec, 1, &stored) == TUNDISH_OK;
    default:
        return false;
    }
}

tundish_status
fill_open_stored(const struct plan *plan, const struct tnd_codec *codecs, struct fill *ret_fill)
{
    struct fill fill;

    fill_open(plan, &fill);
    fill.in_place = plan->rows_apart && !plan->stream->deliver.skip_errors;
    for (uint32_t i = 0; i < plan->element_spec.count; i++) {
        struct fill_column *column = &fill.columns[i];

        column->codec = codecs[i];
        if ((column->row_values < 0 && column->row_bytes == NULL) ||
            codecs[i].number != TND_CODEC_RAW)
            fill.in_place = false;
        if (!may_store(&plan->element_spec.columns[i], &codecs[i])) {
            fill_close(&fill);
            return tnd_fail(TUNDISH_E_DATA, "column '%s' cannot be stored by the codec %s",
                            plan->element_spec.columns[i].name, tnd_codec_name(&codecs[i]));
        }
    }
    *ret_fill = fill;
    return TUNDISH_OK;
}

bool
fill_open_packed(const struct fill *fill, bool keeps_zstd, struct fill *ret_fill)
{
    uint32_t count = fill->plan->element_spec.count;
    struct fill packed = *fill;
    bool differs = false;

    packed.columns = tnd_zalloc(count, sizeof *packed.columns);
    for (uint32_t i = 0; i < count; i++) {
        struct tnd_codec narrow = fill_narrow_codec(&fill->plan->element_spec.columns[i]);
        uint8_t number = fill->columns[i].codec.number;

        packed.columns[i] = fill->columns[i];
        if (narrow.number == TND_CODEC_RAW ||
            (number != TND_CODEC_RAW && (number != TND_CODEC_ZSTD || keeps_zstd)))
            continue;
        packed.columns[i].codec = narrow;
        packed.in_place = false;
        differs = true;
    }
    if (differs)
        *ret_fill = packed;
    else
        fill_close(&packed);
    return differs;
}

void
fill_close(struct fill *fill)
{
    free(fill->columns);
    *fill = (struct fill){ 0 };
}
