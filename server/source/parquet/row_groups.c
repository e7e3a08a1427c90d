/* row_groups.c - see row_groups.h. */
#include "source/parquet/row_groups_private.h"

#include <stdlib.h>

#include "core/memory.h"
#include "core/memory_room.h"
#include "core/must.h"
#include "core/status.h"
#include "plan/plan_node.h"
#include "source/files/file.h"
#include "source/parquet/bits.h"
#include "source/parquet/file.h"
#include "source/peer/peer.h"

struct row_groups *
row_groups_open(uint64_t bytes)
{
    struct row_groups *cache = tnd_zalloc(1, sizeof *cache);

    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->decoded, NULL);
    cache->limit = bytes;
    cache->steps_end = &cache->first_step;
    return cache;
}

void
row_groups_close(struct row_groups *cache)
{
    if (cache == NULL)
        return;
    row_groups_close_steps(cache);
    while (cache->newest != NULL)
        row_groups_forget(cache, cache->newest);
    pthread_cond_destroy(&cache->decoded);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static tundish_status
name_it(tundish_status status, const struct row_group *group, uint32_t column)
{
    return tnd_fail_while(status, "%s, row group %u, column '%s'", group->file->name, group->number,
                          group->file->parquet->columns->columns[column].name);
}

/* A chunk that was asked for ahead is taken once. */
static tundish_status
read_chunk(struct row_group *group, uint32_t column, const struct parquet_chunk *chunk, void *to)
{
    struct peer_rows *asked = group->columns[column].asked;
    tundish_status status;

    if (asked == NULL)
        return file_read_range(group->file, to, chunk->bytes, chunk->offset);
    status = peer_take_range(asked, group->file, to, chunk->bytes, chunk->offset);
    peer_rows_close(asked);
    group->columns[column].asked = NULL;
    return status;
}

/* Without the lock: the column is this thread's while it is busy. */
static tundish_status
decode(const struct row_groups *cache, struct row_group *group, uint32_t column,
       struct parquet_column *ret_column, bool *ret_is_bad)
{
    const struct parquet_file *file = group->file->parquet;
    const struct parquet_footer *footer = &file->footer;
    struct parquet_decode what = {
        .leaf = &footer->schema.leaves[file->leaves[column]],
        .chunk = &footer->chunks[(size_t)group->number * footer->wanted_count + column],
        .fallback = file->columns->columns[column].fallback,
        .row_count = footer->groups[group->number].row_count,
        .bytes_max = cache->limit,
    };
    uint8_t *bytes;
    tundish_status status;

    *ret_is_bad = what.chunk->bytes > cache->limit;
    if (*ret_is_bad)
        return name_it(
            tnd_fail(TUNDISH_E_MEMORY,
                     "its %llu bytes are more than there is room for (deliver.memory_limit)",
                     (unsigned long long)what.chunk->bytes),
            group, column);
    bytes = tnd_alloc(what.chunk->bytes + PARQUET_SLACK);
    status = read_chunk(group, column, what.chunk, bytes);
    if (status == TUNDISH_OK) {
        memset(bytes + what.chunk->bytes, 0, PARQUET_SLACK);
        count_up(&group->file->services->counters.bytes_read, what.chunk->bytes);
        status = parquet_column_decode(&what, (struct byte_view){ bytes, what.chunk->bytes },
                                       ret_column);
        *ret_is_bad = status != TUNDISH_OK;
        if (status == TUNDISH_OK && group->kept.rows != NULL)
            parquet_kept_shrink_column(
                &group->kept,
                &(struct parquet_member){ .column = ret_column,
                                          .dtype = file->columns->columns[column].dtype });
    }
    free(bytes);
    return status == TUNDISH_OK ? status : name_it(status, group, column);
}

/* With the lock held, which is given up meanwhile. A failure to read leaves the column as it was,
 * for the next who wants it. */
tundish_status
row_groups_make_column(struct row_groups *cache, struct row_group *group, uint32_t index)
{
    struct row_group_column *column = &group->columns[index];
    struct parquet_column made = { 0 };
    bool is_bad = false;
    tundish_status status;

    column->state = COLUMN_BUSY;
    pthread_mutex_unlock(&cache->lock);
    status = decode(cache, group, index, &made, &is_bad);
    pthread_mutex_lock(&cache->lock);
    column->state = status == TUNDISH_OK ? COLUMN_READY : is_bad ? COLUMN_BAD : COLUMN_MISSING;
    if (status == TUNDISH_OK) {
        column->column = made;
        group->bytes += made.bytes;
        cache->bytes += made.bytes;
        group->left--;
        row_groups_make_room(cache);
    } else if (is_bad) {
        column->status = status;
        column->sentence = tnd_strdup(tnd_error_text());
    }
    pthread_cond_broadcast(&cache->decoded);
    return column->state == COLUMN_MISSING ? status : TUNDISH_OK;
}

/* With the lock held. A column that is missing, or bad, or busy in this order. NULL: all are
 * ready. */
static struct row_group_column *
next_column(struct row_group *group)
{
    struct row_group_column *busy = NULL;

    if (group->left == 0)
        return NULL;
    for (uint32_t i = 0; i < group->column_count; i++) {
        struct row_group_column *column = &group->columns[i];

        if (column->state == COLUMN_MISSING || column->state == COLUMN_BAD)
            return column;
        if (column->state == COLUMN_BUSY)
            busy = column;
    }
    return busy;
}

void
row_groups_limit(struct row_groups *cache)
{
    struct tnd_memory_room room;

    if (cache->is_limited)
        return;
    tnd_memory_room(&room);
    if (cache->limit == 0 || cache->limit > room.bytes / 4)
        cache->limit = room.bytes / 4 + 1;
    cache->spill_limit = room.bytes / 4;
    cache->is_limited = true;
}

/* Rows here and there would miss the cache for each word that they look up: look up all of them
 * beforehand, one after the other. */
static void
make_words(struct parquet_member *members, uint32_t count, const struct plan_words *words)
{
    for (uint32_t i = 0; i < count && words != NULL; i++) {
        struct parquet_words *dictionary = members[i].column->words;
        int32_t *made;

        if (dictionary == NULL || words[i].maker.make == NULL)
            continue;
        made = tnd_alloc(dictionary->words.count * sizeof *made);
        words_make_all(&dictionary->words, &words[i].maker, made);
        members[i].made = made;
        members[i].key = words[i].maker.key;
    }
}

/* Without the lock. */
static struct parquet_tuples *
make_tuples(const struct row_group *group, struct parquet_member *members,
            const struct plan_words *words)
{
    struct parquet_tuples *tuples;

    make_words(members, group->column_count, words);
    tuples = parquet_tuples_open(members, group->column_count,
                                 group->kept.rows != NULL ? group->kept.tuple_count
                                                          : row_groups_rows(group));
    for (uint32_t i = 0; i < group->column_count; i++)
        free((void *)(uintptr_t)members[i].made);
    free(members);
    return tuples;
}

/* With the lock held, which is given up meanwhile: nobody else is given the group, nor has it. */
static void
change_into_tuples(struct row_groups *cache, struct row_group *group,
                   const struct plan_words *words)
{
    struct parquet_member *members = row_groups_members(group);
    uint64_t before = group->bytes;
    struct parquet_tuples *tuples;

    group->is_changing = true;
    pthread_mutex_unlock(&cache->lock);
    tuples = make_tuples(group, members, words);
    pthread_mutex_lock(&cache->lock);
    group->tuples = tuples;
    cache->tuples_count++;
    row_groups_spill(cache, group);
    group->is_changing = false;
    if (group->spill == NULL)
        parquet_kept_open(&group->kept, row_groups_taken(cache, group->file, group->number));
    group->bytes = row_groups_tuple_bytes(group);
    cache->bytes = cache->bytes - before + group->bytes;
    cache->decoded_bytes = before;
    row_groups_note_bytes(cache, group);
    pthread_cond_broadcast(&cache->decoded);
}

/* With the lock held: wait until all columns are there, and make those that nobody makes. */
static tundish_status
have_columns(struct row_groups *cache, struct row_group *group, bool *ret_is_bad)
{
    struct row_group_column *column;
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK && (column = next_column(group)) != NULL) {
        if (column->state == COLUMN_MISSING)
            status = row_groups_make_column(cache, group, (uint32_t)(column - group->columns));
        else if (column->state == COLUMN_BUSY)
            pthread_cond_wait(&cache->decoded, &cache->lock);
        else {
            status = tnd_fail(column->status, "%s", column->sentence);
            *ret_is_bad = true;
        }
    }
    return status;
}

