/* row_groups.c - see row_groups.h. */
#include "source/parquet/row_groups.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/memory_room.h"
#include "core/must.h"
#include "core/status.h"
#include "source/files/file.h"
#include "source/parquet/bits.h"
#include "source/parquet/file.h"
#include "source/peer/peer.h"

/* Row groups that are looked at for one that can become smaller: by at least one of SPARE rows. */
enum { SPARE_LOOKS = 256, SPARE = 8 };

enum { HOLDS_AGO = 16 }; /* for parts that are made at the same time */

struct row_groups {
    pthread_mutex_t lock; /* of all below, and of the groups */
    pthread_cond_t decoded;
    uint64_t limit, bytes;
    uint64_t ahead_bytes;               /* of row groups that nobody has held yet */
    uint64_t holds;                     /* that there were */
    uint32_t group_count, tuples_count; /* in memory */
    bool is_limited;                    /* by the memory that there is, too */
    struct row_group *newest, *oldest;
};

struct row_groups *
row_groups_open(uint64_t bytes)
{
    struct row_groups *cache = tnd_zalloc(1, sizeof *cache);

    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->decoded, NULL);
    cache->limit = bytes;
    return cache;
}

static void
unlink_group(struct row_groups *cache, struct row_group *group)
{
    *(group->newer != NULL ? &group->newer->older : &cache->newest) = group->older;
    *(group->older != NULL ? &group->older->newer : &cache->oldest) = group->newer;
    group->newer = group->older = NULL;
}

static void
link_newest(struct row_groups *cache, struct row_group *group)
{
    group->older = cache->newest;
    group->newer = NULL;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = group;
    cache->newest = group;
}

static void
close_group(struct row_group *group)
{
    for (uint32_t i = 0; i < group->column_count; i++) {
        parquet_column_close(&group->columns[i].column);
        free(group->columns[i].sentence);
        peer_rows_close(group->columns[i].asked);
    }
    parquet_tuples_close(group->tuples);
    parquet_taken_close(&group->taken);
    free(group);
}

/* It is found no more; close_group follows. */
static void
remove_group(struct row_groups *cache, struct row_group *group)
{
    unlink_group(cache, group);
    group->file->parquet->groups[group->number] = NULL;
    atomic_store_explicit(&group->file->parquet->are_there[group->number], false,
                          memory_order_relaxed);
    cache->bytes -= group->bytes;
    cache->ahead_bytes -= group->ahead_bytes;
    cache->group_count--;
    cache->tuples_count -= group->tuples != NULL;
}

static void
forget(struct row_groups *cache, struct row_group *group)
{
    remove_group(cache, group);
    close_group(group);
}

void
row_groups_close(struct row_groups *cache)
{
    if (cache == NULL)
        return;
    while (cache->newest != NULL)
        forget(cache, cache->newest);
    pthread_cond_destroy(&cache->decoded);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static uint64_t
rows_of(const struct row_group *group)
{
    return group->file->parquet->footer.groups[group->number].row_count;
}

static struct parquet_member *
members_of(struct row_group *group)
{
    const struct parquet_columns *wanted = group->file->parquet->columns;
    struct parquet_member *members = tnd_alloc((group->column_count + 1) * sizeof *members);

    for (uint32_t i = 0; i < group->column_count; i++)
        members[i] = (struct parquet_member){ &group->columns[i].column, wanted->columns[i].dtype };
    return members;
}

static uint64_t
bytes_of(const struct row_group *group)
{
    uint64_t bytes = group->tuples->bytes;

    for (uint32_t i = 0; i < group->column_count; i++)
        bytes += group->columns[i].column.bytes;
    return bytes;
}

/* With the lock held, which is given up meanwhile. Nobody else holds it. */
static void
shrink(struct row_groups *cache, struct row_group *group)
{
    struct parquet_member *members = members_of(group);
    uint64_t before = group->bytes;

    group->is_changing = true;
    group->holds++;
    pthread_mutex_unlock(&cache->lock);
    parquet_taken_shrink(&group->taken, group->tuples, members, group->column_count);
    free(members);
    pthread_mutex_lock(&cache->lock);
    group->is_changing = false;
    group->holds--;
    group->bytes = bytes_of(group);
    cache->bytes = cache->bytes - before + group->bytes;
    pthread_cond_broadcast(&cache->decoded);
}

static uint32_t
taken(const struct row_group *group)
{
    return group->taken.tuple_count - group->taken.unused;
}

/* The first row group whose tuples were all taken, or else the one of which most were. */
static struct row_group *
find_spare(const struct row_groups *cache)
{
    struct row_group *found = NULL, *group = cache->oldest;

    for (int i = 0; i < SPARE_LOOKS && group != NULL; i++, group = group->newer) {
        if (group->holds > 0 || group->tuples == NULL)
            continue;
        if (group->taken.unused == 0)
            return group;
        if (taken(group) > group->taken.tuple_count / SPARE &&
            (found == NULL || taken(group) > taken(found)))
            found = group;
    }
    return found;
}

/* With the lock held, which may be given up meanwhile. */
static void
make_room(struct row_groups *cache)
{
    struct row_group *group;

    while (cache->bytes > cache->limit && (group = find_spare(cache)) != NULL)
        if (group->taken.unused == 0)
            forget(cache, group);
        else
            shrink(cache, group);
    group = cache->oldest;
    while (group != NULL && cache->bytes > cache->limit) {
        struct row_group *newer = group->newer;

        if (group->holds == 0)
            forget(cache, group);
        group = newer;
    }
}

/* All of its columns come at the same time, where they come from far away. */
static void
expect_columns(const struct row_groups *cache, struct row_group *group)
{
    const struct parquet_footer *footer = &group->file->parquet->footer;

    for (uint32_t i = 0; i < footer->wanted_count; i++) {
        const struct parquet_chunk *chunk =
            &footer->chunks[(size_t)group->number * footer->wanted_count + i];

        if (group->file->peers == NULL)
            file_expect_range(group->file, chunk->bytes, chunk->offset);
        else if (chunk->bytes <= cache->limit)
            group->columns[i].asked = peer_ask_range(group->file, chunk->bytes, chunk->offset);
    }
}

static struct row_group *
find_or_add(struct row_groups *cache, struct source_file *file, uint32_t number)
{
    struct parquet_file *parquet = file->parquet;
    struct row_group *group = parquet->groups[number];

    if (group == NULL) {
        uint32_t count = parquet->footer.wanted_count;

        group = tnd_zalloc(1, sizeof *group + count * sizeof *group->columns);
        group->file = file;
        group->number = number;
        group->column_count = group->left = count;
        parquet->groups[number] = group;
        atomic_store_explicit(&parquet->are_there[number], true, memory_order_relaxed);
        cache->group_count++;
        expect_columns(cache, group);
    } else {
        unlink_group(cache, group);
    }
    link_newest(cache, group);
    group->holds++;
    return group;
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
        if (status != TUNDISH_OK)
            status = name_it(status, group, column);
    }
    free(bytes);
    return status;
}

