/* text_buckets.c - string to hash bucket: FarmHash or SipHash, modulo the number of buckets,
 * without sign. */
#include "content/text/text_buckets.h"

#include "column/words.h"
#include "core/hash_farm.h"
#include "core/hash_sip.h"
#include "core/modulus.h"

tundish_status
text_buckets_read_key(struct text_buckets *stage, const struct stage_config *config)
{
    const struct spec_value *key = spec_get(config->stage, "key");

    if (key->kind != SPEC_LIST || key->count != 2)
        return spec_complain(
            config->errors, key->line, key->column, "key must be two integers, and there %s %u",
            key->count == 1 ? "is" : "are", key->kind == SPEC_LIST ? key->count : 1);
    stage->is_strong = true;
    for (uint32_t i = 0; i < 2; i++)
        stage->key[i] = key->items[i].kind == SPEC_INTEGER ? (uint64_t)key->items[i].integer
                                                           : key->items[i].natural;
    return TUNDISH_OK;
}

tundish_status
text_buckets_describe(void *state, const struct stage_config *config, void *own,
                      struct column_spec *column, bool *batch_wide)
{
    const struct text_buckets *stage = state;
    tundish_status status =
        (stage->takes_sparse ? texts_describe_any : texts_describe)(config, column, TUNDISH_INT64);

    (void)own;
    (void)batch_wide;
    column->has_range = true;
    column->minimum = 0;
    column->maximum = (int64_t)stage->count - 1;
    return status;
}

static void
make_buckets(const void *state, const struct byte_view *texts, size_t count, int64_t *ret_buckets)
{
    const struct text_buckets *stage = state;
    /* A precomputed reciprocal replaces the 64-bit division of each value. */
    const struct tnd_modulus modulus = tnd_modulus_of(stage->count);

    for (size_t j = 0; j < count; j++) {
        uint64_t hash = stage->is_strong ? tnd_hash_sip(stage->key, texts[j].data, texts[j].size)
                                         : tnd_hash_farm(texts[j].data, texts[j].size);

        ret_buckets[j] = (int64_t)tnd_modulo(modulus, hash);
    }
}

static struct words_maker
maker_of(const void *state)
{
    return (struct words_maker){ .key = state, .make = make_buckets, .context = state };
}

bool
text_buckets_takes_words(const void *state, uint32_t column, struct words_maker *ret_maker)
{
    const struct text_buckets *stage = state;

    if (column_wise_has(&stage->wise, column))
        *ret_maker = maker_of(state);
    return true;
}

void
text_buckets_map(const void *state, const struct column_map *map)
{
    const struct words_maker maker = maker_of(state);
    const struct column *from = map->from;
    int64_t *buckets =
        frame_values(map->output, map->at, (size_t)from->value_count * sizeof *buckets);

    if (!words_make(map->output->scratch, &maker, from->values, from->value_count, buckets))
        make_buckets(state, from->values, (size_t)from->value_count, buckets);
    column_set_like(map->to, from, buckets);
}
