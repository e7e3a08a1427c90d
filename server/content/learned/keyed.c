/* keyed.c - find the key of each value of a column. */
#include "content/learned/keyed.h"

#include <string.h>

bool
keyed_in_text(const struct stage_config *config)
{
    const struct spec_value *file = NULL;

    if (stage_parameter(config->stage->info, "key_vocabulary_filename") >= 0)
        file = spec_get(config->stage, "key_vocabulary_filename");
    return file != NULL && file->kind != SPEC_NULL;
}

tundish_status
keyed_check(const struct stage_config *config, const struct column_spec *column,
            const struct column_spec *key)
{
    if (key->dtype != TUNDISH_STRING)
        return stage_complain(config, "%s: the keys in '%s' have dtype %s; expected strings",
                              config->stage->info->name, key->name, tnd_dtype_name(key->dtype));
    if (key->rank != RANK_UNKNOWN && column->rank != RANK_UNKNOWN && key->rank > column->rank)
        return stage_complain(config, "%s: '%s' has more dimensions than '%s'",
                              config->stage->info->name, key->name, column->name);
    if (stage_parameter(config->stage->info, "elementwise") < 0 ||
        !spec_bool(config->stage, "elementwise"))
        return TUNDISH_OK;
    if (keyed_in_text(config))
        return stage_complain(config,
                              "%s: elementwise and key_vocabulary_filename are mutually exclusive",
                              config->stage->info->name);
    if (key->rank != (int)config->depth)
        return stage_complain(config, "%s: elementwise needs one key a row, and '%s' has more",
                              config->stage->info->name, key->name);
    return TUNDISH_OK;
}

/* Open the learned keys as a vocabulary, which maps a key to its row. */
tundish_status
keyed_open(const struct stage_config *config, const struct learned_table *table,
           struct vocab **ret_keys)
{
    tundish_status status;

    if (!table->has_keys)
        return stage_complain(config,
                              "%s: the learned statistics have no keys; run `tundish analyze %s`",
                              config->stage->info->name, config->stage->file->path);
    *ret_keys = NULL;
    /* Nothing was seen while learning: every key is unknown, and an empty vocabulary cannot be
     * made. */
    if (table->key_count == 0)
        return TUNDISH_OK;
    status = vocab_open_terms(config->cache_folder, "keys", table->keys, (size_t)table->key_count,
                              ret_keys);
    return status == TUNDISH_OK ? status : stage_complain(config, "%s", tnd_error_text());
}

int64_t
keyed_values_each(const struct column *key, const struct column *column, int64_t element)
{
    /* All keys of an element have equally many values: a key for each row of a dense element, or
     * one for each value. */
    int64_t key_begin, key_end, begin, end;

    column_value_range(key, element, element + 1, &key_begin, &key_end);
    column_value_range(column, element, element + 1, &begin, &end);
    /* Without keys there may be no values either. */
    if (key_end == key_begin)
        return end == begin ? 0 : -1;
    return (end - begin) % (key_end - key_begin) == 0 ? (end - begin) / (key_end - key_begin) : -1;
}

const int64_t *
keyed_lines(const struct vocab *keys, const struct column *key, const struct column *column,
            struct frame *output)
{
    int64_t *found = scratch_array(output->scratch, (size_t)key->value_count, sizeof *found);
    int64_t *lines = scratch_array(output->scratch, (size_t)column->value_count, sizeof *lines);
    int64_t key_at = 0, at = 0;

    if (keys != NULL)
        vocab_lookup(keys, key->values, (size_t)key->value_count, found);
    else
        memset(found, -1, (size_t)key->value_count * sizeof *found);
    for (int64_t e = 0; e < column->count; e++) {
        int64_t each = keyed_values_each(key, column, e);
        int64_t key_end, end, unused;

        column_value_range(key, e, e + 1, &unused, &key_end);
        column_value_range(column, e, e + 1, &unused, &end);
        /* The arrays are filled even for a rejected element, since the loops after this read all of
         * them. */
        if (each < 0) {
            frame_reject(output, e, "there are %lld values for %lld keys", (long long)(end - at),
                         (long long)(key_end - key_at));
            for (; at < end; at++)
                lines[at] = -1;
        }
        for (int64_t k = key_at; each > 0 && k < key_end; k++)
            for (int64_t i = 0; i < each; i++)
                lines[at++] = found[k];
        key_at = key_end;
        at = end;
    }
    return lines;
}