/* With the lock held, which is given up meanwhile. A failure to read leaves the column as it was,
 * for the next who wants it. */
static tundish_status
make_column(struct row_groups *cache, struct row_group *group, uint32_t index)
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
        make_room(cache);
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

static void
limit(struct row_groups *cache)
{
    struct tnd_memory_room room;

    if (cache->is_limited)
        return;
    tnd_memory_room(&room);
    if (cache->limit == 0 || cache->limit > room.bytes / 4)
        cache->limit = room.bytes / 4 + 1;
    cache->is_limited = true;
}

/* With the lock held, which is given up meanwhile: nobody else is given the group, nor has it. */
static void
change_into_tuples(struct row_groups *cache, struct row_group *group)
{
    struct parquet_member *members = members_of(group);
    uint64_t before = group->bytes, rows = rows_of(group);
    struct parquet_tuples *tuples;

    group->is_changing = true;
    pthread_mutex_unlock(&cache->lock);
    tuples = parquet_tuples_open(members, group->column_count, rows);
    free(members);
    pthread_mutex_lock(&cache->lock);
    group->is_changing = false;
    group->tuples = tuples;
    cache->tuples_count++;
    parquet_taken_open(&group->taken, rows);
    group->bytes = bytes_of(group);
    cache->bytes = cache->bytes - before + group->bytes;
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
            status = make_column(cache, group, (uint32_t)(column - group->columns));
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
    for (uint32_t i = 0; i < wanted->count && group->taken.kept != NULL; i++)
        if (!parquet_taken_has_tuple(&group->taken, wanted->rows[i].row))
            return false;
    return true;
}

/* With the lock held. */
static void
note_taken(struct row_group *group, const struct row_group_wanted *wanted)
{
    for (uint32_t i = 0; i < wanted->count && group->taken.used != NULL; i++)
        parquet_taken_note(&group->taken, wanted->rows[i].row);
}

static void
let_go(struct row_group *group)
{
    group->holds--;
    if (group->is_replaced && group->holds == 0)
        close_group(group);
}

/* With the lock held, which is given up meanwhile: hold it as it is to be read. */
static tundish_status
have_group(struct row_groups *cache, const struct row_group_wanted *wanted,
           struct row_group **ret_group, bool *ret_is_bad)
{
    struct row_group *group = find_or_add(cache, wanted->file, wanted->number);
    tundish_status status = have_columns(cache, group, ret_is_bad);

    while (status == TUNDISH_OK && group->is_changing)
        pthread_cond_wait(&cache->decoded, &cache->lock);
    if (status == TUNDISH_OK && wanted->is_scattered && group->tuples == NULL &&
        group->reader_count == 0 && rows_of(group) <= UINT32_MAX)
        change_into_tuples(cache, group);
    if (status != TUNDISH_OK) {
        group->holds--;
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
    limit(cache);
    while ((status = have_group(cache, wanted, &group, ret_is_bad)) == TUNDISH_OK &&
           !has_rows(group, wanted)) {
        if (!group->is_replaced)
            remove_group(cache, group);
        group->is_replaced = true;
        let_go(group);
    }
    if (status == TUNDISH_OK) {
        note_taken(group, wanted);
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
    let_go(group);
    make_room(cache);
    pthread_mutex_unlock(&cache->lock);
}

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
 * held while the others were, several times. Tuples are still to be taken. */
static bool
has_room_ahead(const struct row_groups *cache, uint64_t bytes)
{
    if (bytes > cache->limit || cache->ahead_bytes + bytes > cache->limit / 2)
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
    more = i < group->column_count && make_column(cache, group, i) == TUNDISH_OK;
    if (!more) {
        let_go(group);
        make_room(cache);
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
    limit(cache);
    is_expected = file->parquet->groups[number] != NULL;
    if (!is_expected && has_room_ahead(cache, bytes)) {
        group = find_or_add(cache, file, number);
        group->cache = cache;
        group->job.step = decode_ahead;
        is_expected = read_ahead_add(&file->services->ahead, &group->job);
        if (is_expected) {
            group->ahead_bytes = bytes;
            cache->ahead_bytes += bytes;
        } else {
            let_go(group);
        }
    }
    pthread_mutex_unlock(&cache->lock);
    return is_expected;
}
