/* row_groups_ahead.c - what dealt steps tell: row groups that are decoded ahead, and rows that stay
 * where room is short. */
#include "source/parquet/row_groups_private.h"

#include <stdlib.h>

#include "core/memory.h"
#include "source/files/file.h"
#include "source/parquet/file.h"

enum { HOLDS_AGO = 16 }; /* for parts that are made at the same time */

/* The rows of a step. The first ones are marked as dealt. */
struct dealt_step {
    struct dealt_step *next; /* dealt after this one */
    uint64_t epoch, number;
    struct row_group_row *rows;
    size_t count, marked;
    bool is_over;
};

/* About what it takes decoded: texts lie beside their places. */
static uint64_t
estimate(const struct parquet_file *file, uint32_t number)
{
    uint32_t count = file->footer.wanted_count;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct parquet_chunk *chunk = &file->footer.chunks[(size_t)number * count + i];
        tundish_dtype dtype = file->columns->columns[i].dtype;
        uint64_t column;

        if (__builtin_mul_overflow(chunk->value_count, parquet_value_bytes(dtype), &column) ||
            __builtin_add_overflow(bytes, column, &bytes) ||
            (dtype == TUNDISH_STRING &&
             __builtin_add_overflow(bytes, chunk->unpacked_bytes, &bytes)))
            return UINT64_MAX;
    }
    return bytes;
}

/* With the lock held. Where all room is taken, the oldest row group makes room: one that was not
 * held while the others were, several times. Tuples are still to be taken;
 * where they have no room, row groups are decoded one at a time. */
static bool
has_room_ahead(const struct row_groups *cache, uint64_t bytes)
{
    if (bytes > cache->limit || cache->ahead_bytes + bytes > cache->limit / 2 ||
        (cache->is_short && cache->tuples_count > 0))
        return false;
    if (cache->bytes + cache->ahead_bytes + bytes <= cache->limit)
        return true;
    return cache->tuples_count == 0 && cache->oldest != NULL && cache->oldest->holds == 0 &&
           cache->oldest->ahead_bytes == 0 &&
           cache->holds - cache->oldest->held_at > 2 * (uint64_t)cache->group_count + HOLDS_AGO;
}

/* For read_ahead_job.step: a column. One that cannot be read is left to who wants it. */
static bool
decode_ahead(struct read_ahead_job *job, uint8_t *buffer)
{
    struct row_group *group =
        (struct row_group *)(void *)((uint8_t *)job - offsetof(struct row_group, job));
    struct row_groups *cache = group->cache;
    uint32_t i = 0;
    bool more;

    (void)buffer;
    pthread_mutex_lock(&cache->lock);
    while (i < group->column_count && group->columns[i].state != COLUMN_MISSING)
        i++;
    more = i < group->column_count && row_groups_make_column(cache, group, i) == TUNDISH_OK;
    if (!more) {
        row_groups_let_go(group);
        row_groups_make_room(cache);
    }
    pthread_mutex_unlock(&cache->lock);
    return more;
}

bool
row_groups_expect(struct row_groups *cache, struct source_file *file, uint32_t number)
{
    uint64_t bytes = estimate(file->parquet, number);
    struct row_group *group;
    bool is_expected;

    pthread_mutex_lock(&cache->lock);
    row_groups_limit(cache);
    is_expected = file->parquet->groups[number] != NULL;
    if (!is_expected && has_room_ahead(cache, bytes)) {
        group = row_groups_find(cache, file, number);
        group->cache = cache;
        group->job.step = decode_ahead;
        is_expected = read_ahead_add(&file->services->ahead, &group->job);
        if (is_expected) {
            group->ahead_bytes = bytes;
            cache->ahead_bytes += bytes;
        } else {
            row_groups_let_go(group);
        }
    }
    pthread_mutex_unlock(&cache->lock);
    return is_expected;
}

void
row_groups_see(struct row_groups *cache, struct source_file *file)
{
    struct parquet_file *parquet = file->parquet;

    if (atomic_exchange_explicit(&parquet->is_seen, true, memory_order_relaxed))
        return;
    pthread_mutex_lock(&cache->lock);
    row_groups_limit(cache);
    for (uint32_t i = 0; i < parquet->footer.group_count && cache->seen_bytes <= cache->limit; i++)
        if (__builtin_add_overflow(cache->seen_bytes, estimate(parquet, i), &cache->seen_bytes))
            cache->seen_bytes = UINT64_MAX;
    if (cache->seen_bytes > cache->limit && !row_groups_is_short(cache))
        cache->spills = true;
    pthread_mutex_unlock(&cache->lock);
}