/* With the lock held. */
static bool
has_rows(const struct row_group *group, const struct row_group_wanted *wanted)
{
    for (uint32_t i = 0; i < wanted->count && group->kept.rows != NULL; i++)
        if (!parquet_kept_has(&group->kept, wanted->rows[i].row))
            return false;
    return true;
}

/* With the lock held. Nobody counts rows of columns, nor of what lies in a file, nor where there is
 * room for far more. */
static void
note_taken(struct row_groups *cache, const struct row_group *group,
           const struct row_group_wanted *wanted)
{
    bool counts = group->tuples != NULL && group->spill == NULL &&
                  (cache->seen_bytes == 0 || cache->seen_bytes > cache->limit / 2);

    for (uint32_t i = 0; i < wanted->count && counts; i++)
        row_groups_note(cache, &(struct row_group_row){ group->file, group->number,
                                                        (uint32_t)wanted->rows[i].row });
    row_groups_mark(cache);
}

/* With the lock held, which is given up meanwhile. Where room is short, tuples of others would have
 * to go for two row groups that are decoded at a time: help with the one that is, and wait. */
static void
await_turn(struct row_groups *cache, struct row_group *group)
{
    struct row_group *other;

    while (group->left > 0 && (other = cache->decoding) != NULL && other != group) {
        struct row_group_column *column = next_column(other);

        if (column == NULL || column->state != COLUMN_MISSING) {
            pthread_cond_wait(&cache->decoded, &cache->lock);
            continue;
        }
        other->holds++;
        (void)row_groups_make_column(cache, other, (uint32_t)(column - other->columns));
        row_groups_let_go(other);
    }
    if (group->left > 0)
        cache->decoding = group;
}

