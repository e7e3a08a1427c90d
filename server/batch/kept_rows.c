/* kept_rows.c - see kept_rows.h. Rows of one look are a block. Rows are mostly wanted in the order
 * in which they were looked at, so the row after the last one that was handed out is tried first.
 * For other orders there is a table by hashes of words. It is small, and a newer row takes an older
 * one's entry: whether an entry still means the row is seen from the block. */
#include "batch/kept_rows.h"

#include <stdlib.h>
#include <string.h>

#include "batch/column_combine.h"
#include "column/words.h"
#include "core/lock.h"
#include "core/memory.h"
#include "core/memory_room.h"
#include "core/must.h"
#include "order/order.h"
#include "source/source.h"

enum { BLOCKS = 4096, ENTRIES = 1 << 17 };
/* The room is this part of memory_limit or of the free memory, and no more than BYTES_MAX. */
enum { PART_OF_LIMIT = 4, PART_OF_ROOM = 16 };
static const uint64_t BYTES_MAX = UINT64_C(256) << 20;
/* Keeping takes so long for a row, and a nanosecond for four bytes. It pays if making takes twice
 * as long. */
static const int64_t ROW_NS = 50;
/* Arrays are aligned as those of scratch, and as many bytes after them may be read. */
enum { MARGIN = 64 };

struct kept_block {
    const struct plan_node *node;
    int64_t users; /* the table of blocks, and pieces */
    uint64_t bytes;
    uint64_t taken_before; /* kept_rows.taken_count as it came */
    int64_t count, left;
    uint64_t *words; /* node->width of each row */
    bool *is_taken;
    struct column *columns;
    struct kept_rows *kept;
};

struct entry {
    uint64_t block; /* its number, plus one; 0: none */
    int64_t row;
};

struct kept_rows {
    struct tnd_lock lock;
    uint64_t bytes, bytes_max;
    uint64_t row_count;                /* that wait */
    uint64_t taken_count;              /* since the beginning */
    struct kept_block *blocks[BLOCKS]; /* by number; NULL: all rows of it were taken */
    uint64_t first, end;               /* numbers of those that are there */
    struct entry *entries;
    uint32_t node_count;
    bool nodes[]; /* by plan_node.index */
};

/* Words that another process understands always mean the same row. */
static bool
has_lasting_words(const struct plan_node *node)
{
    if (node->source != NULL &&
        (node->source->words == WORDS_OF_HERE || plan_is_cache_in_file(node)))
        return false;
    if (node->body != NULL && !has_lasting_words(node->body->root))
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!has_lasting_words(node->inputs[i]))
            return false;
    return true;
}

static void
mark_node(struct kept_rows *kept, const struct plan_node *stage)
{
    const struct plan_node *node = stage->inputs[0];

    if (stage->order != NULL && stage->order->content_use == ORDER_READS_CONTENT_ALWAYS &&
        stage->input_count == 1 && node->run_words == 0 && node->depth == 0 &&
        has_lasting_words(node))
        kept->nodes[node->index] = true;
}

struct kept_rows *
kept_rows_open(const struct plan *plan)
{
    struct kept_rows *kept = tnd_zalloc(1, sizeof *kept + plan->node_count * sizeof *kept->nodes);
    uint64_t limit = plan->stream->deliver.memory_limit;
    struct tnd_memory_room room;
    bool any = false;

    kept->node_count = plan->node_count;
    for (uint32_t i = 0; i < plan->graph->node_count; i++)
        if (plan->graph->nodes[i]->input_count > 0)
            mark_node(kept, plan->graph->nodes[i]);
    for (uint32_t i = 0; i < plan->node_count; i++)
        any |= kept->nodes[i];
    if (!any) {
        free(kept);
        return NULL;
    }
    tnd_memory_room(&room);
    kept->bytes_max = limit != 0 ? limit / PART_OF_LIMIT : room.bytes / PART_OF_ROOM;
    if (kept->bytes_max > BYTES_MAX)
        kept->bytes_max = BYTES_MAX;
    pthread_mutex_init(&kept->lock.mutex, NULL);
    return kept;
}

/* One user less. Without the lock. */
static void
release(void *what)
{
    struct kept_block *block = what;
    struct kept_rows *kept = block->kept;

    tnd_lock_take(&kept->lock);
    must_in_debug(block->users > 0 && kept->bytes >= block->bytes);
    if (--block->users > 0)
        block = NULL;
    else
        kept->bytes -= block->bytes;
    tnd_lock_release(&kept->lock);
    free(block);
}

