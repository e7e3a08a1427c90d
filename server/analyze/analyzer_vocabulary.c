/* analyzer_vocabulary.c - the terms of a column by how often they occur: adapt() of the Keras
 * layers, and tft.vocabulary.
 *
 * Counts are whole numbers, so each thread has a table of its own. Weights and labels are added up
 * in the order of the elements, in one table.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyzer.h"
#include "analyze/artifact.h"
#include "analyze/idf_weights.h"
#include "analyze/information.h"
#include "analyze/label_counts.h"
#include "analyze/transform_batches.h"
#include "analyze/vocabulary_file.h"
#include "analyze/vocabulary_order.h"
#include "core/memory.h"

/* Stands in a vocabulary of tf.Transform's that would be empty. */
static const char NO_TERM[] = "49d0cd50-04bb-48c0-bc6f-5b575dce351a";

enum { LABELS_MAX = 4096 };

struct vocabulary {
    struct analyzer_config config;
    bool is_keras, is_integer;
    uint32_t depth;       /* of the element */
    bool wants_documents; /* tf_idf */
    bool has_weights, has_labels;
    bool has_mask;
    struct byte_view mask, oov; /* Keras: no terms; owned, in the tables' form */
    int64_t first_term, most;   /* special indices; terms at most, -1: all */
    double threshold;
    term_order *order;
    const struct spec_value *reserved; /* the pipeline file's */
    struct learned_form form;
    bool is_adjusted;
    double least_apart;    /* -1: as many rows have it */
    struct terms **tables; /* one a thread, or one */
    uint32_t table_count;
    int64_t *documents; /* seen so far, by table */
    struct terms_memory own_memory;
    struct label_counts labels;
    int64_t rows, batch_end; /* labels: rows seen; where tf.Transform's batch ends */
};

/* --- Open ------------------------------------------------------------------------------------- */

static struct byte_view
copy_text(const char *text, size_t bytes)
{
    return (struct byte_view){ (const uint8_t *)tnd_strndup(text, bytes), bytes };
}

static struct byte_view
copy_integer(int64_t integer)
{
    uint8_t *key = tnd_zalloc(1, 8);

    vocabulary_integer_key(integer, key);
    return (struct byte_view){ key, 8 };
}

static void
read_keras_tokens(struct vocabulary *vocabulary, const struct spec_stage *stage)
{
    bool is_text = strcmp(stage->info->name, "text_vectorization") == 0;
    const struct spec_value *mask = is_text ? NULL : spec_get(stage, "mask_token");
    const struct spec_value *oov = is_text ? NULL : spec_get(stage, "oov_token");

    vocabulary->has_mask = is_text || (mask != NULL && mask->kind != SPEC_NULL);
    if (vocabulary->is_integer) {
        vocabulary->mask = copy_integer(vocabulary->has_mask ? mask->integer : 0);
        vocabulary->oov = copy_integer(oov->integer);
    } else {
        vocabulary->mask = vocabulary->has_mask && !is_text
                               ? copy_text(mask->text, mask->text_bytes)
                               : copy_text("", 0);
        vocabulary->oov = is_text ? copy_text("[UNK]", 5) : copy_text(oov->text, oov->text_bytes);
    }
}

static tundish_status
open_keras(struct vocabulary *vocabulary, const struct analyzer_config *config)
{
    const struct spec_stage *stage = config->content->stage;
    bool is_text = strcmp(stage->info->name, "text_vectorization") == 0;
    const char *mode = spec_text(stage, "output_mode");
    bool is_int = strcmp(mode, "int") == 0;

    vocabulary->is_keras = true;
    vocabulary->order = vocabulary_order_count;
    vocabulary->is_integer = strcmp(stage->info->name, "integer_lookup") == 0;
    vocabulary->wants_documents = strcmp(mode, "tf_idf") == 0 || strcmp(mode, "tf-idf") == 0;
    read_keras_tokens(vocabulary, stage);
    vocabulary->first_term = (is_text ? 1 : spec_int(stage, "num_oov_indices")) +
                             (vocabulary->has_mask && is_int ? 1 : 0);
    vocabulary->most = analyzer_is_given(stage, "max_tokens")
                           ? spec_int(stage, "max_tokens") - vocabulary->first_term
                           : -1;
    if (vocabulary->most < 0 && analyzer_is_given(stage, "max_tokens"))
        vocabulary->most = 0;
    if (vocabulary->is_integer ? tnd_dtype_is_integer(config->column->dtype)
                               : config->column->dtype == TUNDISH_STRING)
        return TUNDISH_OK;
    return content_complain(config->content, "column '%s' is %s, but %s works on %s",
                            config->column->name, tnd_dtype_name(config->column->dtype),
                            stage->info->name, vocabulary->is_integer ? "integers" : "string");
}

