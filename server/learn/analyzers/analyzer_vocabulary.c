/* analyzer_vocabulary.c - the terms of a column by how often they occur: adapt() of the Keras
 * layers, and tft.vocabulary.
 *
 * Counts are whole numbers, so each thread has a table of its own. Weights and labels are added up
 * in one table in the order of the elements, because sums of floats depend on it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "learn/terms/vocabulary_order.h"
#include "learn/terms/vocabulary_state.h"
#include "learn/transform_batches.h"

enum { LABELS_MAX = 4096 };

static struct byte_view
copy_text(struct byte_view text)
{
    return (struct byte_view){ (const uint8_t *)tnd_strndup((const char *)text.data, text.size),
                               text.size };
}

static struct byte_view
copy_integer(int64_t integer)
{
    uint8_t *key = tnd_zalloc(1, 8);

    vocabulary_integer_key(integer, key);
    return (struct byte_view){ key, 8 };
}

static void
keep_specials(struct vocabulary *vocabulary, const struct learned_specials *specials)
{
    vocabulary->is_integer = specials->keys == VOCAB_INTEGERS;
    vocabulary->has_mask = specials->has_mask;
    if (vocabulary->is_integer) {
        vocabulary->mask = copy_integer(specials->mask_integer);
        vocabulary->oov = copy_integer(specials->oov_integer);
    } else {
        vocabulary->mask = copy_text(specials->mask);
        vocabulary->oov = copy_text(specials->oov);
    }
}

static tundish_status
open_keras(struct vocabulary *vocabulary, const struct analyzer_config *config)
{
    const struct spec_stage *stage = config->content->stage;
    const char *mode = spec_text(stage, "output_mode");
    bool is_int = strcmp(mode, "int") == 0;
    struct learned_specials specials;

    vocabulary->is_keras = true;
    vocabulary->order = &vocabulary_order_count;
    vocabulary->wants_documents = strcmp(mode, "tf_idf") == 0 || strcmp(mode, "tf-idf") == 0;
    config->learning->specials(stage, &specials);
    keep_specials(vocabulary, &specials);
    /* The special terms take the first indices of max_tokens. */
    vocabulary->first_term = specials.num_oov_indices + (vocabulary->has_mask && is_int ? 1 : 0);
    vocabulary->most = spec_has_value(stage, "max_tokens")
                           ? spec_int(stage, "max_tokens") - vocabulary->first_term
                           : -1;
    if (vocabulary->most < 0 && spec_has_value(stage, "max_tokens"))
        vocabulary->most = 0;
    if (spec_has_value(stage, "max_tokens") && spec_bool(stage, "pad_to_max_tokens"))
        vocabulary->padded_to = spec_int(stage, "max_tokens");
    if (vocabulary->is_integer ? tnd_dtype_is_integer(config->column->dtype)
                               : config->column->dtype == TUNDISH_STRING)
        return TUNDISH_OK;
    return stage_complain(config->content, "column '%s' is %s, but %s works on %s",
                          config->column->name, tnd_dtype_name(config->column->dtype),
                          stage->info->name, vocabulary->is_integer ? "integers" : "string");
}

static tundish_status
open_transform(struct vocabulary *vocabulary, const struct analyzer_config *config)
{
    const struct spec_stage *stage = config->content->stage;

    vocabulary->is_integer = tnd_dtype_is_integer(config->column->dtype);
    vocabulary->has_weights = spec_has_value(stage, "weights");
    vocabulary->has_labels = spec_has_value(stage, "labels");
    vocabulary->order = spec_bool(stage, "fingerprint_shuffle") ? &vocabulary_order_fingerprint
                        : vocabulary->has_weights || vocabulary->has_labels
                            ? &vocabulary_order_weight
                            : &vocabulary_order_count;
    vocabulary->most = spec_has_value(stage, "top_k") ? spec_int(stage, "top_k") : -1;
    vocabulary->threshold = spec_has_value(stage, "frequency_threshold")
                                ? spec_number(stage, "frequency_threshold")
                                : 0;
    vocabulary->is_adjusted = spec_bool(stage, "use_adjusted_mutual_info");
    vocabulary->least_apart = spec_has_value(stage, "min_diff_from_avg")
                                  ? fmax(0, spec_number(stage, "min_diff_from_avg"))
                                  : -1;
    if (spec_has_value(stage, "reserved_tokens"))
        vocabulary->reserved = spec_get(stage, "reserved_tokens");
    if (config->column->dtype == TUNDISH_STRING || vocabulary->is_integer)
        return TUNDISH_OK;
    return stage_complain(config->content, "%s: '%s' has dtype %s; expected strings or integers",
                          stage->info->name, config->column->name,
                          tnd_dtype_name(config->column->dtype));
}

