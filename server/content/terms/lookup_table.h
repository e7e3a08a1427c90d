/* lookup_table.h - the vocabulary of a Keras layer: which index each term gets.
 *
 * Shared by string_lookup, integer_lookup and text_vectorization, whose parameters have the same
 * names. The vocabulary is a list in the pipeline file, a text file, or what `tundish analyze`
 * learned.
 */
#ifndef CONTENT_TERMS_LOOKUP_TABLE_H
#define CONTENT_TERMS_LOOKUP_TABLE_H

#include "content/content.h"
#include "content/terms/encoding.h"
#include "content/vocabulary/vocab.h"

/* The part that does not depend on the column. */
struct lookup_rules {
    enum vocab_keys keys;
    enum encoding_mode mode;
    bool invert;
    bool has_no_terms; /* it is to learn them: none is known, whatever `vocabulary` says */
    bool pad_to_max_tokens;
    int64_t max_tokens; /* 0: no limit */
    int64_t num_oov_indices;
    bool has_mask;
    struct byte_view mask, oov; /* of strings; owned, 64 readable bytes after it */
    int64_t mask_integer, oov_integer;
    enum vocab_oov method;
    uint64_t salt[2];
};

/* One column's. */
struct lookup_table {
    struct vocab *vocab;
    bool owns_vocab; /* columns with the same vocabulary share it */
    char *name;      /* its file as the user named it, or its other origin */
    bool from_file;  /* that no other table of the stage has read */
    struct vocab_rule rule;
    int64_t size;   /* indices there are, special ones included */
    int64_t depth;  /* width of encoded results */
    float *weights; /* TF_IDF: depth of them */
};

/* Indices before the terms' own. */
static inline int64_t
lookup_first_term(const struct lookup_rules *rules)
{
    return (rules->has_mask && rules->mode == ENCODE_INT ? 1 : 0) + rules->num_oov_indices;
}

/* Open the stage's `vocabulary` for `column`; `name` is what learned statistics are called.
 * `first` is the table of the stage's first column, or NULL. Complains with file and position. */
tundish_status lookup_table_open(const struct stage_config *config,
                                 const struct lookup_rules *rules, const char *column,
                                 const char *name, const struct lookup_table *first,
                                 struct lookup_table *ret_table);
/* content_ops.files for one table. */
void lookup_table_file(const struct lookup_table *table,
                       void (*say)(void *context, const char *name, uint64_t content_hash),
                       void *context);

/* content_ops.vocabularies for one table. */
void lookup_table_say(const struct lookup_table *table, content_say_vocabulary *say, void *context);

void lookup_table_close(struct lookup_table *table); /* accepts zeros */

#endif
