/* text_buckets.c - string to hash bucket: FarmHash or SipHash, modulo the number of buckets,
 * without sign. */
#include "content/text/text_buckets.h"

#include "column/words.h"
#include "core/hash_farm.h"
#include "core/hash_sip.h"
#include "core/modulus.h"

tundish_status
text_buckets_open(struct text_buckets *stage, const struct stage_config *config, uint64_t count,
                  struct schema *ret_schema, bool *ret_batch_wide)
{
    tundish_status status = (stage->takes_sparse ? texts_open_any : texts_open)(
        config, TUNDISH_INT64, ret_schema, &stage->targets);

    *ret_batch_wide = false;
    stage->count = count;
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[stage->targets.list[i].output];

        column->has_range = true;
        column->minimum = 0;
        column->maximum = (int64_t)stage->count - 1;
    }
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

tundish_status
text_buckets_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct text_buckets *stage = state;
    const struct words_maker maker = { .key = state, .make = make_buckets, .context = state };

    for (uint32_t i = 0; i < stage->targets.count; i++) {
        const struct content_target *target = &stage->targets.list[i];
        const struct column *from = &input->columns[target->input];
        int64_t *buckets =
            frame_values(output, target->output, (size_t)from->value_count * sizeof *buckets);

        if (!words_make(output->scratch, &maker, from->values, from->value_count, buckets))
            make_buckets(stage, from->values, (size_t)from->value_count, buckets);
        column_set_like(&output->columns[target->output], from, buckets);
    }
    return TUNDISH_OK;
}

void
text_buckets_close(void *state)
{
    struct text_buckets *stage = state;

    content_targets_close(&stage->targets);
}