static tundish_status
vocabulary_open(void *state, const struct analyzer_config *config)
{
    struct vocabulary *vocabulary = state;
    struct terms_memory *memory = config->memory;
    tundish_status status;

    vocabulary->config = *config;
    vocabulary->depth = config->content->depth;
    vocabulary->form = learned_form_of(config->content->stage);
    status = config->learning->is_keras ? open_keras(vocabulary, config)
                                        : open_transform(vocabulary, config);
    vocabulary->table_count = config->thread_count;
    if (vocabulary->has_weights || vocabulary->has_labels) {
        /* Sums of weights depend on when a table is written out, so the memory for that is fixed
         * here. Labels are stored beside the table, so it is never written out. */
        vocabulary->own_memory.limit_bytes =
            vocabulary->has_labels ? INT64_MAX : memory->limit_bytes / 4;
        memory = &vocabulary->own_memory;
        vocabulary->table_count = 1;
    }
    vocabulary->tables = tnd_zalloc(vocabulary->table_count, sizeof(struct terms *));
    vocabulary->documents = tnd_zalloc(vocabulary->table_count, sizeof *vocabulary->documents);
    for (uint32_t i = 0; i < vocabulary->table_count; i++)
        vocabulary->tables[i] = terms_open(memory, config->cache_folder);
    return status;
}

/* The key of a value in the tables. False: the value is not a term. Integers need 32 bytes of
 * room. */
static bool
key_of(const struct vocabulary *vocabulary, const struct samples *samples, int64_t i,
       uint8_t room[32], struct byte_view *ret_key)
{
    if (vocabulary->is_integer && vocabulary->is_keras) {
        vocabulary_integer_key(samples->integers[i], room);
        *ret_key = (struct byte_view){ room, 8 };
        return true;
    }
    if (vocabulary->is_integer) {
        int bytes = snprintf((char *)room, 32, "%" PRId64, samples->integers[i]);

        *ret_key = (struct byte_view){ room, (uint64_t)bytes };
        return true;
    }
    *ret_key = samples->texts[i];
    if (learned_form_needs_blanks(&vocabulary->form))
        *ret_key = learned_without_blanks(*ret_key, samples->scratch);
    /* tf.Transform drops terms that a line of a text file cannot hold. */
    return vocabulary->is_keras || vocabulary->form.is_records ||
           (ret_key->size > 0 && memchr(ret_key->data, '\n', ret_key->size) == NULL &&
            memchr(ret_key->data, '\r', ret_key->size) == NULL);
}

/* The number of documents: the entries of an element's first dimension. A vector or a scalar is one
 * document. */
static int64_t
document_count(const struct column *column)
{
    return column_list_count(column, column->level_count > 1 ? 1 : 0);
}

static int64_t
list_end(const struct column *column, uint32_t level, int64_t list)
{
    int64_t end = list + 1;

    for (uint32_t k = level; k < column->level_count; k++)
        end = level_begin(&column->levels[k], end);
    return end;
}

static int64_t
document_end(const struct column *column, int64_t document)
{
    return list_end(column, column->level_count > 1 ? 1 : 0, document);
}

static void
tally(const struct vocabulary *vocabulary, struct terms *terms, const struct samples *samples)
{
    enum { CHUNK = 128 };
    int64_t at = 0, values = samples->column->value_count;
    struct byte_view keys[CHUNK];
    uint8_t rooms[CHUNK][32];

    if (vocabulary->is_keras && !vocabulary->is_integer &&
        !learned_form_needs_blanks(&vocabulary->form)) {
        /* Keras' strings need no conversion, so they are counted where they are. */
        terms_tally(terms, samples->texts, (size_t)values);
        return;
    }
    while (at < values) {
        size_t count = 0;

        for (; at < values && count < CHUNK; at++)
            count += key_of(vocabulary, samples, at, rooms[count], &keys[count]);
        terms_tally(terms, keys, count);
    }
}