static tundish_status
open_transform(struct vocabulary *vocabulary, const struct analyzer_config *config)
{
    const struct spec_stage *stage = config->content->stage;

    vocabulary->is_integer = tnd_dtype_is_integer(config->column->dtype);
    vocabulary->has_weights = analyzer_is_given(stage, "weights");
    vocabulary->has_labels = analyzer_is_given(stage, "labels");
    vocabulary->order = spec_bool(stage, "fingerprint_shuffle") ? vocabulary_order_fingerprint
                        : vocabulary->has_weights || vocabulary->has_labels
                            ? vocabulary_order_weight
                            : vocabulary_order_count;
    vocabulary->most = analyzer_is_given(stage, "top_k") ? spec_int(stage, "top_k") : -1;
    vocabulary->threshold = analyzer_is_given(stage, "frequency_threshold")
                                ? spec_number(stage, "frequency_threshold")
                                : 0;
    vocabulary->is_adjusted = spec_bool(stage, "use_adjusted_mutual_info");
    vocabulary->least_apart = analyzer_is_given(stage, "min_diff_from_avg")
                                  ? fmax(0, spec_number(stage, "min_diff_from_avg"))
                                  : -1;
    if (analyzer_is_given(stage, "reserved_tokens"))
        vocabulary->reserved = spec_get(stage, "reserved_tokens");
    if (config->column->dtype == TUNDISH_STRING || vocabulary->is_integer)
        return TUNDISH_OK;
    return content_complain(config->content, "%s: '%s' is %s, and strings or integers are needed",
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
    status = strcmp(config->content->stage->info->name, "compute_and_apply_vocabulary") == 0
                 ? open_transform(vocabulary, config)
                 : open_keras(vocabulary, config);
    vocabulary->table_count = config->thread_count;
    if (vocabulary->has_weights || vocabulary->has_labels) {
        /* Sums of weights depend on where a table was written out, so that is fixed here; labels
         * are kept beside the table, which therefore stays. */
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

/* --- Counting --------------------------------------------------------------------------------- */

/* A value as it stands in the tables; false: it is no term. Integers need 32 bytes of room. */
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
    return vocabulary->is_keras || vocabulary->form.is_records ||
           (ret_key->size > 0 && memchr(ret_key->data, '\n', ret_key->size) == NULL &&
            memchr(ret_key->data, '\r', ret_key->size) == NULL);
}

/* A document is a row: what the first dimension of an element counts; of a vector or a scalar, the
 * whole element. */
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
        return tnd_fail(TUNDISH_E_DATA, "label %lld of a vocabulary: 0 to %d are possible",
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

/* Of a column beside: the value that goes with value i of row `row`. */
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
        return tnd_fail(TUNDISH_E_DATA, "there are not as many weights as labels");
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

/* --- Writing ---------------------------------------------------------------------------------- */

static bool
is_reserved(const struct vocabulary *vocabulary, struct byte_view text)
{
    for (uint32_t i = 0; vocabulary->reserved != NULL && i < vocabulary->reserved->count; i++) {
        const struct spec_value *item = &vocabulary->reserved->items[i];

        if (bytes_are_equal((struct byte_view){ (const uint8_t *)item->text, item->text_bytes },
                            text))
            return true;
    }
    return false;
}

/* tf.Transform ranks reserved tokens with the others, and leaves them out when it writes. */
static bool
is_wanted(const struct vocabulary *vocabulary, const struct term *term)
{
    double size =
        vocabulary->has_weights || vocabulary->has_labels ? term->weight : (double)term->count;

    if (vocabulary->is_keras)
        return !bytes_are_equal(term->text, vocabulary->oov) &&
               !(vocabulary->has_mask && bytes_are_equal(term->text, vocabulary->mask));
    return !(vocabulary->threshold > 0) || size >= vocabulary->threshold;
}

/* What a term tells of the labels takes the place of its weight. */
static void
weigh_by_labels(struct vocabulary *vocabulary)
{
    const struct label_counts *labels = &vocabulary->labels;
    const struct information information = {
        .label_count = labels->count,
        .total = labels->total,
        .labels = labels->weights,
        .is_adjusted = vocabulary->is_adjusted,
        .least_apart = vocabulary->least_apart >= 0 ? vocabulary->least_apart
                                                    : information_least_apart(labels->total),
    };
    struct terms *terms = vocabulary->tables[0];

    label_counts_end_batch(&vocabulary->labels);
    for (uint32_t i = 0; i < terms_count(terms); i++) {
        struct byte_view text = terms_list(terms)[i].text;

        terms_at(terms, text)->weight =
            information_of(&information, &labels->by_term[i * labels->count], labels->stored[i]);
    }
}

static tundish_status
rank_gathered(const struct vocabulary *vocabulary, struct term_ranking *ranking)
{
    const struct term *list = terms_list(vocabulary->tables[0]);
    uint32_t count = terms_count(vocabulary->tables[0]);
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < count && status == TUNDISH_OK; i++)
        if (is_wanted(vocabulary, &list[i]))
            status = term_ranking_put(ranking, &list[i]);
    return status;
}

static tundish_status
rank(struct vocabulary *vocabulary, struct term_ranking *ranking)
{
    struct term_merge *merge;
    struct term term;
    tundish_status status;

    if (terms_gather(vocabulary->tables, vocabulary->table_count))
        return rank_gathered(vocabulary, ranking);
    status = term_merge_open(vocabulary->tables, vocabulary->table_count, &merge);
    if (status != TUNDISH_OK)
        return status;
    while ((status = term_merge_next(merge, &term)) == TUNDISH_OK)
        if (is_wanted(vocabulary, &term)) {
            status = term_ranking_put(ranking, &term);
            if (status != TUNDISH_OK)
                break;
        }
    term_merge_close(merge);
    return status == TUNDISH_NO_VALUE ? TUNDISH_OK : status;
}

/* The terms in the order of the file. What is shuffled has been chosen by frequency before. */
static tundish_status
rank_all(struct vocabulary *vocabulary, struct term_ranking **ret_ranking)
{
    int64_t limit_bytes =
        vocabulary->config.memory->limit_bytes / (2 * (int64_t)vocabulary->config.thread_count);
    int folder = vocabulary->config.cache_folder;
    bool by_weight = vocabulary->has_weights || vocabulary->has_labels;
    struct term_ranking *chosen;
    struct term term;
    tundish_status status;

    if (vocabulary->order != vocabulary_order_fingerprint) {
        *ret_ranking = term_ranking_open(vocabulary->order, vocabulary->most, limit_bytes, folder);
        return rank(vocabulary, *ret_ranking);
    }
    *ret_ranking = term_ranking_open(vocabulary->order, -1, limit_bytes, folder);
    chosen = term_ranking_open(by_weight ? vocabulary_order_weight : vocabulary_order_count,
                               vocabulary->most, limit_bytes, folder);
    status = rank(vocabulary, chosen);
    while (status == TUNDISH_OK && (status = term_ranking_take(chosen, &term)) == TUNDISH_OK)
        status = term_ranking_put(*ret_ranking, &term);
    term_ranking_close(chosen);
    return status == TUNDISH_NO_VALUE ? TUNDISH_OK : status;
}

static tundish_status
put(const struct vocabulary *vocabulary, const struct term *term, struct vocabulary_file *file)
{
    bool is_count = !vocabulary->has_weights && !vocabulary->has_labels;
    double frequency = is_count ? (double)term->count : term->weight;
    bool is_none = vocabulary->has_labels && frequency == 0 && signbit(frequency);
    char text[32];
    struct byte_view view = term->text;

    if (vocabulary->is_integer && vocabulary->is_keras) {
        int bytes =
            snprintf(text, sizeof text, "%" PRId64, vocabulary_key_integer(term->text.data));

        view = (struct byte_view){ (const uint8_t *)text, (uint64_t)bytes };
    }
    return vocabulary_file_put(file, view, is_none ? 0 : frequency, is_count || is_none);
}

static tundish_status
write_reserved(const struct vocabulary *vocabulary, struct vocabulary_file *file)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0;
         vocabulary->reserved != NULL && status == TUNDISH_OK && i < vocabulary->reserved->count;
         i++) {
        const struct spec_value *item = &vocabulary->reserved->items[i];
        struct byte_view text = { (const uint8_t *)item->text, item->text_bytes };

        status = vocabulary_file_put(file, text, -1, true);
    }
    return status;
}

