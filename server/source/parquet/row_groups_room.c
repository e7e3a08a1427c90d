/* row_groups_room.c - which row groups and tuples go where room is short.
 *
 * First those of rows that are not to come. Then those of rows that come some time, so that those
 * which dealt steps have stay: first of row groups that have lost such rows already, and are
 * decoded again in any case. Whole row groups go at last. */
#include "source/parquet/row_groups_private.h"

#include <stdlib.h>

#include "core/memory.h"
#include "source/files/file.h"
#include "source/parquet/file.h"
#include "source/parquet/spill.h"
#include "source/peer/peer.h"

/* Row groups that are looked at for one that can become smaller: by at least one of SPARE rows. */
enum { SPARE_LOOKS = 256, SPARE = 8 };

enum { FEW = 16 }; /* a row of FEW */

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

void
row_groups_close_group(struct row_group *group)
{
    for (uint32_t i = 0; i < group->column_count; i++) {
        parquet_column_close(&group->columns[i].column);
        free(group->columns[i].sentence);
        peer_rows_close(group->columns[i].asked);
    }
    parquet_tuples_close(group->tuples);
    parquet_kept_close(&group->kept);
    parquet_spill_release(group->spill);
    free(group);
}

/* Taken rows are remembered as long as they say which are to come. */
void
row_groups_remove(struct row_groups *cache, struct row_group *group)
{
    struct parquet_file *parquet = group->file->parquet;
    struct parquet_taken **taken = &parquet->taken[group->number];

    unlink_group(cache, group);
    parquet->groups[group->number] = NULL;
    atomic_store_explicit(&parquet->are_there[group->number], false, memory_order_relaxed);
    cache->bytes -= group->bytes;
    cache->ahead_bytes -= group->ahead_bytes;
    cache->group_count--;
    cache->tuples_count -= group->tuples != NULL;
    if (*taken != NULL && parquet_taken_is_over(*taken)) {
        parquet_taken_close(*taken);
        *taken = NULL;
    }
}

