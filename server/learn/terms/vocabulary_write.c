/* vocabulary_write.c - the terms that were counted, in their order, to a file. */
#include "learn/terms/vocabulary_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/analyzers/idf_weights.h"
#include "learn/analyzers/information.h"
#include "learn/terms/vocabulary_file.h"
#include "learn/terms/vocabulary_order.h"

/* The only term of an otherwise empty vocabulary: tf.Transform writes it so that lookup tables can
 * be made. */
static const char NO_TERM[] = "49d0cd50-04bb-48c0-bc6f-5b575dce351a";

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

/* Replace the weight of each term by its information about the labels. */
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

/* Put the terms into the order of the file. Terms that will be shuffled are first chosen by
 * frequency. */
static tundish_status
rank_all(struct vocabulary *vocabulary, struct term_ranking **ret_ranking)
{
    /* Two rankings may be in memory at once, for each thread that writes a vocabulary. */
    int64_t limit_bytes =
        vocabulary->config.memory->limit_bytes / (2 * (int64_t)vocabulary->config.thread_count);
    int folder = vocabulary->config.cache_folder;
    bool by_weight = vocabulary->has_weights || vocabulary->has_labels;
    struct term_ranking *chosen;
    struct term term;
    tundish_status status;

    if (vocabulary->order != &vocabulary_order_fingerprint) {
        *ret_ranking = term_ranking_open(vocabulary->order, vocabulary->most, limit_bytes, folder);
        return rank(vocabulary, *ret_ranking);
    }
    *ret_ranking = term_ranking_open(vocabulary->order, -1, limit_bytes, folder);
    chosen = term_ranking_open(by_weight ? &vocabulary_order_weight : &vocabulary_order_count,
                               vocabulary->most, limit_bytes, folder);
    status = rank(vocabulary, chosen);
    while (status == TUNDISH_OK && (status = term_ranking_take(chosen, &term)) == TUNDISH_OK)
        status = term_ranking_put(*ret_ranking, &term);
    term_ranking_close(chosen);
    return status == TUNDISH_NO_VALUE ? TUNDISH_OK : status;
}

static tundish_status
put_line(const struct vocabulary *vocabulary, const struct term *term, struct vocabulary_file *file)
{
    bool is_count = !vocabulary->has_weights && !vocabulary->has_labels;
    double frequency = is_count ? (double)term->count : term->weight;
    /* Minus zero marks a term without information, which tf.Transform writes as an integer. */
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

        /* tf.Transform gives reserved tokens a frequency of -1. */
        status = vocabulary_file_put(file, text, -1, true);
    }
    return status;
}

/* tf.Transform leaves no vocabulary empty. With reserved tokens, though, it makes sure of that only
 * when it chooses the most frequent terms. */
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
        status = put_line(vocabulary, &term, file);
        if (vocabulary->wants_documents)
            idf_weights_add(weights, term.documents);
    }
    if (status == TUNDISH_NO_VALUE)
        status = TUNDISH_OK;
    if (status != TUNDISH_OK || ranked > 0)
        return status;
    /* Keras refuses data without a term, but not data without a batch. */
    if (vocabulary->is_keras && vocabulary->has_rows)
        return tnd_fail(TUNDISH_E_DATA, "'%s': no term was seen in the rows",
                        vocabulary->config.name);
    return write_no_term(vocabulary, file);
}

void
vocabulary_close_tables(struct vocabulary *vocabulary)
{
    for (uint32_t i = 0; vocabulary->tables != NULL && i < vocabulary->table_count; i++)
        terms_close(vocabulary->tables[i]);
    free(vocabulary->tables);
    vocabulary->tables = NULL;
}

tundish_status
vocabulary_write(struct vocabulary *vocabulary)
{
    struct term_ranking *ranking = NULL;
    struct idf_weights weights = { .first_term = vocabulary->first_term,
                                   .depth = vocabulary->padded_to };
    struct vocabulary_file *file = NULL;
    tundish_status status;

    if (vocabulary->has_labels && terms_count(vocabulary->tables[0]) > 0)
        weigh_by_labels(vocabulary);
    for (uint32_t i = 0; i < vocabulary->table_count; i++)
        weights.documents += vocabulary->documents[i];
    status = rank_all(vocabulary, &ranking);
    vocabulary_close_tables(vocabulary);
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
