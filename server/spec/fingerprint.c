/* fingerprint.c - the hash of stages. */
#include "spec/fingerprint.h"

#include <string.h>

#include "core/hash_farm.h"
#include "core/redact.h"

/* A path counts by its file name, so a fingerprint is the same after data has been moved, or an
 * address signed again. */
static uint64_t
hash_text(uint64_t hash, const char *text, size_t bytes, enum spec_counting counting)
{
    const char *last = NULL;

    if (counting == COUNTS_AS_PATH || counting == COUNTS_AS_MATCHES) {
        bytes = tnd_redact_unsigned_bytes(text);
        last = memrchr(text, '/', bytes);
    }
    if (last != NULL) {
        bytes -= (size_t)(last + 1 - text);
        text = last + 1;
    }
    return tnd_hash_farm_chain(hash, text, bytes);
}

static bool
is_known_pattern(const struct spec_value *value)
{
    return value->kind == SPEC_TEXT && memchr(value->text, '$', value->text_bytes) == NULL;
}

static uint64_t
hash_value(uint64_t hash, const struct spec_value *value, enum spec_counting counting,
           spec_counts *counts)
{
    /* An absent value differs from every kind. */
    uint64_t kind = value == NULL ? UINT64_MAX : (uint64_t)value->kind;

    hash = tnd_hash_farm_chain(hash, &kind, sizeof kind);
    if (value == NULL || (counting == COUNTS_AS_MATCHES && is_known_pattern(value)))
        return hash;
    if (value->text != NULL)
        hash = hash_text(hash, value->text, value->text_bytes, counting);
    for (uint32_t i = 0; i < value->count; i++) {
        if (value->kind == SPEC_MAP)
            /* Keys are never paths. */
            hash = hash_text(hash, value->keys[i].text, value->keys[i].text_bytes, COUNTS_WHOLE);
        hash = hash_value(hash, &value->items[i], counting, counts);
    }
    return value->dataset != NULL ? spec_hash_dataset(hash, value->dataset, counts) : hash;
}

uint64_t
spec_hash_stage(uint64_t hash, const struct spec_stage *stage, spec_counts *counts)
{
    const struct stage_info *info = stage->info;

    hash = hash_text(hash, info->name, strlen(info->name), COUNTS_WHOLE);
    for (uint32_t i = 0; i < info->parameter_count; i++) {
        enum spec_counting counting = counts(&info->parameters[i]);
        bool is_older =
            stage->arguments[i] == NULL && (info->parameters[i].types & TYPE_LATER) != 0;

        if (counting != COUNTS_NOT && !is_older)
            hash = hash_value(hash, stage->arguments[i], counting, counts);
    }
    return hash;
}

uint64_t
spec_hash_dataset(uint64_t hash, const struct spec_dataset *dataset, spec_counts *counts)
{
    for (uint32_t i = 0; i < dataset->stage_count; i++)
        hash = spec_hash_stage(hash, &dataset->stages[i], counts);
    return hash;
}
