/* rows.c - see rows.h.
 *
 * Rows are taken one row group after another, so that one at a time is held. Texts and lists are
 * copied to scratch then; lists are put side by side once all lengths are known. Words of a
 * dictionary are not copied, if the rows come from few row groups: the dictionary is held until the
 * task is done.
 */
#include "source/parquet/rows_private.h"

#include "core/must.h"
#include "source/files/fetch.h"
#include "source/parquet/bits.h"
#include "source/scan/scan.h"

enum {
    SCATTERED = 8, /* rows for each that is wanted */
    FEW_ROWS = 16,
    MANY_STRETCHES = 4
};

/* Which stretch each row belongs to: found by the last row's, or in a table by file and row
 * group. */
struct stretches {
    struct stretch *list;
    uint32_t count;
    uint32_t *table, table_size;
};

static uint32_t
find_stretch(struct stretches *stretches, struct source_file *file, uint32_t group)
{
    uint64_t key = ((uint64_t)file->number << 32 | group) * UINT64_C(0x9E3779B97F4A7C15);

    for (uint64_t at = key >> 32;; at++) {
        uint32_t *slot = &stretches->table[at & (stretches->table_size - 1)];

        if (*slot == 0) {
            stretches->list[stretches->count] = (struct stretch){ .file = file, .group = group };
            *slot = ++stretches->count;
        }
        if (stretches->list[*slot - 1].file == file && stretches->list[*slot - 1].group == group)
            return *slot - 1;
    }
}

static bool
is_straight(const struct stretch *stretch)
{
    for (uint32_t i = 1; i < stretch->count; i++)
        if (stretch->rows[i].row != stretch->rows[0].row + i ||
            stretch->rows[i].to != stretch->rows[0].to + i)
            return false;
    return true;
}

/* Nobody knows of a few rows, unless other row groups have a few of the same task, too. */
static bool
is_scattered(const struct stretch *stretch, uint32_t stretch_count)
{
    uint64_t least = UINT64_MAX, most = 0;

    if (stretch->count < FEW_ROWS)
        return stretch_count >= MANY_STRETCHES;
    for (uint32_t i = 0; i < stretch->count; i++) {
        least = stretch->rows[i].row < least ? stretch->rows[i].row : least;
        most = stretch->rows[i].row > most ? stretch->rows[i].row : most;
    }
    return (most - least) / SCATTERED >= stretch->count;
}

/* Sort the rows by row group, in the order in which the row groups come first. */
static struct stretches
sort_rows(const struct source_read *read)
{
    struct scratch *scratch = read->output->scratch;
    size_t count = (size_t)read->count;
    struct stretches stretches = { .table_size = 16 };
    uint32_t *which = scratch_array(scratch, count + 1, sizeof *which);
    struct parquet_row *rows = scratch_array(scratch, count + 1, sizeof *rows);
    uint32_t last = UINT32_MAX, hint = 0;

    while (stretches.table_size < 2 * count)
        stretches.table_size *= 2;
    stretches.table = scratch_array(scratch, stretches.table_size, sizeof *stretches.table);
    memset(stretches.table, 0, stretches.table_size * sizeof *stretches.table);
    stretches.list = scratch_array(scratch, count + 1, sizeof *stretches.list);
    for (size_t i = 0; i < count; i++) {
        const uint64_t *words = fetch_words(read, (int64_t)i);
        struct source_file *file = files_file(read->files, reference_file(words));

        must(file != NULL && file->parquet != NULL && words[0] < file->parquet->footer.row_count);
        hint = parquet_group_of(&file->parquet->footer, words[0], hint);
        if (last == UINT32_MAX || stretches.list[last].file != file ||
            stretches.list[last].group != hint)
            last = find_stretch(&stretches, file, hint);
        which[i] = last;
        stretches.list[last].count++;
    }
    for (uint32_t k = 0; k < stretches.count; k++) {
        stretches.list[k].named = stretches.list[k].rows = rows;
        rows += stretches.list[k].count;
        stretches.list[k].count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        struct stretch *stretch = &stretches.list[which[i]];
        const struct parquet_footer *footer = &stretch->file->parquet->footer;

        stretch->rows[stretch->count++] = (struct parquet_row){
            fetch_words(read, (int64_t)i)[0] - footer->groups[stretch->group].first_row, (int64_t)i
        };
    }
    for (uint32_t k = 0; k < stretches.count; k++) {
        stretches.list[k].is_straight = is_straight(&stretches.list[k]);
        stretches.list[k].is_scattered = is_scattered(&stretches.list[k], stretches.count);
    }
    return stretches;
}

/* Rows that cannot be had are zeros, empty texts and empty lists, which later stages may read
 * before the rows are dropped. */
