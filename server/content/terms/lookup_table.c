/* lookup_table.c - open vocabularies, under Keras' rules for them. */
#include "content/terms/lookup_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "column/literal.h"
#include "content/learned/learned.h"
#include "core/memory.h"
#include "core/redact.h"
#include "spec/column_list.h"

/* A vocabulary from the pipeline file, without the special tokens at its front. */
struct terms {
    size_t count;
    struct byte_view *views; /* into the pipeline file */
    int64_t *integers;
    bool had_special;
};

#define COMPLAIN(config, value, ...)                                                               \
    spec_complain((config)->errors, (value)->line, (value)->column, __VA_ARGS__)

static bool
is_term(const struct lookup_rules *rules, const struct spec_value *item, struct byte_view text,
        int64_t integer)
{
    struct byte_view view = { (const uint8_t *)item->text, item->text_bytes };

    return rules->keys == VOCAB_STRINGS ? bytes_are_equal(view, text) : item->integer == integer;
}

/* Whether the list begins with exactly the mask and the out-of-vocabulary tokens. Keras accepts a
 * vocabulary with all of them or none. */
static bool
begins_special(const struct lookup_rules *rules, const struct spec_value *list)
{
    int64_t terms = lookup_first_term(rules);
    int64_t masks = terms - rules->num_oov_indices;

    if (list->count < terms)
        return false;
    for (int64_t i = 0; i < terms; i++)
        if (!is_term(rules, &list->items[i], i < masks ? rules->mask : rules->oov,
                     i < masks ? rules->mask_integer : rules->oov_integer))
            return false;
    return true;
}

static int
compare_views(const void *a, const void *b)
{
    const struct byte_view *left = a, *right = b;
    size_t shorter = left->size < right->size ? left->size : right->size;
    int order = shorter == 0 ? 0 : memcmp(left->data, right->data, shorter);

    return order != 0 ? order : (left->size > right->size) - (left->size < right->size);
}

/* Complain of all repeated terms in one sentence, cut at a bearable length. Sorting keeps this at n
 * log n for a long list. */
static tundish_status
check_repeated(const struct stage_config *config, const struct spec_value *list,
               const struct terms *terms)
{
    struct byte_view *sorted = tnd_alloc((terms->count + 1) * sizeof *sorted);
    char *text = NULL;
    tundish_status status = TUNDISH_OK;

    memcpy(sorted, terms->views, terms->count * sizeof *sorted);
    qsort(sorted, terms->count, sizeof *sorted, compare_views);
    for (size_t i = 1; i < terms->count; i++) {
        char *longer;

        if (!bytes_are_equal(sorted[i - 1], sorted[i]) ||
            (i > 1 && bytes_are_equal(sorted[i - 2], sorted[i])))
            continue;
        longer = tnd_sprintf("%s%s'%.*s'", text ? text : "", text ? ", " : "", (int)sorted[i].size,
                             (const char *)sorted[i].data);
        free(text);
        text = longer;
        if (strlen(text) > 400)
            break;
    }
    if (text != NULL)
        status = COMPLAIN(config, list, "vocabulary has repeated terms: %s", text);
    free(text);
    free(sorted);
    return status;
}

/* Refuse special tokens among the terms: they may only be at the front, all together. */
static tundish_status
check_special(const struct stage_config *config, const struct lookup_rules *rules,
              const struct spec_value *list, size_t first)
{
    for (size_t i = first; i < list->count; i++) {
        const struct spec_value *item = &list->items[i];

        if (rules->has_mask && is_term(rules, item, rules->mask, rules->mask_integer))
            return COMPLAIN(
                config, item,
                "vocabulary: the mask token '%s' is one of the terms; remove the special tokens",
                item->text);
        if (rules->invert && is_term(rules, item, rules->oov, rules->oov_integer))
            return COMPLAIN(
                config, item,
                "vocabulary: the OOV token '%s' is one of the terms; remove the special tokens",
                item->text);
    }
    return TUNDISH_OK;
}

static tundish_status
check_size(const struct stage_config *config, const struct lookup_rules *rules,
           const struct spec_value *list, size_t terms)
{
    int64_t size = lookup_first_term(rules) + (int64_t)terms;

    if (rules->max_tokens > 0 && size > rules->max_tokens)
        return COMPLAIN(config, list,
                        "vocabulary has %lld terms with the special ones, but max_tokens is %lld",
                        (long long)size, (long long)rules->max_tokens);
    return TUNDISH_OK;
}

/* Collect the terms of a list. An integer has its written text too, but +1 and 1 are one term, so
 * the value decides. */
