/* limit_tfrecord.c - the click log from tf.Example in TFRecord: limit_tfrecord DIR [THREADS]
 *
 * Records give their features in the same order, so the feature after one that was seen is guessed
 * to be the one that followed it last time; a name is compared, never searched, while that holds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clicks.h"
#include "core/crc32c.h"
#include "core/memory.h"

enum { BATCH_ROWS = 4096, BUFFER_BYTES = 1 << 20, SHARDS = 4, NO_FEATURE = CLICKS_COLUMNS };

static char names[CLICKS_COLUMNS][8];
static size_t name_bytes[CLICKS_COLUMNS];

/* Which feature followed which. */
struct guesses {
    uint32_t after[CLICKS_COLUMNS + 1];
};

static void
name_features(void)
{
    for (int i = 0; i < CLICKS_COLUMNS; i++) {
        if (i == 0)
            snprintf(names[i], sizeof(names[i]), "label");
        else if (i <= CLICKS_INTEGERS)
            snprintf(names[i], sizeof(names[i]), "I%d", i);
        else
            snprintf(names[i], sizeof(names[i]), "C%d", i - CLICKS_INTEGERS);
        name_bytes[i] = strlen(names[i]);
    }
}

static const uint8_t *
read_varint(const uint8_t *at, uint64_t *ret_value)
{
    uint64_t value = *at & 127;

    for (unsigned shift = 7; *at++ > 127; shift += 7)
        value |= (uint64_t)(*at & 127) << shift;
    *ret_value = value;
    return at;
}

/* The contents of a length-delimited field. */
static const uint8_t *
enter(const uint8_t *at, const uint8_t **ret_end)
{
    uint64_t bytes;

    at = read_varint(at + 1, &bytes);
    *ret_end = at + bytes;
    return at;
}

static bool
is_named(uint32_t feature, const uint8_t *name, size_t bytes)
{
    return feature < CLICKS_COLUMNS && name_bytes[feature] == bytes &&
           memcmp(names[feature], name, bytes) == 0;
}

static uint32_t
identify(struct guesses *guesses, uint32_t before, const uint8_t *name, size_t bytes)
{
    uint32_t feature = guesses->after[before];

    if (is_named(feature, name, bytes))
        return feature;
    for (feature = 0; feature < CLICKS_COLUMNS && !is_named(feature, name, bytes); feature++)
        ;
    guesses->after[before] = feature;
    return feature;
}

/* The value of a feature with one value: Feature, then its list, then the value. */
static void
take_value(struct clicks *clicks, uint32_t feature, const uint8_t *at)
{
    struct clicks_batch *batch = clicks_batch(clicks);
    const uint8_t *end, *value;
    uint64_t number, key = 0;

    at = enter(at, &end);
    at = enter(at, &end);
    value = enter(at, &end);
    if (feature > CLICKS_INTEGERS) {
        if (end > value)
            memcpy(&key, value, sizeof(key));
        clicks_put_key(clicks, feature - CLICKS_INTEGERS - 1, key);
        return;
    }
    read_varint(value, &number);
    if (feature == 0)
        batch->label[clicks_row(clicks)] = (float)number;
    else
        batch->dense[clicks_row(clicks)][feature - 1] = clicks_log((int64_t)number);
}

static void
take_example(struct clicks *clicks, struct guesses *guesses, const uint8_t *at)
{
    const uint8_t *features_end, *entry_end, *name_end;
    uint32_t feature = NO_FEATURE;

    memset(clicks_batch(clicks)->dense[clicks_row(clicks)], 0, sizeof(float) * CLICKS_INTEGERS);
    memset(clicks->keys[clicks->block_rows], 0, sizeof(clicks->keys[0]));
    for (at = enter(at, &features_end); at < features_end; at = entry_end) {
        const uint8_t *name;

        at = enter(at, &entry_end);
        name = enter(at, &name_end);
        feature = identify(guesses, feature, name, (size_t)(name_end - name));
        if (feature < CLICKS_COLUMNS)
            take_value(clicks, feature, name_end);
    }
    clicks_end_row(clicks);
}

static void
take_records(struct clicks *clicks, struct guesses *guesses, struct input *input)
{
    for (;;) {
        const uint8_t *at = input->buffer + input->begin;
        size_t bytes = input->used - input->begin;
        uint64_t length;
        uint32_t crc;

        if (bytes < 12)
            return;
        memcpy(&length, at, sizeof(length));
        if (bytes < length + 16)
            return;
        memcpy(&crc, at + 12 + length, sizeof(crc));
        if (tnd_crc32c_mask(tnd_crc32c(0, at + 12, length)) != crc)
            abort();
        take_example(clicks, guesses, at + 12);
        input->begin += length + 16;
    }
}

static void
pass(struct share *share)
{
    struct clicks *clicks = tnd_zalloc(1, sizeof(*clicks));
    struct guesses guesses = { { 0 } };

    clicks->share = share;
    clicks->batch_rows = BATCH_ROWS;
    while (input_fill(&share->input))
        take_records(clicks, &guesses, &share->input);
    clicks_end(clicks);
    free(clicks);
}

int
main(int argc, char **argv)
{
    const char *folder = limit_folder(argc, argv), *paths[SHARDS];
    const struct limit limit = { sizeof(struct clicks_batch), BUFFER_BYTES, false, pass };

    for (int i = 0; i < SHARDS; i++)
        paths[i] = limit_path("%s/train-%05d-of-%05d.tfrecord", folder, i, SHARDS);
    name_features();
    clicks_load(folder);
    return limit_measure(&limit, paths, SHARDS, limit_threads(argc, argv));
}