/* With the lock held. A row group that lost rows before, for want of room, is decoded for the rows
 * that steps have, and no others stay. */
static void
choose_rows(struct row_groups *cache, struct row_group *group,
            const struct row_group_wanted *wanted)
{
    const struct parquet_taken *taken;

    for (uint32_t i = 0; i < group->column_count; i++)
        if (group->columns[i].state != COLUMN_MISSING)
            return;
    if (group->kept.rows != NULL || row_groups_rows(group) > UINT32_MAX)
        return;
    taken = row_groups_taken(cache, group->file, group->number);
    if (taken->lacks_others)
        parquet_kept_expect(&group->kept, taken, wanted->rows, wanted->count);
}

/* With the lock held. */
static void
end_turn(struct row_groups *cache, const struct row_group *group)
{
    if (cache->decoding != group)
        return;
    cache->decoding = NULL;
    pthread_cond_broadcast(&cache->decoded);
}

/* With the lock held, which is given up meanwhile: hold it as it is to be read. */
static tundish_status
have_group(struct row_groups *cache, const struct row_group_wanted *wanted,
           struct row_group **ret_group, bool *ret_is_bad)
{
    struct row_group *group = row_groups_find(cache, wanted->file, wanted->number);
    tundish_status status;

    if (wanted->is_scattered && row_groups_lack_memory(cache))
        await_turn(cache, group);
    if (wanted->is_scattered && row_groups_is_short(cache))
        choose_rows(cache, group, wanted);
    status = have_columns(cache, group, ret_is_bad);
    while (status == TUNDISH_OK && group->is_changing)
        pthread_cond_wait(&cache->decoded, &cache->lock);
    if (status == TUNDISH_OK && wanted->is_scattered && group->tuples == NULL &&
        group->reader_count == 0 && row_groups_rows(group) <= UINT32_MAX)
        change_into_tuples(cache, group, wanted->words);
    end_turn(cache, group);
    if (status != TUNDISH_OK) {
        row_groups_let_go(group);
        return status;
    }
    *ret_group = group;
    return TUNDISH_OK;
}

tundish_status
row_groups_hold(struct row_groups *cache, const struct row_group_wanted *wanted,
                const struct row_group **ret_group, bool *ret_is_bad)
{
    struct row_group *group;
    tundish_status status;

    *ret_is_bad = false;
    pthread_mutex_lock(&cache->lock);
    row_groups_limit(cache);
    while ((status = have_group(cache, wanted, &group, ret_is_bad)) == TUNDISH_OK &&
           !has_rows(group, wanted)) {
        if (!group->is_replaced)
            row_groups_remove(cache, group);
        group->is_replaced = true;
        row_groups_let_go(group);
    }
    if (status == TUNDISH_OK) {
        note_taken(cache, group, wanted);
        group->held_at = ++cache->holds;
        cache->ahead_bytes -= group->ahead_bytes;
        group->ahead_bytes = 0;
        group->reader_count++;
        *ret_group = group;
    }
    pthread_mutex_unlock(&cache->lock);
    return status;
}

void
row_groups_release(struct row_groups *cache, const struct row_group *held)
{
    struct row_group *group = (struct row_group *)(uintptr_t)held;

    pthread_mutex_lock(&cache->lock);
    group->reader_count--;
    row_groups_let_go(group);
    row_groups_make_room(cache);
    pthread_mutex_unlock(&cache->lock);
}