bool
row_groups_is_short(const struct row_groups *cache)
{
    return atomic_load_explicit(&cache->is_short, memory_order_relaxed);
}

bool
row_groups_wants_steps(struct row_groups *cache)
{
    bool wants;

    if (!row_groups_is_short(cache))
        return false;
    pthread_mutex_lock(&cache->lock);
    wants = cache->marked_step == NULL;
    pthread_mutex_unlock(&cache->lock);
    return wants;
}

void
row_groups_deal(struct row_groups *cache, const struct row_group_step *dealt)
{
    struct dealt_step *step = tnd_zalloc(1, sizeof *step);

    step->epoch = dealt->epoch;
    step->number = dealt->step;
    step->rows = dealt->rows;
    step->count = dealt->count;
    pthread_mutex_lock(&cache->lock);
    *cache->steps_end = step;
    cache->steps_end = &step->next;
    if (cache->marked_step == NULL)
        cache->marked_step = step;
    if (step->epoch != cache->epoch) {
        cache->epoch = step->epoch;
        cache->period++;
    }
    row_groups_mark(cache);
    pthread_mutex_unlock(&cache->lock);
}

void
row_groups_end_step(struct row_groups *cache, uint64_t epoch, uint64_t step)
{
    struct dealt_step *at;

    pthread_mutex_lock(&cache->lock);
    for (at = cache->first_step; at != NULL; at = at->next)
        if (at->epoch == epoch && at->number == step && !at->is_over)
            break;
    if (at != NULL)
        at->is_over = true;
    pthread_mutex_unlock(&cache->lock);
}

static struct row_group *
group_of(const struct row_group_row *row)
{
    return row->file->parquet->groups[row->number];
}

static bool
is_spilled(const struct row_group_row *row)
{
    const struct row_group *group = group_of(row);

    return group != NULL && group->spill != NULL;
}

void
row_groups_note(struct row_groups *cache, const struct row_group_row *row)
{
    struct parquet_taken *taken = row_groups_taken(cache, row->file, row->number);
    struct parquet_kept *kept = row_groups_kept(group_of(row));
    uint64_t dealt = taken->dealt_count;

    if (parquet_taken_note(taken, kept, row->row, taken->period != cache->period))
        taken->period = cache->period;
    cache->dealt_rows -= dealt - taken->dealt_count;
}

static void
end_first_step(struct row_groups *cache)
{
    struct dealt_step *step = cache->first_step;

    cache->first_step = step->next;
    if (cache->first_step == NULL)
        cache->steps_end = &cache->first_step;
    if (cache->marked_step == step)
        cache->marked_step = step->next;
    free(step->rows);
    free(step);
}

/* Rows that were not taken here were taken by others, as helpers, or by nobody. */
static void
unmark(struct row_groups *cache, const struct dealt_step *step)
{
    for (size_t i = 0; i < step->marked; i++) {
        const struct row_group_row *row = &step->rows[i];
        struct parquet_taken *taken = row->file->parquet->taken[row->number];

        if (taken != NULL)
            cache->dealt_rows -= parquet_taken_end(taken, row_groups_kept(group_of(row)), row->row);
    }
}

void
row_groups_close_steps(struct row_groups *cache)
{
    while (cache->first_step != NULL)
        end_first_step(cache);
}

/* Beside them a row group must have room that is decoded. */
static uint64_t
rows_with_room(const struct row_groups *cache)
{
    uint64_t room = cache->limit - cache->limit / 8;

    room = room > cache->decoded_bytes ? room - cache->decoded_bytes : 0;

    if (room < cache->limit / 4)
        room = cache->limit / 4;
    return cache->tuple_bytes > 0 ? room / cache->tuple_bytes : 0;
}

void
row_groups_mark(struct row_groups *cache)
{
    uint64_t rows = rows_with_room(cache);

    while (cache->first_step != NULL && cache->first_step->is_over) {
        unmark(cache, cache->first_step);
        end_first_step(cache);
    }
    while (cache->marked_step != NULL && cache->dealt_rows < rows) {
        struct dealt_step *step = cache->marked_step;

        for (; step->marked < step->count && cache->dealt_rows < rows; step->marked++) {
            const struct row_group_row *row = &step->rows[step->marked];

            if (is_spilled(row))
                continue;
            cache->dealt_rows += parquet_taken_deal(row_groups_taken(cache, row->file, row->number),
                                                    row_groups_kept(group_of(row)), row->row);
        }
        if (step->marked == step->count)
            cache->marked_step = step->next;
    }
}