static tundish_status
list_terms(const struct stage_config *config, const struct lookup_rules *rules,
           const struct spec_value *list, struct terms *terms)
{
    size_t first;
    tundish_status status = TUNDISH_OK;

    terms->had_special = begins_special(rules, list);
    first = terms->had_special ? (size_t)lookup_first_term(rules) : 0;
    if (list->count == first)
        return COMPLAIN(config, list, "vocabulary is empty");
    terms->count = list->count - first;
    terms->views = tnd_zalloc(terms->count, sizeof *terms->views);
    terms->integers = tnd_zalloc(terms->count, sizeof *terms->integers);
    for (size_t i = 0; i < terms->count; i++) {
        const struct spec_value *item = &list->items[first + i];

        if (item->kind != (rules->keys == VOCAB_STRINGS ? SPEC_TEXT : SPEC_INTEGER))
            return COMPLAIN(config, item, "vocabulary must be %s",
                            rules->keys == VOCAB_STRINGS ? "texts (quote numbers)" : "integers");
        terms->views[i] = (struct byte_view){ (const uint8_t *)item->text, item->text_bytes };
        terms->integers[i] = item->integer;
    }
    status = check_repeated(config, list, terms);
    if (status == TUNDISH_OK)
        status = check_special(config, rules, list, first);
    return status != TUNDISH_OK ? status : check_size(config, rules, list, terms->count);
}

/* "pipeline.yaml:12", without folders: the name under which statistics show the vocabulary. */
static char *
name_line(const struct stage_config *config, const struct spec_value *list)
{
    const char *path = config->errors->path != NULL ? config->errors->path : "";
    const char *slash = strrchr(path, '/');

    return tnd_sprintf("%s:%u", slash != NULL ? slash + 1 : path, list->line);
}

/* Open a vocabulary from the pipeline file through the cache, as one from a file. */
static tundish_status
open_list(const struct stage_config *config, const struct lookup_rules *rules,
          const struct spec_value *list, struct terms *terms, struct lookup_table *table)
{
    tundish_status status = list_terms(config, rules, list, terms);
    char *name;

    if (status != TUNDISH_OK)
        return status;
    name = tnd_sprintf("%s:%u: vocabulary", config->errors->path ? config->errors->path : "",
                       list->line);
    if (terms->count == 0)
        status =
            tnd_fail(TUNDISH_E_PIPELINE, "%s is empty; it must contain at least one term", name);
    else
        status = rules->keys == VOCAB_STRINGS
                     ? vocab_open_terms(config->cache_folder, name, terms->views, terms->count,
                                        &table->vocab)
                     : vocab_open_integers(config->cache_folder, name, terms->integers,
                                           terms->count, &table->vocab);
    free(name);
    table->name = name_line(config, list);
    return status == TUNDISH_OK ? status : COMPLAIN(config, list, "%s", tnd_error_text());
}

/* Columns with the same vocabulary use the same table, which belongs to the first. */
static void
share(const struct lookup_table *first, struct lookup_table *table)
{
    table->vocab = first->vocab;
    table->owns_vocab = false;
    table->name = tnd_sprintf("%s", first->name);
}

static tundish_status
open_file(const struct stage_config *config, const struct lookup_rules *rules,
          const struct spec_value *value, const char *column, const struct lookup_table *first,
          struct lookup_table *table)
{
    char *name, *path;
    tundish_status status;

    if (rules->mode == ENCODE_TF_IDF)
        return COMPLAIN(config, value,
                        "output_mode tf_idf takes no vocabulary file: idf_weights go with a list");
    if (strlen(value->text) < value->text_bytes)
        return COMPLAIN(config, value, "the name of a vocabulary file holds a NUL");
    if (first != NULL && strstr(value->text, "{column}") == NULL) {
        share(first, table);
        return TUNDISH_OK;
    }
    name = spec_for_column(value->text, column);
    path = spec_path(config->stage->file, name);
    status = spec_is_url(path)
                 ? vocab_open_url(config->cache_folder, &config->stage->file->remote, path,
                                  rules->keys, &table->vocab)
                 : vocab_open_file(config->cache_folder, path, rules->keys, &table->vocab);
    if (status != TUNDISH_OK)
        status = COMPLAIN(config, value, "%s", tnd_error_text());
    tnd_redact(name);
    table->name = name;
    table->from_file = true;
    free(path);
    return status;
}

/* The mean of the weights. If all are integers it is truncated: Keras pads with numpy, and an array
 * of integers rounds towards zero. */
static double
mean_weight(const struct spec_value *list)
{
    bool are_integers = true;
    double mean = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        mean += list->items[i].number;
        are_integers = are_integers && list->items[i].kind != SPEC_NUMBER;
    }
    mean /= list->count;
    return are_integers ? trunc(mean) : mean;
}

/* Weights by index: the given ones, preceded by their mean for special tokens that the list leaves
 * out, and followed by zeros up to the depth. */
