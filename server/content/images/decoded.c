/* decoded.c - decode a column of image files. */
#include "content/images/decoded.h"

#include <stdio.h>
#include <string.h>

#include "column/dims.h"

static tundish_status
open_column(const struct decoded *decoded, const struct stage_config *config,
            struct column_spec *column)
{
    const char *stage = config->stage->info->name;
    int channels = decoded->options.channels;

    if (column->dtype != TUNDISH_STRING)
        return stage_complain(config, "%s: '%s' is %s; expected the bytes of a file", stage,
                              column->name, tnd_dtype_name(column->dtype));
    if (column->kind != TUNDISH_DENSE || column->rank != 0 || config->depth > 0)
        return stage_complain(config,
                              "%s takes one file, but '%s' has rank %d: put it before batch", stage,
                              column->name, column->rank);
    column->dtype = decoded->options.dtype;
    column->has_range = false;
    if (decoded->options.expand_animations) {
        column->rank = RANK_UNKNOWN;
        return TUNDISH_OK;
    }
    column->rank = 3;
    column->shape[0] = column->shape[1] = -1;
    column->shape[2] = channels != 0 ? channels : -1;
    return TUNDISH_OK;
}

tundish_status
decoded_open(struct decoded *decoded, const struct stage_config *config, struct schema *ret_schema)
{
    tundish_status status;

    decoded->options.stage = config->stage->info->name;
    if (decoded->options.channels == 2)
        return stage_complain(config, "%s: channels must be 0, 1, 3 or 4, not 2",
                              decoded->options.stage);
    status = content_targets_open(config, ret_schema, &decoded->targets);
    for (uint32_t i = 0; i < decoded->targets.count && status == TUNDISH_OK; i++)
        status =
            open_column(decoded, config, &ret_schema->columns[decoded->targets.list[i].output]);
    return status;
}

/* A decoder holds about DECODER_BYTES bytes of its own for each value: coefficients, or values
 * before conversion. */
enum { DECODER_BYTES = 2 };

/* Whether a picture is larger than the memory allows. A few hostile bytes can claim any size. */
static bool
is_too_large(const struct decoded *decoded, const struct picture_size *size,
             const struct scratch *scratch, struct picture_fault *ret_fault)
{
    uint64_t bytes = (uint64_t)dims_product(size->dims, size->rank) *
                     (tnd_dtype_bytes(decoded->options.dtype) + DECODER_BYTES);

    if (bytes <= scratch_ask_most(scratch))
        return false;
    snprintf(ret_fault->text, sizeof ret_fault->text,
             "%s: the image needs %llu bytes, but memory_limit leaves %llu", decoded->options.stage,
             (unsigned long long)bytes, (unsigned long long)scratch_ask_most(scratch));
    return true;
}

/* Measure every picture. All rows of a column have the same rank: that of the first good one. */
static uint32_t
measure(const struct decoded *decoded, const struct byte_view *files, struct frame *output,
        struct picture_size *sizes)
{
    uint32_t rank = 0;

    for (int64_t i = 0; i < output->count; i++) {
        struct picture_fault fault;

        memset(&sizes[i], 0, sizeof sizes[i]);
        if (!picture_measure(&decoded->options, files[i], &sizes[i], &fault) ||
            is_too_large(decoded, &sizes[i], output->scratch, &fault)) {
            frame_reject(output, i, "%s", fault.text);
            sizes[i].rank = 0;
        } else if (rank == 0) {
            rank = sizes[i].rank;
        } else if (rank != sizes[i].rank) {
            frame_reject(output, i,
                         "%s: one image has %u dimensions and another %u; with expand_animations: "
                         "false all images have 3",
                         decoded->options.stage, rank, sizes[i].rank);
            sizes[i].rank = 0;
        }
    }
    return rank != 0 ? rank : 3;
}

/* Set the dimensions of each picture. A rejected one is empty. */
static void
set_shape(const struct picture_size *sizes, uint32_t rank, struct frame *output,
          struct column *column)
{
    int64_t *dims = scratch_array(output->scratch, (size_t)output->count * rank, sizeof *dims);

    for (int64_t i = 0; i < output->count; i++)
        for (uint32_t k = 0; k < rank; k++)
            dims[i * rank + k] = sizes[i].rank != 0 ? sizes[i].dims[k] : 0;
    column_set_dims_each(column, output->count, rank, dims, output->scratch);
}

/* Ask for the memory of all pictures, and of the decoder, before any is decoded. */
static tundish_status
ask_room(const struct decoded *decoded, const struct picture_size *sizes, struct frame *output)
{
    bool converts = decoded->options.dtype != TUNDISH_UINT8; /* each in scratch */
    uint64_t values = 0, largest = 0;
    tundish_status status;

    for (int64_t i = 0; i < output->count; i++) {
        uint64_t own =
            sizes[i].rank != 0 ? (uint64_t)dims_product(sizes[i].dims, sizes[i].rank) : 0;

        values += own;
        largest = own > largest ? own : largest;
    }
    status = scratch_ask(output->scratch, values * tnd_dtype_bytes(decoded->options.dtype) +
                                              (converts ? values : largest) * DECODER_BYTES);
    return status == TUNDISH_OK ? status : tnd_fail_while(status, "%s", decoded->options.stage);
}

static tundish_status
decode_column(const struct decoded *decoded, const struct content_target *target,
              const struct frame *input, struct frame *output)
{
    const struct byte_view *files = input->columns[target->input].values;
    struct column *column = &output->columns[target->output];
    size_t value_bytes = tnd_dtype_bytes(decoded->options.dtype);
    struct picture_size *sizes =
        scratch_array(output->scratch, (size_t)output->count, sizeof *sizes);
    uint32_t rank = measure(decoded, files, output, sizes);
    tundish_status status = ask_room(decoded, sizes, output);
    uint8_t *values;

    if (status != TUNDISH_OK)
        return status;
    set_shape(sizes, rank, output, column);
    values = frame_values(output, target->output, (size_t)column->value_count * value_bytes);
    column->values = values;
    for (int64_t i = 0; i < output->count; i++) {
        struct picture_fault fault;

        if (sizes[i].rank == 0)
            continue;
        /* A picture that fails keeps its index, so that later ones keep theirs. */
        if (!picture_read(&decoded->options, files[i], &sizes[i], output->scratch, values, &fault))
            frame_reject(output, i, "%s", fault.text);
        values += (size_t)dims_product(sizes[i].dims, rank) * value_bytes;
    }
    return TUNDISH_OK;
}

tundish_status
decoded_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct decoded *decoded = state;
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < decoded->targets.count && status == TUNDISH_OK; i++)
        status = decode_column(decoded, &decoded->targets.list[i], input, output);
    return status;
}

void
decoded_close(void *state)
{
    struct decoded *decoded = state;

    content_targets_close(&decoded->targets);
}
