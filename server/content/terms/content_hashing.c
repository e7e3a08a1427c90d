/* content_hashing.c - keras.layers.Hashing: any value to a bin, by the hash of its text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "column/literal.h"
#include "column/words.h"
#include "content/column_wise.h"
#include "content/terms/encoding.h"
#include "content/terms/lookup.h"
#include "core/hash_decimals.h"
#include "core/hash_farm.h"
#include "core/hash_sip.h"
#include "core/memory.h"
#include "core/modulus.h"

enum { BLOCK = 256 }; /* hashes at a time; they stay in the cache */

struct hashing {
    struct column_wise wise;
    int64_t num_bins;
    struct tnd_modulus modulus; /* of the bins other than the mask's */
    bool is_salted;
    uint64_t salt[2];
    bool has_mask; /* with one bin there is no room for a mask */
    bool mask_is_text;
    struct byte_view mask; /* owned */
    int64_t mask_integer;
    struct encoding encoding;
};

static tundish_status
read_parameters(void *memory, const struct stage_config *config)
{
    struct hashing *state = memory;
    const struct spec_value *mask = spec_get(config->stage, "mask_value");
    tundish_status status = lookup_salt(config, state->salt, &state->is_salted);

    state->num_bins = spec_int(config->stage, "num_bins");
    state->encoding.depth = state->num_bins;
    if (mask != NULL && mask->kind != SPEC_NULL) {
        state->has_mask = state->num_bins > 1;
        state->mask_is_text = mask->kind == SPEC_TEXT;
        state->mask = literal_text(mask->text, mask->text_bytes);
        state->mask_integer = mask->integer;
    }
    state->modulus = tnd_modulus_of((uint64_t)(state->num_bins - state->has_mask));
    return status != TUNDISH_OK ? status : encoding_read(&state->encoding, config, false);
}

static tundish_status
check_input(const struct hashing *state, const struct stage_config *config,
            const struct column_spec *column)
{
    bool is_text = column->dtype == TUNDISH_STRING;

    if (state->encoding.mode == ENCODE_ONE_HOT && column->rank == 0)
        return stage_complain(config,
                              "hashing: one_hot needs a batch, but '%s' is a single value in each "
                              "row; use batch first",
                              column->name);
    if (state->has_mask && column->dtype == TUNDISH_BOOL)
        return stage_complain(config, "column '%s' is bool, which has no mask_value", column->name);
    if (state->has_mask && state->mask_is_text != is_text)
        return stage_complain(config, "mask_value must be %s, as column '%s' is",
                              is_text ? "text" : "a number", column->name);
    return TUNDISH_OK;
}

/* TensorFlow replaces masked values by rebuilding the ragged rows, and keeps a static row length
 * only where the number of rows is static. */
static void
forget_lengths(struct column_spec *column)
{
    for (int k = 1; k <= column->ragged_rank; k++)
        if (column->shape[k - 1] < 0)
            column->shape[k] = -1;
}

static tundish_status
describe(void *memory, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    struct hashing *state = memory;
    tundish_status status = check_input(state, config, column);

    (void)own;
    if (status != TUNDISH_OK)
        return status;
    if (state->has_mask)
        forget_lengths(column);
    column->has_range = state->encoding.mode == ENCODE_INT;
    column->minimum = 0;
    column->maximum = state->num_bins - 1;
    if (state->encoding.mode != ENCODE_INT)
        return encoding_open(&state->encoding, config, column, batch_wide);
    column->dtype = state->encoding.dtype;
    return TUNDISH_OK;
}

static inline int64_t
bin_of_hash(const struct hashing *state, uint64_t hash)
{
    return state->has_mask + (int64_t)tnd_modulo(state->modulus, hash);
}

/* tf.strings.to_hash_bucket_strong with a salt, to_hash_bucket_fast without. */
static inline uint64_t
hash_of_text(const struct hashing *state, const void *text, size_t bytes)
{
    return state->is_salted ? tnd_hash_sip(state->salt, text, bytes) : tnd_hash_farm(text, bytes);
}

static void
hash_integers(const struct hashing *state, const int64_t *integers, size_t count,
              uint64_t *ret_hashes)
{
    if (state->is_salted)
        tnd_hash_sip_decimals(state->salt, integers, count, ret_hashes);
    else
        tnd_hash_farm_decimals(integers, count, ret_hashes);
}

static void
make_bins(const void *memory, const struct byte_view *texts, size_t count, int64_t *ret_bins)
{
    const struct hashing *state = memory;

    for (size_t i = 0; i < count; i++)
        ret_bins[i] = state->has_mask && bytes_are_equal(texts[i], state->mask)
                          ? 0
                          : bin_of_hash(state, hash_of_text(state, texts[i].data, texts[i].size));
}

static struct words_maker
maker_of(const struct hashing *state)
{
    return (struct words_maker){ .key = state, .make = make_bins, .context = state };
}

static bool
takes_words(const void *memory, uint32_t column, struct words_maker *ret_maker)
{
    const struct hashing *state = memory;

    if (column_wise_has(&state->wise, column))
        *ret_maker = maker_of(state);
    return true;
}