static tundish_status
make_weights(const struct stage_config *config, const struct lookup_rules *rules,
             const struct terms *terms, struct lookup_table *table)
{
    const struct spec_value *list = spec_get(config->stage, "idf_weights");
    const struct spec_value *vocabulary = spec_get(config->stage, "vocabulary");
    int64_t front = terms->had_special ? 0 : lookup_first_term(rules);
    double mean;

    if (list == NULL || list->kind != SPEC_LIST)
        return stage_complain(config, "output_mode tf_idf needs idf_weights, one for each term");
    if (list->count != vocabulary->count)
        return COMPLAIN(config, list, "idf_weights has %u weights, but vocabulary has %u terms",
                        list->count, vocabulary->count);
    mean = mean_weight(list);
    table->weights = tnd_zalloc((size_t)table->depth, sizeof *table->weights);
    for (int64_t i = 0; i < table->depth; i++)
        if (i < front)
            table->weights[i] = (float)mean;
        else if (i - front < list->count)
            table->weights[i] = (float)list->items[i - front].number;
    return TUNDISH_OK;
}

/* The learned weights, one for each index, followed by zeros. */
static tundish_status
learned_weights(const struct stage_config *config, const char *name, struct lookup_table *table)
{
    struct learned_table weights = { 0 };
    tundish_status status =
        learned_table_open(config, name, ".idf_weights", TUNDISH_FLOAT32, &weights);

    /* Padded already, or from before that was done. */
    if (status == TUNDISH_OK && weights.value_count != table->size &&
        weights.value_count != table->depth)
        status = stage_complain(config,
                                "%s: %s.idf_weights has %lld weights, but there are %lld "
                                "indices; run `tundish analyze` again",
                                config->stage->info->name, name, (long long)weights.value_count,
                                (long long)table->size);
    if (status == TUNDISH_OK && table->size > table->depth)
        status = stage_complain(config,
                                "%s: max_tokens is %lld, but %s has %lld indices with the "
                                "special ones: Keras pads no weights then",
                                config->stage->info->name, (long long)table->depth, name,
                                (long long)table->size);
    if (status == TUNDISH_OK) {
        table->weights = tnd_zalloc((size_t)table->depth, sizeof *table->weights);
        memcpy(table->weights, weights.values, (size_t)table->size * sizeof *table->weights);
    }
    learned_table_close(&weights);
    return status;
}

/* Compute Keras' layout of indices: the mask, then the out-of-vocabulary indices, then the
 * terms. */
static void
set_rule(const struct lookup_rules *rules, struct lookup_table *table)
{
    int64_t first = lookup_first_term(rules);

    table->rule = (struct vocab_rule){
        .offset = first,
        .oov_first = first - rules->num_oov_indices,
        .oov_count = (uint64_t)rules->num_oov_indices,
        .oov = rules->method,
        .salt = { rules->salt[0], rules->salt[1] },
        .has_mask = rules->has_mask,
        .mask = rules->mask,
        .mask_integer = rules->mask_integer,
        /* An encoded mask counts nowhere: INT64_MAX is beyond every depth. */
        .mask_value = rules->mode == ENCODE_INT ? 0 : INT64_MAX,
    };
    table->size = first + (int64_t)vocab_count(table->vocab);
    table->depth = rules->pad_to_max_tokens ? rules->max_tokens : table->size;
}

tundish_status
lookup_table_open(const struct stage_config *config, const struct lookup_rules *rules,
                  const char *column, const char *name, const struct lookup_table *first,
                  struct lookup_table *ret_table)
{
    const struct spec_value *value = spec_get(config->stage, "vocabulary");
    bool is_learned = value == NULL || value->kind == SPEC_NULL;
    struct terms terms = { 0 };
    tundish_status status;

    ret_table->owns_vocab = true;
    if (is_learned) {
        status = rules->has_no_terms ? vocab_open_terms(config->cache_folder, name, &rules->oov, 1,
                                                        &ret_table->vocab)
                                     : learned_require(config, name);
        ret_table->name = tnd_strdup(name);
        if (status == TUNDISH_OK && !rules->has_no_terms)
            status = learned_vocab_open(config, name, rules->keys, &ret_table->vocab);
    } else if (value->kind == SPEC_TEXT) {
        status = open_file(config, rules, value, column, first, ret_table);
    } else if (first != NULL && rules->mode != ENCODE_TF_IDF) {
        share(first, ret_table);
        status = TUNDISH_OK;
    } else {
        status = open_list(config, rules, value, &terms, ret_table);
    }
    if (status == TUNDISH_OK) {
        set_rule(rules, ret_table);
        if (rules->mode == ENCODE_TF_IDF && !rules->has_no_terms)
            status = is_learned ? learned_weights(config, name, ret_table)
                                : make_weights(config, rules, &terms, ret_table);
    }
    free(terms.views);
    free(terms.integers);
    return status;
}

void
lookup_table_file(const struct lookup_table *table,
                  void (*say)(void *context, const char *name, uint64_t content_hash),
                  void *context)
{
    if (table->from_file)
        say(context, table->name, vocab_fingerprint(table->vocab));
}

void
lookup_table_say(const struct lookup_table *table, content_say_vocabulary *say, void *context)
{
    say(context, table->name, table->vocab);
}

void
lookup_table_close(struct lookup_table *table)
{
    if (table->owns_vocab)
        vocab_close(table->vocab);
    free(table->weights);
    free(table->name);
    *table = (struct lookup_table){ 0 };
}