/* It is not handed out any more. Returns it if nobody uses it: the caller frees it. */
static struct kept_block *
unlink_block(struct kept_rows *kept, uint64_t number)
{
    struct kept_block *block = kept->blocks[number % BLOCKS];

    must_hold(&kept->lock);
    must_in_debug(kept->first <= number && number < kept->end && block != NULL);
    must_in_debug(block->users > 0 && kept->row_count >= (uint64_t)block->left);
    kept->blocks[number % BLOCKS] = NULL;
    kept->row_count -= (uint64_t)block->left;
    while (kept->first < kept->end && kept->blocks[kept->first % BLOCKS] == NULL)
        kept->first++;
    if (--block->users > 0)
        return NULL;
    kept->bytes -= block->bytes;
    return block;
}

void
kept_rows_clear(struct kept_rows *kept)
{
    tnd_lock_take(&kept->lock);
    while (kept->first < kept->end)
        free(unlink_block(kept, kept->first));
    tnd_lock_release(&kept->lock);
}

void
kept_rows_close(struct kept_rows *kept)
{
    if (kept == NULL)
        return;
    kept_rows_clear(kept);
    must(kept->bytes == 0);
    pthread_mutex_destroy(&kept->lock.mutex);
    free(kept->entries);
    free(kept);
}

bool
kept_rows_of(const struct kept_rows *kept, const struct plan_node *node)
{
    return node->index < kept->node_count && kept->nodes[node->index];
}

/* Room for arrays, one after the other. Without memory it is only measured. */
struct place {
    uint8_t *memory;
    size_t used;
};

static void *
put(struct place *place, const void *from, size_t bytes)
{
    uint8_t *to = place->memory == NULL ? NULL : place->memory + place->used;

    if (to != NULL && from != NULL && bytes > 0)
        memcpy(to, from, bytes);
    place->used += (bytes + 2 * MARGIN - 1) / MARGIN * MARGIN;
    return to;
}

/* The texts themselves, after the array that names them. */
static void
put_texts(struct place *place, struct byte_view *texts, const struct byte_view *from, int64_t count)
{
    size_t bytes = 0;
    uint8_t *to;

    for (int64_t i = 0; i < count; i++)
        bytes += from[i].size;
    to = put(place, NULL, bytes);
    if (to == NULL)
        return;
    for (int64_t i = 0; i < count; i++) {
        if (from[i].size > 0)
            memcpy(to, from[i].data, from[i].size);
        texts[i].data = to;
        to += from[i].size;
    }
}

static void
put_column(struct place *place, const struct column *from, tundish_dtype dtype, struct column *to)
{
    size_t width = from->level_count * sizeof(int64_t);
    void *values;

    column_copy(to, from);
    for (uint32_t k = 0; k < from->level_count; k++)
        if (from->levels[k].uniform < 0)
            to->levels[k].splits =
                put(place, from->levels[k].splits,
                    ((size_t)column_list_count(from, k) + 1) * sizeof *from->levels[k].splits);
    if (from->indices != NULL)
        to->indices = put(place, from->indices, (size_t)from->value_count * width);
    if (from->dense_shape != NULL)
        to->dense_shape = put(place, from->dense_shape, (size_t)from->count * width);
    values = put(place, from->values, (size_t)from->value_count * column_value_bytes(dtype));
    if (dtype == TUNDISH_STRING)
        put_texts(place, values, from->values, from->value_count);
    to->values = values;
}

static void
put_rows(struct place *place, const struct kept_offer *offer, struct kept_block *block)
{
    const struct frame *rows = offer->rows;
    size_t count = (size_t)rows->count, width = offer->node->width;
    struct column measured;

    block->words = put(place, NULL, count * width * sizeof *block->words);
    block->is_taken = put(place, NULL, count * sizeof *block->is_taken);
    block->columns = put(place, NULL, rows->column_count * sizeof *block->columns);
    for (uint32_t i = 0; i < rows->column_count; i++)
        put_column(place, &rows->columns[i], rows->schema->columns[i].dtype,
                   block->columns != NULL ? &block->columns[i] : &measured);
    if (place->memory == NULL)
        return;
    memset(block->is_taken, 0, count * sizeof *block->is_taken);
    for (size_t i = 0; i < count; i++)
        memcpy(&block->words[i * width], &offer->words[offer->elements[i] * width],
               width * sizeof *block->words);
}