static void
bins_of_texts(const struct hashing *state, const struct column *column, struct scratch *scratch,
              int64_t *ret_bins)
{
    const struct words_maker maker = maker_of(state);

    if (!words_make(scratch, &maker, column->values, column->value_count, ret_bins))
        make_bins(state, column->values, (size_t)column->value_count, ret_bins);
}

/* Hash integers by their decimal text, as Keras' as_string does, a block at a time. */
static void
bins_of_all(const struct hashing *state, const int64_t *integers, int64_t count, int64_t *ret_bins)
{
    uint64_t hashes[BLOCK];

    for (int64_t i = 0; i < count; i += BLOCK) {
        const int64_t some = count - i < BLOCK ? count - i : BLOCK;

        hash_integers(state, integers + i, (size_t)some, hashes);
        for (int64_t k = 0; k < some; k++)
            ret_bins[i + k] = bin_of_hash(state, hashes[k]);
    }
}

/* Hash everything, then overwrite masked values: the loop over hashes stays free of branches. */
static void
bins_of_integers(const struct hashing *state, const int64_t *integers, int64_t count,
                 int64_t *ret_bins)
{
    bins_of_all(state, integers, count, ret_bins);
    for (int64_t i = 0; state->has_mask && i < count; i++)
        ret_bins[i] = integers[i] == state->mask_integer ? 0 : ret_bins[i];
}

/* Above INT64_MAX a number's text is not that of the int64 with the same bits, so hash these
 * again. */
static void
bins_of_naturals(const struct hashing *state, const struct column *column, int64_t *ret_bins)
{
    const uint64_t *naturals = column->values;

    bins_of_integers(state, column->values, column->value_count, ret_bins);
    for (int64_t i = 0; i < column->value_count; i++) {
        char text[24];
        int bytes;

        if (naturals[i] <= INT64_MAX)
            continue;
        bytes = snprintf(text, sizeof text, "%llu", (unsigned long long)naturals[i]);
        ret_bins[i] = bin_of_hash(state, hash_of_text(state, text, (size_t)bytes));
    }
}

static void
bins_of_booleans(const struct hashing *state, const struct column *column, int64_t *ret_bins)
{
    const uint8_t *booleans = column->values;

    for (int64_t i = 0; i < column->value_count; i++)
        ret_bins[i] = bin_of_hash(state, booleans[i] ? hash_of_text(state, "true", 4)
                                                     : hash_of_text(state, "false", 5));
}

/* The integer part of a float. A value outside int64 becomes the smallest one, which is what
 * TensorFlow's cast gives on x86-64; in C the cast is undefined. */
static inline int64_t
truncated(double number)
{
    return number >= -0x1p63 && number < 0x1p63 ? (int64_t)number : INT64_MIN;
}

static void
bins_of_floats(const struct hashing *state, const double *numbers, int64_t count, int64_t *ret_bins)
{
    int64_t integers[BLOCK];

    for (int64_t i = 0; i < count; i += BLOCK) {
        const int64_t some = count - i < BLOCK ? count - i : BLOCK;

        for (int64_t k = 0; k < some; k++)
            integers[k] = truncated(numbers[i + k]);
        bins_of_all(state, integers, some, ret_bins + i);
    }
    for (int64_t i = 0; state->has_mask && i < count; i++)
        /* The mask is compared before the float is truncated, as in Keras. */
        ret_bins[i] = numbers[i] == (double)state->mask_integer ? 0 : ret_bins[i];
}

static void
find_bins(const struct hashing *state, tundish_dtype dtype, const struct column *column,
          struct scratch *scratch, int64_t *ret_bins)
{
    if (dtype == TUNDISH_STRING)
        bins_of_texts(state, column, scratch, ret_bins);
    else if (dtype == TUNDISH_UINT64)
        bins_of_naturals(state, column, ret_bins);
    else if (dtype == TUNDISH_BOOL)
        bins_of_booleans(state, column, ret_bins);
    else if (tnd_dtype_is_float(dtype))
        bins_of_floats(state, convert_column(TUNDISH_FLOAT64, dtype, column, scratch),
                       column->value_count, ret_bins);
    else
        bins_of_integers(state, lookup_integers(dtype, column, scratch), column->value_count,
                         ret_bins);
}

static void
map_column(const void *memory, const struct column_map *map)
{
    const struct hashing *state = memory;
    struct scratch *scratch = map->output->scratch;
    size_t bytes = (size_t)map->from->value_count * sizeof(int64_t);
    bool is_wide = state->encoding.mode == ENCODE_INT && state->encoding.dtype == TUNDISH_INT64;
    int64_t *bins =
        is_wide ? frame_values(map->output, map->at, bytes) : scratch_alloc(scratch, bytes);
    struct column numbered;

    find_bins(state, map->spec->dtype, map->from, scratch, bins);
    column_set_like(&numbered, map->from, bins);
    encoding_store(&state->encoding, map->spec, &numbered, map->output, map->at);
}

static void
close_mask(void *memory)
{
    struct hashing *state = memory;

    free((void *)(uintptr_t)state->mask.data);
}

static const struct column_wise_ops columns = {
    .read = read_parameters,
    .describe = describe,
    .map = map_column,
    .close = close_mask,
};

const struct content_ops content_hashing = {
    .name = "hashing",
    .takes_missing = true,
    .state_bytes = sizeof(struct hashing),
    .columns = &columns,
    .open = column_wise_open,
    .takes_words = takes_words,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