/* tf.Transform keeps no vocabulary empty; but with reserved tokens only its choice of the most
 * frequent terms sees to that. */
static tundish_status
write_no_term(const struct vocabulary *vocabulary, struct vocabulary_file *file)
{
    struct byte_view no_term =
        vocabulary->is_integer ? bytes_of_text("-1") : bytes_of_text(NO_TERM);

    if (vocabulary->is_keras ||
        (vocabulary->reserved != NULL && vocabulary->reserved->count > 0 && vocabulary->most < 0))
        return TUNDISH_OK;
    return vocabulary_file_put(file, no_term, 1, true);
}

static tundish_status
write_terms(struct vocabulary *vocabulary, struct term_ranking *ranking,
            struct idf_weights *weights, struct vocabulary_file *file)
{
    int64_t ranked = 0;
    struct term term;
    tundish_status status = write_reserved(vocabulary, file);

    for (; status == TUNDISH_OK && (status = term_ranking_take(ranking, &term)) == TUNDISH_OK;
         ranked++) {
        if (is_reserved(vocabulary, term.text))
            continue;
        status = put(vocabulary, &term, file);
        if (vocabulary->wants_documents)
            idf_weights_add(weights, term.documents);
    }
    if (status == TUNDISH_NO_VALUE)
        status = TUNDISH_OK;
    return status == TUNDISH_OK && ranked == 0 ? write_no_term(vocabulary, file) : status;
}