/* May `bytes` more be kept? Rows are given up for them that were passed over: since they came, more
 * than twice as many as there are were handed out. */
static bool
make_room(struct kept_rows *kept, uint64_t bytes)
{
    must_hold(&kept->lock);
    while (kept->bytes + bytes > kept->bytes_max || kept->end - kept->first == BLOCKS) {
        const struct kept_block *oldest = kept->blocks[kept->first % BLOCKS];

        if (kept->first == kept->end ||
            kept->taken_count - oldest->taken_before <= 2 * kept->row_count)
            return false;
        free(unlink_block(kept, kept->first));
    }
    kept->bytes += bytes;
    must_in_debug(kept->bytes <= kept->bytes_max && kept->end - kept->first < BLOCKS);
    return true;
}

static struct entry *
entry_of(const struct kept_rows *kept, const struct plan_node *node, const uint64_t *words)
{
    uint64_t hash = node->index;

    must_hold(&kept->lock);
    must_in_debug(kept->entries != NULL);
    for (uint32_t w = 0; w < node->width; w++) {
        hash = (hash ^ words[w]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return &kept->entries[hash % ENTRIES];
}

/* False: others have taken the last number meanwhile. */
static bool
link_block(struct kept_rows *kept, struct kept_block *block)
{
    must_in_debug(block->count > 0);
    must_hold(&kept->lock);
    if (kept->end - kept->first == BLOCKS) {
        kept->bytes -= block->bytes;
        return false;
    }
    if (kept->entries == NULL)
        kept->entries = tnd_zalloc(ENTRIES, sizeof *kept->entries);
    must_in_debug(kept->blocks[kept->end % BLOCKS] == NULL);
    block->taken_before = kept->taken_count;
    kept->blocks[kept->end++ % BLOCKS] = block;
    kept->row_count += (uint64_t)block->count;
    for (int64_t i = 0; i < block->count; i++)
        *entry_of(kept, block->node, &block->words[(size_t)i * block->node->width]) =
            (struct entry){ .block = kept->end, .row = i };
    return true;
}

void
kept_rows_offer(struct kept_rows *kept, const struct kept_offer *offer)
{
    const struct frame *rows = offer->rows;
    struct place place = { .used = sizeof(struct kept_block) + MARGIN };
    struct kept_block *block, measured;
    bool has_room;

    must_in_debug(kept_rows_of(kept, offer->node));
    if (rows->count == 0)
        return;
    for (uint32_t i = 0; i < rows->column_count; i++)
        if (rows->schema->columns[i].dtype == TUNDISH_STRING)
            words_fill(rows->scratch, rows->columns[i].values, rows->columns[i].value_count, 1);
    place.used = place.used / MARGIN * MARGIN;
    put_rows(&place, offer, &measured);
    if (2 * (rows->count * ROW_NS + (int64_t)(place.used / 4)) > offer->took_ns)
        return;
    tnd_lock_take(&kept->lock);
    has_room = make_room(kept, place.used);
    tnd_lock_release(&kept->lock);
    if (!has_room)
        return;
    block = tnd_alloc_aligned(MARGIN, place.used);
    *block = (struct kept_block){ .node = offer->node,
                                  .users = 1,
                                  .bytes = place.used,
                                  .count = rows->count,
                                  .left = rows->count,
                                  .kept = kept };
    place = (struct place){ .memory = (uint8_t *)block,
                            .used = (sizeof *block + MARGIN) / MARGIN * MARGIN };
    put_rows(&place, offer, block);
    must(place.used == block->bytes);
    tnd_lock_take(&kept->lock);
    if (link_block(kept, block))
        block = NULL;
    tnd_lock_release(&kept->lock);
    free(block);
}

/* Where a row is. */
struct spot {
    uint64_t number;
    int64_t row;
};

/* Is that row there, not handed out, and of these words? */
static bool
is_at(const struct kept_rows *kept, const struct spot *spot, const struct plan_node *node,
      const uint64_t *words)
{
    const struct kept_block *block;

    must_hold(&kept->lock);
    if (spot->number < kept->first || spot->number >= kept->end)
        return false;
    block = kept->blocks[spot->number % BLOCKS];
    must_in_debug(block == NULL || (spot->row >= 0 && spot->row < block->count));
    return block != NULL && block->node == node && !block->is_taken[spot->row] &&
           memcmp(&block->words[(size_t)spot->row * node->width], words,
                  node->width * sizeof *words) == 0;
}

static bool
find(const struct kept_rows *kept, const struct plan_node *node, const uint64_t *words,
     struct spot *spot)
{
    const struct entry *entry;

    must_hold(&kept->lock);
    if (is_at(kept, spot, node, words))
        return true;
    entry = entry_of(kept, node, words);
    if (entry->block == 0)
        return false;
    *spot = (struct spot){ .number = entry->block - 1, .row = entry->row };
    return is_at(kept, spot, node, words);
}

/* Hand the row out, as the last of `pieces`. Moves to the next one. */
static void
take_row(struct kept_rows *kept, struct spot *spot, struct kept_piece *pieces,
         uint32_t *piece_count)
{
    struct kept_block *block = kept->blocks[spot->number % BLOCKS];
    struct kept_piece *last = *piece_count > 0 ? &pieces[*piece_count - 1] : NULL;

    must_in_debug(spot->row < block->count && !block->is_taken[spot->row] && block->left > 0);
    must_hold(&kept->lock);
    block->is_taken[spot->row] = true;
    block->left--;
    kept->row_count--;
    kept->taken_count++;
    if (last != NULL && last->block == block && last->first + last->count == spot->row) {
        last->count++;
    } else {
        pieces[(*piece_count)++] =
            (struct kept_piece){ .block = block, .first = spot->row, .count = 1 };
        block->users++;
    }
    if (block->left == 0)
        must(unlink_block(kept, spot->number) == NULL); /* the piece uses it */
    if (++spot->row == block->count)
        *spot = (struct spot){ .number = spot->number + 1 };
}

uint32_t
kept_rows_take(struct kept_rows *kept, const struct kept_want *want, struct kept_piece *pieces,
               int64_t *found, int64_t *missing, int64_t *ret_missing_count)
{
    int64_t found_count = 0, missing_count = 0;
    uint32_t piece_count = 0;

    tnd_lock_take(&kept->lock);
    if (kept->row_count > 0) {
        struct spot spot = { .number = kept->first };

        for (int64_t i = 0; i < want->count; i++) {
            if (find(kept, want->node, want->words + (size_t)i * want->stride, &spot)) {
                take_row(kept, &spot, pieces, &piece_count);
                found[found_count++] = i;
            } else {
                missing[missing_count++] = i;
            }
        }
        must_in_debug(found_count + missing_count == want->count);
    }
    tnd_lock_release(&kept->lock);
    for (uint32_t p = 0; p < piece_count; p++)
        scratch_keep(want->scratch, release, (void *)pieces[p].block);
    *ret_missing_count = missing_count;
    return piece_count;
}

/* Values of each element; 0: that differs. */
static int64_t
values_each(const struct column *column)
{
    int64_t each = 1;

    if (column->indices != NULL || column->dense_shape != NULL)
        return 0;
    for (uint32_t k = 0; k < column->level_count; k++) {
        if (column->levels[k].uniform < 0)
            return 0;
        each *= column->levels[k].uniform;
    }
    return each;
}

void
kept_piece_column(const struct kept_piece *piece, uint32_t index, tundish_dtype dtype,
                  struct scratch *scratch, struct column *ret_column)
{
    const struct column *column = &piece->block->columns[index];
    int64_t each = values_each(column);
    int64_t *rows;

    must_in_debug(0 <= piece->first && piece->first + piece->count <= column->count);
    if (piece->count == column->count) {
        column_copy(ret_column, column);
    } else if (each > 0) {
        column_copy(ret_column, column);
        ret_column->count = piece->count;
        ret_column->value_count = piece->count * each;
        ret_column->values = (const uint8_t *)column->values +
                             (size_t)(piece->first * each) * column_value_bytes(dtype);
    } else {
        rows = scratch_array(scratch, (size_t)piece->count, sizeof *rows);
        for (int64_t i = 0; i < piece->count; i++)
            rows[i] = piece->first + i;
        column_gather(column, dtype, rows, piece->count, scratch, ret_column);
    }
}
