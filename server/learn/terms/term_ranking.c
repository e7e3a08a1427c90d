/* term_ranking.c - terms in another order than their own, in bounded memory. */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "learn/terms/term_runs.h"

enum { BLOCK_BYTES = 64 * 1024 };

/* The bytes of terms, in blocks: the list points into them, so they must not move. */
struct text_block {
    struct text_block *next;
    size_t used_bytes, bytes;
    uint8_t data[];
};

struct term_ranking {
    const struct term_order *order;
    int64_t most, limit_bytes;
    struct term *list;
    uint32_t count, capacity;
    struct text_block *texts;
    int64_t text_bytes;
    struct term_runs runs;
    bool is_taking;
    struct term_reader *readers;
    uint32_t reader_count;
    int64_t taken;
};

struct term_ranking *
term_ranking_open(const struct term_order *order, int64_t most, int64_t limit_bytes, int folder)
{
    struct term_ranking *ranking = tnd_zalloc(1, sizeof *ranking);

    ranking->order = order;
    ranking->most = most;
    ranking->limit_bytes = limit_bytes;
    ranking->runs = (struct term_runs){ .folder = folder, .file = -1 };
    return ranking;
}

static void
free_texts(struct text_block *block)
{
    while (block != NULL) {
        struct text_block *next = block->next;

        free(block);
        block = next;
    }
}

static void
keep_text(struct term_ranking *ranking, struct byte_view *text)
{
    struct text_block *block = ranking->texts;
    uint8_t *to;

    if (block == NULL || block->bytes - block->used_bytes < text->size) {
        size_t bytes = text->size > BLOCK_BYTES ? text->size : BLOCK_BYTES;

        block = tnd_alloc(sizeof *block + bytes);
        *block = (struct text_block){ .next = ranking->texts, .bytes = bytes };
        ranking->texts = block;
        ranking->text_bytes += (int64_t)bytes;
    }
    to = block->data + block->used_bytes;
    if (text->size > 0)
        memcpy(to, text->data, text->size);
    block->used_bytes += text->size;
    text->data = to;
}

static void
forget(struct term_ranking *ranking)
{
    free_texts(ranking->texts);
    ranking->texts = NULL;
    ranking->text_bytes = 0;
    ranking->count = 0;
}

/* Keep the first `most` terms in the order. The others cannot be among the first any more, whatever
 * follows. */
static void
cut(struct term_ranking *ranking)
{
    struct text_block *old = ranking->texts;

    term_sort(ranking->list, ranking->count, ranking->order);
    ranking->count = (uint32_t)ranking->most;
    ranking->texts = NULL;
    ranking->text_bytes = 0;
    for (uint32_t i = 0; i < ranking->count; i++)
        keep_text(ranking, &ranking->list[i].text);
    free_texts(old);
}

static void
make_room(struct term_ranking *ranking)
{
    if (ranking->count < ranking->capacity)
        return;
    /* Only when there are more than twice as many, so that sorting costs a constant for each
     * term. */
    if (ranking->most >= 0 && ranking->count > 2 * ranking->most + 1000) {
        cut(ranking);
        return;
    }
    ranking->capacity = 2 * ranking->capacity + 64;
    ranking->list = tnd_realloc(ranking->list, ranking->capacity, sizeof *ranking->list);
}

tundish_status
term_ranking_put(struct term_ranking *ranking, const struct term *term)
{
    tundish_status status;

    make_room(ranking);
    ranking->list[ranking->count] = *term;
    keep_text(ranking, &ranking->list[ranking->count++].text);
    /* More than the memory allows goes to the disk, sorted. */
    if (ranking->text_bytes + (int64_t)ranking->count * (int64_t)sizeof *ranking->list <=
        ranking->limit_bytes)
        return TUNDISH_OK;
    status = term_runs_write(&ranking->runs, ranking->list, ranking->count, ranking->order);
    if (status == TUNDISH_OK)
        forget(ranking);
    return status;
}

static tundish_status
begin_taking(struct term_ranking *ranking)
{
    tundish_status status = TUNDISH_OK;

    ranking->is_taking = true;
    ranking->readers = tnd_zalloc(ranking->runs.count + 1, sizeof *ranking->readers);
    for (uint32_t r = 0; r < ranking->runs.count && status == TUNDISH_OK; r++)
        status = term_reader_open(&ranking->readers[ranking->reader_count++], &ranking->runs, r);
    /* The terms in memory are a run like the others. */
    if (status == TUNDISH_OK && ranking->count > 0) {
        term_sort(ranking->list, ranking->count, ranking->order);
        term_reader_open_list(&ranking->readers[ranking->reader_count++], ranking->list,
                              ranking->count);
    }
    if (status == TUNDISH_OK)
        term_readers_order(ranking->readers, ranking->reader_count, ranking->order);
    return status;
}

tundish_status
term_ranking_take(struct term_ranking *ranking, struct term *ret_term)
{
    tundish_status status = TUNDISH_OK;

    if (!ranking->is_taking)
        status = begin_taking(ranking);
    else if (ranking->reader_count > 0)
        status = term_readers_step(ranking->readers, &ranking->reader_count, ranking->order);
    if (status != TUNDISH_OK)
        return status;
    /* The order of the runs decides which terms are the first. */
    if (ranking->reader_count == 0 || (ranking->most >= 0 && ranking->taken == ranking->most))
        return TUNDISH_NO_VALUE;
    ranking->taken++;
    *ret_term = ranking->readers[0].term;
    return TUNDISH_OK;
}

void
term_ranking_close(struct term_ranking *ranking)
{
    if (ranking == NULL)
        return;
    term_readers_close(ranking->readers, ranking->reader_count);
    free_texts(ranking->texts);
    free(ranking->list);
    term_runs_close(&ranking->runs);
    free(ranking);
}