static void
reject_rows(const struct taking *taking, const struct stretch *stretch)
{
    for (uint32_t k = 0; k < stretch->count; k++) {
        int64_t to = stretch->rows[k].to;

        frame_reject(taking->read->output, to, "%s", tnd_error_text());
        for (uint32_t i = 0; i < taking->columns->count; i++) {
            const struct parquet_wanted *wanted = &taking->columns->columns[i];
            size_t width =
                wanted->is_list ? sizeof(struct item) : parquet_output_bytes(wanted->dtype);

            memset((uint8_t *)taking->values[i] + (size_t)to * width, 0, width);
        }
    }
}

/* The stretch as its rows lie in a row group that has lost others. */
static struct stretch
find_rows(const struct taking *taking, const struct stretch *stretch, const struct row_group *group)
{
    struct stretch found = *stretch;

    found.rows = scratch_array(taking->scratch, stretch->count, sizeof *found.rows);
    for (uint32_t i = 0; i < stretch->count; i++)
        found.rows[i] = (struct parquet_row){ row_group_place(group, stretch->rows[i].row),
                                              stretch->rows[i].to };
    return found;
}

static tundish_status
take_stretch(const struct taking *taking, const struct stretch *stretch)
{
    struct row_groups *cache = files_row_groups(taking->read->files);
    const struct row_group_wanted wanted = { .file = stretch->file,
                                             .number = stretch->group,
                                             .is_scattered = stretch->is_scattered,
                                             .rows = stretch->rows,
                                             .count = stretch->count,
                                             .words = taking->read->node->words };
    struct stretch found;
    const struct row_group *group = NULL;
    bool is_bad = false;
    tundish_status status = row_groups_hold(cache, &wanted, &group, &is_bad);

    if (status != TUNDISH_OK && !is_bad)
        return status;
    if (status != TUNDISH_OK) {
        reject_rows(taking, stretch);
        return TUNDISH_OK;
    }
    if (group->kept.rows != NULL) {
        found = find_rows(taking, stretch, group);
        stretch = &found;
    }
    parquet_rows_take(taking, stretch, group);
    row_groups_release(cache, group);
    return TUNDISH_OK;
}

/* Put the lists of all rows side by side. */
static void
join_lists(const struct taking *taking, uint32_t index, struct column *ret_column)
{
    const struct item *items = taking->values[index];
    int64_t count = taking->read->count;
    size_t width = parquet_output_bytes(taking->columns->columns[index].dtype);
    int64_t *splits = scratch_array(taking->scratch, (size_t)count + 1, sizeof *splits);
    uint8_t *to;

    splits[0] = 0;
    for (int64_t i = 0; i < count; i++)
        splits[i + 1] = splits[i] + (int64_t)items[i].count;
    to = scratch_array(taking->scratch, (size_t)splits[count] + LIST_SLACK, width);
    column_set_scalars(ret_column, count, to);
    ret_column->value_count = splits[count];
    ret_column->level_count = 1;
    ret_column->levels[0] = (struct level){ .uniform = -1, .splits = splits };
    for (int64_t i = 0; i < count; i++)
        to = parquet_list_copy(items[i].values, items[i].count, width, to);
}

tundish_status
parquet_rows_read(const struct source_read *read)
{
    struct frame *output = read->output;
    struct taking taking = { .read = read, .scratch = output->scratch };
    struct stretches stretches = sort_rows(read);
    size_t count = (size_t)read->count;
    tundish_status status = TUNDISH_OK;

    if (stretches.count > 0)
        taking.columns = stretches.list[0].file->parquet->columns;
    taking.values = scratch_array(taking.scratch, output->column_count, sizeof *taking.values);
    for (uint32_t i = 0; i < output->column_count; i++) {
        const struct column_spec *spec = &output->schema->columns[i];

        if (spec->rank > 0)
            taking.values[i] = scratch_array(taking.scratch, count + 1, sizeof(struct item));
        else if (spec->dtype == TUNDISH_STRING)
            taking.values[i] = scratch_array(taking.scratch, count + 1, sizeof(struct byte_view));
        else
            taking.values[i] = frame_values(output, i, count * parquet_output_bytes(spec->dtype));
    }
    if (stretches.count <= WORDS_DICTIONARIES) {
        taking.notes = scratch_array(taking.scratch, output->column_count, sizeof *taking.notes);
        memset(taking.notes, 0, output->column_count * sizeof *taking.notes);
    }
    taking.stretch_count = stretches.count;
    for (; taking.stretch < stretches.count && status == TUNDISH_OK; taking.stretch++)
        status = take_stretch(&taking, &stretches.list[taking.stretch]);
    for (uint32_t i = 0; i < output->column_count && status == TUNDISH_OK; i++)
        if (output->schema->columns[i].rank > 0)
            join_lists(&taking, i, &output->columns[i]);
        else
            column_set_scalars(&output->columns[i], read->count, taking.values[i]);
    for (uint32_t i = 0; taking.notes != NULL && i < output->column_count; i++)
        if (taking.notes[i].numbers != NULL)
            words_tell(taking.scratch, &taking.notes[i]);
    count_up(&files_services(read->files)->counters.rows_read, (uint64_t)read->count);
    return status;
}
