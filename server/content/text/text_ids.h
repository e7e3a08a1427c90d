/* text_ids.h - texts to tokens, to n-grams of them, to ids: lists of different lengths. */
#ifndef CONTENT_TEXT_TEXT_IDS_H
#define CONTENT_TEXT_TEXT_IDS_H

#include "content/terms/lookup_table.h"
#include "content/text/text_tokens.h"

/* How texts become tokens. */
struct text_ids {
    struct text_rules rules;
    text_tokenize *tokenize;
    uint32_t width_count; /* n-grams; 0: none */
    int64_t *widths;
    bool tokens_only; /* to learn from: the tokens themselves, in lists as they are */
};

/* Ids of all texts, one list for each. */
struct id_lists {
    int64_t *ids;
    struct byte_view *tokens; /* tokens_only, instead */
    int64_t used, capacity;
    int64_t *splits;
    uint64_t absent; /* tokens that have no id of their own */
};

/* The ids of `column`, a list for each text; or, where `text_lists` has lists of texts, for each of
 * those: list_count of them in all. Everything lies in scratch. */
struct id_lists text_ids_find(const struct text_ids *how, const struct lookup_table *table,
                              const struct column *column, const struct level *text_lists,
                              int64_t list_count, struct scratch *scratch);

/* Write each list as row `splits[l]` to `splits[l + 1]` of `to`: cut to that length, or followed by
 * zeros. */
void text_ids_pad(const struct id_lists *lists, int64_t list_count, const int64_t *splits,
                  int64_t *to);

#endif
