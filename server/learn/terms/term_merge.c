/* term_merge.c - merges sorted terms from several runs. */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "learn/terms/term_runs.h"

/* A merge of sorted runs, with a heap of readers: the least term is at the top. */
struct term_merge {
    const struct term_order *order;
    struct term_reader *readers;
    uint32_t reader_count;
    struct term held; /* equal terms are added up here */
    uint8_t *text;
    size_t text_capacity;
};

/* Move the reader at `at` down until it is not greater than its children. */
static void
sift(struct term_reader *readers, uint32_t count, uint32_t at, const struct term_order *order)
{
    for (;;) {
        uint32_t least = at;

        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (order->compare(&readers[child].term, &readers[least].term) < 0)
                least = child;
        if (least == at)
            return;
        {
            struct term_reader reader = readers[at];

            readers[at] = readers[least];
            readers[least] = reader;
        }
        at = least;
    }
}

void
term_readers_order(struct term_reader *readers, uint32_t count, const struct term_order *order)
{
    for (uint32_t i = count / 2; i-- > 0;)
        sift(readers, count, i, order);
}

tundish_status
term_readers_step(struct term_reader *readers, uint32_t *count, const struct term_order *order)
{
    tundish_status status = term_reader_step(&readers[0]);

    /* A reader at its end is replaced by the last one, and the heap is a reader shorter. */
    if (status == TUNDISH_NO_VALUE) {
        term_reader_close(&readers[0]);
        readers[0] = readers[--*count];
        readers[*count] = (struct term_reader){ .file = -1 };
        status = TUNDISH_OK;
    }
    if (status == TUNDISH_OK)
        sift(readers, *count, 0, order);
    return status;
}

void
term_readers_close(struct term_reader *readers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        term_reader_close(&readers[i]);
    free(readers);
}

/* Readers are taken over even after an error, so that the caller has nothing to close. */
tundish_status
term_merge_open_readers(struct term_reader *readers, uint32_t count, const struct term_order *order,
                        tundish_status status, struct term_merge **ret_merge)
{
    struct term_merge *merge = tnd_zalloc(1, sizeof *merge);

    *merge = (struct term_merge){ .order = order, .readers = readers, .reader_count = count };
    if (status != TUNDISH_OK) {
        term_merge_close(merge);
        return status;
    }
    term_readers_order(readers, count, order);
    *ret_merge = merge;
    return TUNDISH_OK;
}

tundish_status
term_merge_open_runs(const struct term_runs *runs, uint32_t first, const struct term_order *order,
                     struct term_merge **ret_merge)
{
    struct term_reader *readers = tnd_zalloc(runs->count - first, sizeof *readers);
    uint32_t count = 0;
    tundish_status status = TUNDISH_OK;

    for (uint32_t run = first; run < runs->count && status == TUNDISH_OK; run++)
        status = term_reader_open(&readers[count++], runs, run);
    return term_merge_open_readers(readers, count, order, status, ret_merge);
}

/* Copy the term: the reader's next step overwrites its text. */
static void
copy_term(struct term_merge *merge, const struct term *term)
{
    if (merge->text_capacity < term->text.size + 1) {
        merge->text_capacity = 2 * term->text.size + 64;
        merge->text = tnd_realloc(merge->text, merge->text_capacity, 1);
    }
    if (term->text.size > 0)
        memcpy(merge->text, term->text.data, term->text.size);
    merge->held = *term;
    merge->held.text.data = merge->text;
}

tundish_status
term_merge_next(struct term_merge *merge, struct term *ret_term)
{
    tundish_status status;

    if (merge->reader_count == 0)
        return TUNDISH_NO_VALUE;
    copy_term(merge, &merge->readers[0].term);
    for (;;) {
        const struct term *next;

        status = term_readers_step(merge->readers, &merge->reader_count, merge->order);
        if (status != TUNDISH_OK)
            return status;
        next = &merge->readers[0].term;
        /* Several runs and tables may have the same term. */
        if (merge->reader_count == 0 || !bytes_are_equal(next->text, merge->held.text))
            break;
        merge->held.count += next->count;
        merge->held.documents += next->documents;
        merge->held.weight += next->weight;
    }
    *ret_term = merge->held;
    return TUNDISH_OK;
}

void
term_merge_close(struct term_merge *merge)
{
    if (merge == NULL)
        return;
    term_readers_close(merge->readers, merge->reader_count);
    free(merge->text);
    free(merge);
}