static tundish_status
vocabulary_count(void *state, uint32_t thread, const struct samples *samples)
{
    struct vocabulary *vocabulary = state;
    const struct column *column = samples->column;
    struct terms *terms;
    int64_t at = 0, documents = document_count(column);
    uint8_t room[32];

    if (vocabulary->has_weights || vocabulary->has_labels)
        return TUNDISH_OK;
    if (documents > 0 && !vocabulary->has_rows)
        vocabulary->has_rows = true;
    terms = vocabulary->tables[thread];
    if (!vocabulary->wants_documents) {
        tally(vocabulary, terms, samples);
        return terms_relieve(terms);
    }
    for (int64_t d = 0; d < documents; d++) {
        uint64_t serial = (uint64_t)++vocabulary->documents[thread];

        for (int64_t end = document_end(column, d); at < end; at++) {
            struct byte_view key;
            struct term *term;

            if (!key_of(vocabulary, samples, at, room, &key))
                continue;
            term = terms_at(terms, key);
            term->count++;
            /* A term counts once for a document, however often the document has it. */
            term->documents += term->last_document != serial;
            term->last_document = serial;
        }
    }
    return terms_relieve(terms);
}

static tundish_status
feed_value(struct vocabulary *vocabulary, const struct samples *samples, int64_t i, int64_t side)
{
    double weight = samples->weights != NULL ? samples->weight_numbers[side] : 1;
    int64_t label = samples->labels != NULL ? samples->label_integers[side] : 0;
    struct terms *terms = vocabulary->tables[0];
    uint8_t room[32];
    struct byte_view key;
    struct term *term;

    if (label < 0 || label >= LABELS_MAX)
        return tnd_fail(TUNDISH_E_DATA, "label %lld is out of range: labels are 0 to %d",
                        (long long)label, LABELS_MAX - 1);
    if (samples->labels != NULL)
        label_counts_see(&vocabulary->labels, label, weight, terms_count(terms));
    if (!key_of(vocabulary, samples, i, room, &key))
        return TUNDISH_OK;
    term = terms_at(terms, key);
    term->count++;
    term->weight += weight;
    if (samples->labels != NULL)
        label_counts_add(&vocabulary->labels, terms_number(terms, term), label, weight);
    return TUNDISH_OK;
}

/* The index in a column of weights or labels that goes with value i of row `row`: there is one for
 * each value, or one for each row. */
static int64_t
side_of(const struct samples *samples, const struct column *side, int64_t i, int64_t row)
{
    return side->value_count == samples->column->value_count ? i : row;
}

static tundish_status
vocabulary_feed(void *state, const struct samples *samples)
{
    struct vocabulary *vocabulary = state;
    const struct column *column = samples->column;
    const struct column *sides[] = { samples->weights, samples->labels };
    int64_t rows = column_list_count(column, vocabulary->depth), at = 0;
    const struct column *side = samples->labels != NULL ? samples->labels : samples->weights;
    tundish_status status = TUNDISH_OK;

    if (side == NULL)
        return TUNDISH_OK;
    for (size_t k = 0; k < 2; k++)
        if (sides[k] != NULL && sides[k]->value_count != column->value_count &&
            sides[k]->value_count != rows)
            return tnd_fail(TUNDISH_E_DATA, "there are %lld weights or labels for %lld values",
                            (long long)sides[k]->value_count, (long long)column->value_count);
    if (sides[0] != NULL && sides[1] != NULL && sides[0]->value_count != sides[1]->value_count)
        return tnd_fail(TUNDISH_E_DATA, "the numbers of weights and labels differ");
    for (int64_t row = 0; row < rows && status == TUNDISH_OK; row++) {
        if (vocabulary->rows == vocabulary->batch_end) {
            label_counts_end_batch(&vocabulary->labels);
            vocabulary->batch_end += transform_batch_rows(vocabulary->rows);
        }
        vocabulary->rows++;
        for (int64_t end = list_end(column, vocabulary->depth, row);
             at < end && status == TUNDISH_OK; at++)
            status = feed_value(vocabulary, samples, at, side_of(samples, side, at, row));
    }
    return status != TUNDISH_OK ? status : terms_relieve(vocabulary->tables[0]);
}

static tundish_status
vocabulary_finish(void *state)
{
    return vocabulary_write(state);
}

static void
vocabulary_close(void *state)
{
    struct vocabulary *vocabulary = state;

    vocabulary_close_tables(vocabulary);
    free(vocabulary->documents);
    label_counts_close(&vocabulary->labels);
    free((void *)(uintptr_t)vocabulary->mask.data);
    free((void *)(uintptr_t)vocabulary->oov.data);
}

const struct analyzer_ops analyzer_vocabulary = {
    .state_bytes = sizeof(struct vocabulary),
    .takes_terms = true,
    .open = vocabulary_open,
    .count = vocabulary_count,
    .feed = vocabulary_feed,
    .finish = vocabulary_finish,
    .close = vocabulary_close,
};
