/* text_ids.c - tokenize texts and look up the tokens while they are in the cache. */
#include "content/text/text_ids.h"

#include <string.h>

enum { TEXTS = 32 }; /* texts at a time */

static void
append_tokens(const struct byte_view *tokens, int64_t count, struct id_lists *lists,
              struct scratch *scratch)
{
    if (lists->capacity - lists->used < count) {
        struct byte_view *old = lists->tokens;

        lists->capacity = 2 * lists->capacity + count + 1024;
        lists->tokens = scratch_array(scratch, (size_t)lists->capacity, sizeof *lists->tokens);
        if (lists->used > 0)
            memcpy(lists->tokens, old, (size_t)lists->used * sizeof *old);
    }
    if (count > 0)
        memcpy(&lists->tokens[lists->used], tokens, (size_t)count * sizeof *tokens);
    lists->used += count;
}

/* Grow the ids by doubling. Scratch keeps the old memory until the frame is done. */
static void
reserve(struct id_lists *lists, int64_t more, struct scratch *scratch)
{
    int64_t *old = lists->ids;

    if (lists->ids != NULL && lists->capacity - lists->used >= more)
        return;
    lists->capacity = 2 * lists->capacity + more + 1024;
    lists->ids = scratch_array(scratch, (size_t)lists->capacity, sizeof *lists->ids);
    if (lists->used > 0)
        memcpy(lists->ids, old, (size_t)lists->used * sizeof *old);
}

/* The n-grams of each width in turn, joined by blanks. They replace the tokens, as Keras'
 * tf.strings.ngrams does. */
static struct byte_view *
make_ngrams(const struct text_ids *how, const struct byte_view *tokens, int64_t count,
            struct scratch *scratch, int64_t *ret_count)
{
    struct byte_view *grams;
    uint64_t bytes = 0;
    int64_t made = 0;
    uint8_t *to;

    for (uint32_t w = 0; w < how->width_count; w++)
        for (int64_t i = 0; i + how->widths[w] <= count; i++, made++)
            for (int64_t k = 0; k < how->widths[w]; k++)
                bytes += tokens[i + k].size + 1;
    grams = scratch_array(scratch, (size_t)made, sizeof *grams);
    to = scratch_alloc(scratch, bytes);
    made = 0;
    for (uint32_t w = 0; w < how->width_count; w++)
        for (int64_t i = 0; i + how->widths[w] <= count; i++) {
            uint8_t *begin = to;

            for (int64_t k = 0; k < how->widths[w]; k++) {
                if (k > 0)
                    *to++ = ' ';
                if (tokens[i + k].size > 0)
                    memcpy(to, tokens[i + k].data, tokens[i + k].size);
                to += tokens[i + k].size;
            }
            grams[made++] = (struct byte_view){ begin, (uint64_t)(to - begin) };
        }
    *ret_count = made;
    return grams;
}

/* Look up the tokens and append their ids. */
static void
append_ids(const struct text_ids *how, const struct lookup_table *table,
           const struct byte_view *tokens, int64_t count, struct id_lists *lists,
           struct scratch *scratch)
{
    struct vocab_output output;

    if (how->tokens_only) {
        append_tokens(tokens, count, lists, scratch);
        return;
    }
    reserve(lists, count, scratch);
    output = (struct vocab_output){ &lists->ids[lists->used], TUNDISH_INT64, 1, &lists->absent };
    if (count > 0)
        vocab_map(table->vocab, &table->rule, tokens, (size_t)count, &output);
    lists->used += count;
}

/* The number of the first text of a list. */
static int64_t
texts_before(const struct level *lists, int64_t list)
{
    return lists != NULL ? level_begin(lists, list) : list;
}

struct id_lists
text_ids_find(const struct text_ids *how, const struct lookup_table *table,
              const struct column *column, const struct level *text_lists, int64_t list_count,
              struct scratch *scratch)
{
    const struct byte_view *texts = column->values;
    struct text_tokens tokens = { .scratch = scratch };
    struct id_lists lists = { 0 };
    int64_t token_ends[TEXTS];

    lists.splits = scratch_array(scratch, (size_t)list_count + 1, sizeof *lists.splits);
    lists.splits[0] = 0;
    for (int64_t begin = 0; begin < list_count; begin += TEXTS) {
        int64_t end = begin + TEXTS < list_count ? begin + TEXTS : list_count;
        int64_t first = texts_before(text_lists, begin);
        int64_t last = texts_before(text_lists, end);
        int64_t at = first;
        uint64_t bytes = 0;

        for (int64_t i = first; i < last; i++)
            bytes += texts[i].size;
        if (how->tokens_only)
            tokens = (struct text_tokens){ .scratch =
                                               scratch }; /* the tokens' bytes outlive this loop */
        text_tokens_clear(&tokens, bytes, last - first);
        for (int64_t l = begin; l < end; l++) {
            for (int64_t stop = texts_before(text_lists, l + 1); at < stop; at++)
                how->tokenize(&how->rules, texts[at], &tokens);
            token_ends[l - begin] = tokens.count;
        }
        if (how->width_count == 0) {
            for (int64_t l = begin; l < end; l++)
                lists.splits[l + 1] = lists.used + token_ends[l - begin];
            append_ids(how, table, tokens.views, tokens.count, &lists, scratch);
            continue;
        }
        for (int64_t l = begin; l < end; l++) {
            int64_t from = l > begin ? token_ends[l - begin - 1] : 0;
            int64_t count;
            struct byte_view *grams = make_ngrams(how, tokens.views + from,
                                                  token_ends[l - begin] - from, scratch, &count);

            append_ids(how, table, grams, count, &lists, scratch);
            lists.splits[l + 1] = lists.used;
        }
    }
    return lists;
}