void
row_groups_forget(struct row_groups *cache, struct row_group *group)
{
    row_groups_remove(cache, group);
    row_groups_close_group(group);
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

struct row_group *
row_groups_find(struct row_groups *cache, struct source_file *file, uint32_t number)
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

void
row_groups_let_go(struct row_group *group)
{
    group->holds--;
    if (group->is_replaced && group->holds == 0)
        row_groups_close_group(group);
}

uint64_t
row_groups_rows(const struct row_group *group)
{
    return group->file->parquet->footer.groups[group->number].row_count;
}

struct parquet_member *
row_groups_members(struct row_group *group)
{
    const struct parquet_columns *wanted = group->file->parquet->columns;
    struct parquet_member *members = tnd_alloc((group->column_count + 1) * sizeof *members);

    for (uint32_t i = 0; i < group->column_count; i++)
        members[i] = (struct parquet_member){ .column = &group->columns[i].column,
                                              .dtype = wanted->columns[i].dtype };
    return members;
}

uint64_t
row_groups_tuple_bytes(const struct row_group *group)
{
    uint64_t bytes = group->spill != NULL ? 0 : group->tuples->bytes;

    for (uint32_t i = 0; i < group->column_count && group->spill == NULL; i++)
        bytes += group->columns[i].column.bytes;
    return bytes;
}

/* Words are shared by fewer where fewer tuples are left; of few tuples most bytes are words. */
void
row_groups_note_bytes(struct row_groups *cache, const struct row_group *group)
{
    if (group->kept.tuple_count > row_groups_rows(group) / FEW)
        cache->tuple_bytes = group->bytes / group->kept.tuple_count + 1;
}

/* Tuples in memory. */
static bool
has_kept(const struct row_group *group)
{
    return group->tuples != NULL && group->spill == NULL;
}

/* Another thread may be changing them: it counts then. */
struct parquet_kept *
row_groups_kept(struct row_group *group)
{
    return group == NULL || group->is_changing || !has_kept(group) ? NULL : &group->kept;
}

struct parquet_taken *
row_groups_taken(struct row_groups *cache, struct source_file *file, uint32_t number)
{
    struct parquet_taken **taken = &file->parquet->taken[number];

    if (*taken == NULL) {
        *taken = parquet_taken_open(file->parquet->footer.groups[number].row_count);
        (*taken)->period = cache->period;
    }
    return *taken;
}

static struct parquet_taken *
taken_of(struct row_groups *cache, const struct row_group *group)
{
    return row_groups_taken(cache, group->file, group->number);
}

/* The lock is given up meanwhile. Nobody else holds it. */
static void
shrink(struct row_groups *cache, struct row_group *group, bool only_dealt)
{
    struct parquet_member *members = row_groups_members(group);
    uint64_t before = group->bytes;
    struct parquet_taken *taken = taken_of(cache, group);
    struct parquet_kept chosen = parquet_kept_choose(&group->kept, taken, only_dealt);

    taken->lacks_others |= only_dealt;
    if (chosen.tuple_count == 0) {
        parquet_kept_close(&chosen);
        free(members);
        row_groups_forget(cache, group);
        return;
    }
    group->is_changing = true;
    group->holds++;
    pthread_mutex_unlock(&cache->lock);
    parquet_kept_shrink(&group->kept, &chosen, group->tuples, members, group->column_count);
    free(members);
    pthread_mutex_lock(&cache->lock);
    group->is_changing = false;
    group->holds--;
    parquet_kept_count_spare(&group->kept, taken_of(cache, group));
    group->bytes = row_groups_tuple_bytes(group);
    row_groups_note_bytes(cache, group);
    cache->bytes = cache->bytes - before + group->bytes;
    pthread_cond_broadcast(&cache->decoded);
}

bool
row_groups_lack_memory(const struct row_groups *cache)
{
    return cache->spills || row_groups_is_short(cache);
}

/* Nobody tells any more which of its rows are to come. */
static void
forget_taken(struct row_groups *cache, const struct row_group *group)
{
    struct parquet_taken **taken = &group->file->parquet->taken[group->number];

    if (*taken != NULL)
        cache->dealt_rows -= (*taken)->dealt_count;
    parquet_taken_close(*taken);
    *taken = NULL;
}

/* Once there is no room in files, rows of steps that are dealt are told. */
void
row_groups_spill(struct row_groups *cache, struct row_group *group)
{
    struct parquet_member *members = row_groups_members(group);
    struct parquet_spill *spill = NULL;
    uint64_t bytes = 0;
    int folder;

    if (!cache->spills || group->kept.rows != NULL) {
        free(members);
        return;
    }
    pthread_mutex_unlock(&cache->lock);
    if (services_cache_folder(group->file->services, &folder) == TUNDISH_OK)
        spill = parquet_spill_open(folder, group->tuples, members, group->column_count, &bytes);
    free(members);
    pthread_mutex_lock(&cache->lock);
    group->spill = spill;
    cache->spilled_bytes += bytes;
    if (spill != NULL)
        forget_taken(cache, group);
    if (spill == NULL || cache->spilled_bytes >= cache->spill_limit) {
        cache->spills = false;
        atomic_store_explicit(&cache->is_short, true, memory_order_relaxed);
    }
}

/* The first row group whose tuples are all spare, or else the one of which most are. */
static struct row_group *
find_spare(const struct row_groups *cache)
{
    struct row_group *found = NULL, *group = cache->oldest;

    for (int i = 0; i < SPARE_LOOKS && group != NULL; i++, group = group->newer) {
        const struct parquet_kept *kept = &group->kept;

        if (group->holds > 0 || !has_kept(group))
            continue;
        if (kept->spare == kept->tuple_count)
            return group;
        if (kept->spare > kept->tuple_count / SPARE &&
            (found == NULL || kept->spare > found->kept.spare))
            found = group;
    }
    return found;
}

/* The first one that lacks such rows already, or else the oldest. */
static struct row_group *
find_undealt(struct row_groups *cache)
{
    struct row_group *found = NULL, *group = cache->oldest;
    bool lacks_others = false;

    if (cache->dealt_rows == 0)
        return NULL;
    for (int i = 0; i < SPARE_LOOKS && group != NULL; i++, group = group->newer) {
        struct parquet_taken *taken;

        if (group->holds > 0 || !has_kept(group))
            continue;
        taken = taken_of(cache, group);
        if ((found == NULL || (taken->lacks_others && !lacks_others)) &&
            parquet_kept_count_others(&group->kept, taken) > group->kept.tuple_count / SPARE) {
            found = group;
            lacks_others = taken->lacks_others;
        }
        if (lacks_others)
            return found;
    }
    return found;
}

void
row_groups_make_room(struct row_groups *cache)
{
    struct row_group *group;

    while (cache->bytes > cache->limit && (group = find_spare(cache)) != NULL)
        shrink(cache, group, false);
    while (cache->bytes > cache->limit && (group = find_undealt(cache)) != NULL)
        shrink(cache, group, true);
    group = cache->oldest;
    while (group != NULL && cache->bytes > cache->limit) {
        struct row_group *newer = group->newer;

        if (group->holds == 0 && group->spill == NULL)
            row_groups_forget(cache, group);
        group = newer;
    }
}