static void
close_tables(struct vocabulary *vocabulary)
{
    for (uint32_t i = 0; vocabulary->tables != NULL && i < vocabulary->table_count; i++)
        terms_close(vocabulary->tables[i]);
    free(vocabulary->tables);
    vocabulary->tables = NULL;
}

static tundish_status
vocabulary_finish(void *state)
{
    struct vocabulary *vocabulary = state;
    struct term_ranking *ranking = NULL;
    struct idf_weights weights = { .first_term = vocabulary->first_term };
    struct vocabulary_file *file = NULL;
    tundish_status status;

    if (vocabulary->has_labels && terms_count(vocabulary->tables[0]) > 0)
        weigh_by_labels(vocabulary);
    for (uint32_t i = 0; i < vocabulary->table_count; i++)
        weights.documents += vocabulary->documents[i];
    status = rank_all(vocabulary, &ranking);
    close_tables(vocabulary);
    if (status == TUNDISH_OK)
        status = vocabulary_file_begin(vocabulary->config.folder, vocabulary->config.name,
                                       &vocabulary->form, &file);
    if (status == TUNDISH_OK)
        status = write_terms(vocabulary, ranking, &weights, file);
    if (status == TUNDISH_OK)
        status = vocabulary_file_publish(file);
    if (status == TUNDISH_OK && vocabulary->wants_documents)
        status = idf_weights_write(&weights, vocabulary->config.folder, vocabulary->config.name);
    vocabulary_file_close(file);
    term_ranking_close(ranking);
    idf_weights_close(&weights);
    return status;
}

static void
vocabulary_close(void *state)
{
    struct vocabulary *vocabulary = state;

    close_tables(vocabulary);
    free(vocabulary->documents);
    label_counts_close(&vocabulary->labels);
    free((void *)(uintptr_t)vocabulary->mask.data);
    free((void *)(uintptr_t)vocabulary->oov.data);
}

static const char *const stages[] = { "string_lookup", "integer_lookup", "text_vectorization",
                                      "compute_and_apply_vocabulary", NULL };

const struct analyzer_ops analyzer_vocabulary = {
    .stages = stages,
    .state_bytes = sizeof(struct vocabulary),
    .open = vocabulary_open,
    .count = vocabulary_count,
    .feed = vocabulary_feed,
    .finish = vocabulary_finish,
    .close = vocabulary_close,
};
