/* ask_ahead.c - see ask_ahead.h. */
#include "source/files/ask_ahead.h"

#include <stdlib.h>

#include "core/memory.h"
#include "source/files/file_remote.h"
#include "source/files/files_private.h"
#include "source/parquet/file.h"
#include "source/parquet/row_groups.h"
#include "source/peer/peer_ahead.h"
#include "source/scan/scan.h"

struct ask_ahead {
    struct source_files *files;
    struct peer_row *rows;
    size_t count;
    const struct source_file *last_file; /* at a URL */
    uint64_t last_region;
    const struct source_file *last_parquet; /* ... and the row group that was looked at last */
    struct parquet_row_group last_group;
    uint32_t last_number;
    bool has_no_room; /* for another row group */
    struct row_group_row *dealt;
    size_t row_count, dealt_count, turns; /* from one row group to another */
};

enum { REGION_BYTES = 64 << 10 };

/* Rows for each turn from one row group to another; rows of a step before it is known. */
enum { SCATTERED = 16, LOOKED_AT = 64 };

struct ask_ahead *
ask_ahead_begin(struct source_files *files)
{
    struct ask_ahead *asking;

    if (files_peers(files) == NULL && !files_has_urls(files) && !files_has_parquet(files))
        return NULL;
    asking = tnd_zalloc(1, sizeof *asking);
    asking->files = files;
    return asking;
}

/* Rows that lie beside the one before come with it. */
static void
expect_row(struct ask_ahead *list, struct source_file *file, uint64_t offset)
{
    uint64_t region = offset / REGION_BYTES;

    if (list->last_file == file && list->last_region == region)
        return;
    list->last_file = file;
    list->last_region = region;
    file_remote_expect(file, offset);
}

/* Neighbours are in one row group. */
static void
expect_group(struct ask_ahead *list, struct source_file *file, uint64_t row)
{
    struct row_groups *cache = files_row_groups(list->files);

    if (list->last_parquet == file && row - list->last_group.first_row < list->last_group.row_count)
        return;
    if (list->last_parquet != file)
        row_groups_see(cache, file);
    list->turns++;
    list->last_number = parquet_group_of(&file->parquet->footer, row, list->last_number);
    list->last_parquet = file;
    list->last_group = file->parquet->footer.groups[list->last_number];
    if (!list->has_no_room && file->peers == NULL &&
        !atomic_load_explicit(&file->parquet->are_there[list->last_number], memory_order_relaxed))
        list->has_no_room = !row_groups_expect(cache, file, list->last_number);
}

/* Rows that are not here and there need not be told. */
static bool
is_scattered(const struct ask_ahead *list)
{
    return list->turns > list->row_count / SCATTERED;
}

static void
expect_parquet_row(struct ask_ahead *list, struct source_file *file, uint64_t row)
{
    if (file->parquet == NULL)
        return;
    expect_group(list, file, row);
    list->row_count++;
    if ((list->row_count > LOOKED_AT && !is_scattered(list)) ||
        list->last_group.row_count > UINT32_MAX ||
        !row_groups_is_short(files_row_groups(list->files)))
        return;
    list->dealt = tnd_grow(list->dealt, list->dealt_count, sizeof *list->dealt);
    list->dealt[list->dealt_count++] =
        (struct row_group_row){ file, list->last_number,
                                (uint32_t)(row - list->last_group.first_row) };
}

/* The list becomes the cache's. */
static void
tell_parquet_rows(struct ask_ahead *list, uint64_t epoch, uint64_t step)
{
    const struct row_group_step dealt = { epoch, step, list->dealt, list->dealt_count };

    if (list->dealt_count == 0)
        return;
    if (is_scattered(list))
        row_groups_deal(files_row_groups(list->files), &dealt);
    else
        free(list->dealt);
}

void
ask_ahead_add(void *asking, const uint64_t *words, uint32_t extra_bytes)
{
    struct ask_ahead *list = asking;
    struct source_file *file = files_file(list->files, reference_file(words));

    /* Its references say no positions: row groups are asked for. */
    if (file != NULL && file->format.parquet != NULL) {
        expect_parquet_row(list, file, words[0]);
        return;
    }
    if (file != NULL && file_is_remote(file))
        expect_row(list, file, words[0]);
    if (file == NULL || file->peers == NULL)
        return;
    list->rows = tnd_grow(list->rows, list->count, sizeof *list->rows);
    list->rows[list->count++] = (struct peer_row){ .file = file,
                                                   .offset = words[0],
                                                   .bytes = reference_length(words) + extra_bytes };
}

/* A step without rows of other nodes asks for nothing. peer_ask sorts the rows and drops
 * doubles. */
void
ask_ahead_end(struct ask_ahead *asking, uint64_t epoch, uint64_t step)
{
    struct source_files *files = asking->files;

    if (asking->count > 0)
        peer_ahead_add(files_peer_ahead(files), epoch, step,
                       peer_ask(files_peers(files), asking->rows, asking->count));
    tell_parquet_rows(asking, epoch, step);
    free(asking->rows);
    free(asking);
}

void
ask_ahead_forget(struct source_files *files, uint64_t epoch, uint64_t step)
{
    if (files_peers(files) != NULL)
        peer_ahead_forget(files_peer_ahead(files), epoch, step);
    if (files_has_parquet(files))
        row_groups_end_step(files_row_groups(files), epoch, step);
}

uint64_t
ask_ahead_bytes(const struct source_files *files)
{
    return files_peers(files) == NULL ? 0 : peer_ahead_bytes(files_peer_ahead(files));
}

bool
ask_ahead_keeps_rows(const struct source_files *files)
{
    return files_has_parquet(files);
}

bool
ask_ahead_wants_rows(const struct source_files *files)
{
    return files_has_parquet(files) && row_groups_wants_steps(files_row_groups(files));
}
