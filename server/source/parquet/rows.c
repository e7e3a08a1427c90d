/* rows.c - see rows.h.
 *
 * Rows are taken one row group after another, so that one at a time is held. Texts and lists are
 * copied to scratch then; lists are put side by side once all lengths are known. Words of a
 * dictionary are not copied, if the rows come from few row groups: the dictionary is held until the
 * task is done.
 */
#include "source/parquet/rows.h"

#include "core/must.h"
#include "source/files/fetch.h"
#include "source/files/files_private.h"
#include "source/parquet/bits.h"
#include "source/parquet/row_groups.h"
#include "source/scan/scan.h"

/* The wanted rows of a row group. */
struct stretch {
    struct source_file *file;
    uint32_t group;
    uint32_t count;
    struct parquet_row *rows;
    const struct parquet_row *named; /* the same by their numbers in the row group; rows of one that
                                        has lost others lie elsewhere */
    bool is_straight;                /* they are neighbours, and go to neighbours */
    bool is_scattered;               /* they are far from each other */
};

/* A column of a row group. */
struct part {
    const struct parquet_column *column;
    const struct parquet_tuples *tuples; /* NULL: its values are in the column */
    const struct parquet_field *field;
};

/* A list on its way. */
struct item {
    const uint8_t *values;
    uint64_t count;
};

enum {
    HELD_BYTES = 4 << 20, /* a dictionary that is larger is not held for a task */
    SCATTERED = 8,        /* rows for each that is wanted */
    FEW_ROWS = 16,
    MANY_STRETCHES = 4
};

struct taking {
    const struct source_read *read;
    const struct parquet_columns *columns;
    void **values;            /* of each column, for every row; lists: struct item */
    struct words_note *notes; /* of each column whose texts are words; NULL: there are too many row
                                 groups */
    uint32_t stretch;         /* that is being taken */
    uint32_t stretch_count;
    struct scratch *scratch;
};

static size_t
output_bytes(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING ? sizeof(struct byte_view) : tnd_dtype_bytes(dtype);
}

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

/* Values of one width; inlined for each, so that a copy is a move. */
static inline __attribute__((always_inline)) void
take_width(const struct stretch *stretch, const uint8_t *from, uint8_t *to, size_t width)
{
    for (uint32_t i = 0; i < stretch->count; i++)
        memcpy(to + (size_t)stretch->rows[i].to * width, from + stretch->rows[i].row * width,
               width);
}

static void
take_numbers(const struct stretch *stretch, const struct part *part, uint8_t *to, size_t width)
{
    const uint8_t *from = part->column->values;

    if (part->tuples != NULL)
        parquet_tuples_take(part->tuples, part->field, stretch->rows, stretch->count, width, to);
    else if (stretch->is_straight)
        memcpy(to + (size_t)stretch->rows[0].to * width, from + stretch->rows[0].row * width,
               stretch->count * width);
    else if (width == 1)
        take_width(stretch, from, to, 1);
    else if (width == 2)
        take_width(stretch, from, to, 2);
    else if (width == 4)
        take_width(stretch, from, to, 4);
    else
        take_width(stretch, from, to, 8);
}

/* A text of a part, in *ret_base. */
static struct parquet_text
text_of(const struct part *part, uint64_t row, const uint8_t **ret_base)
{
    const struct parquet_column *column = part->column;
    struct parquet_text text;
    uint64_t value;

    if (part->tuples == NULL)
        return parquet_text_of(column, row, ret_base);
    value = parquet_tuple_value(part->tuples, part->field, row);
    if (column->words != NULL) {
        *ret_base = column->words->texts;
        return column->words->list[value];
    }
    *ret_base = column->texts;
    memcpy(&text, &value, sizeof text);
    return text;
}

/* Short texts are copied as 16 bytes, which both sides have. */
static uint8_t *
copy_text(const uint8_t *from, size_t bytes, uint8_t *to, struct byte_view *ret_view)
{
    if (bytes <= 16)
        memcpy(to, from, 16);
    else
        memcpy(to, from, bytes);
    *ret_view = (struct byte_view){ to, bytes };
    return to + bytes;
}

/* Texts that follow each other in the column. */
static void
copy_texts(const struct taking *taking, const struct parquet_column *column, uint64_t begin,
           uint64_t count, struct byte_view *to)
{
    const uint8_t *base;
    uint64_t bytes = 0;
    uint8_t *copy;

    for (uint64_t i = 0; i < count; i++)
        bytes += parquet_text_of(column, begin + i, &base).bytes;
    copy = scratch_alloc(taking->scratch, bytes + PARQUET_SLACK);
    for (uint64_t i = 0; i < count; i++) {
        struct parquet_text text = parquet_text_of(column, begin + i, &base);

        copy = copy_text(base + text.offset, text.bytes, copy, &to[i]);
    }
}

/* The numbers of some words. */
static void
take_word_numbers(const struct part *part, const struct parquet_row *rows, uint32_t count,
                  uint32_t *to)
{
    if (part->tuples != NULL)
        parquet_tuples_take(part->tuples, part->field, rows, count, sizeof *to, to);
    else
        for (uint32_t i = 0; i < count; i++)
            to[rows[i].to] = part->column->numbers[rows[i].row];
}

/* The numbers of words, and views of them where somebody needs these. The dictionary stays until
 * the task is done. */
static void
take_words(const struct taking *taking, const struct stretch *stretch, const struct part *part,
           struct words_note *note, struct byte_view *to)
{
    struct parquet_words *words = part->column->words;
    uint32_t *numbers = (uint32_t *)(uintptr_t)note->numbers, high = taking->stretch << WORDS_SHIFT;

    if (note->dictionaries[taking->stretch] == NULL) {
        parquet_words_hold(words);
        scratch_keep(taking->scratch, parquet_words_release, words);
        note->dictionaries[taking->stretch] = &words->words;
    }
    for (uint32_t begin = 0; begin < stretch->count; begin += WORDS_BLOCK) {
        const struct parquet_row *rows = &stretch->rows[begin];
        uint32_t count =
            stretch->count - begin < WORDS_BLOCK ? stretch->count - begin : WORDS_BLOCK;

        take_word_numbers(part, rows, count, numbers);
        if (note->lacks_texts) {
            for (uint32_t i = 0; i < count; i++)
                numbers[rows[i].to] |= high;
            continue;
        }
        /* First all numbers, then all words: misses of the cache are waited for together. */
        for (uint32_t i = 0; i < count; i++)
            __builtin_prefetch(&words->list[numbers[rows[i].to]]);
        for (uint32_t i = 0; i < count; i++) {
            int64_t at = rows[i].to;
            struct parquet_text text = words->list[numbers[at]];

            to[at] = (struct byte_view){ words->texts + text.offset, text.bytes };
            numbers[at] |= high;
        }
    }
}

static void
take_texts(const struct taking *taking, const struct stretch *stretch, const struct part *part,
           struct byte_view *to)
{
    const uint8_t *base;
    uint64_t bytes = 0;
    uint8_t *copy;

    for (uint32_t i = 0; i < stretch->count; i++)
        bytes += text_of(part, stretch->rows[i].row, &base).bytes;
    copy = scratch_alloc(taking->scratch, bytes + PARQUET_SLACK);
    for (uint32_t i = 0; i < stretch->count; i++) {
        struct parquet_text text = text_of(part, stretch->rows[i].row, &base);

        copy = copy_text(base + text.offset, text.bytes, copy, &to[stretch->rows[i].to]);
    }
}

/* The lists of a stretch, copied side by side. */
static void
take_lists(const struct taking *taking, const struct stretch *stretch,
           const struct parquet_column *column, tundish_dtype dtype, struct item *to)
{
    size_t width = output_bytes(dtype);
    uint64_t count = 0;
    uint8_t *copy;

    for (uint32_t i = 0; i < stretch->count; i++) {
        uint64_t row = stretch->rows[i].row;

        to[stretch->rows[i].to].count = column->splits[row + 1] - column->splits[row];
        count += to[stretch->rows[i].to].count;
    }
    copy = scratch_array(taking->scratch, count, width);
    for (uint32_t i = 0; i < stretch->count; i++) {
        struct item *item = &to[stretch->rows[i].to];
        uint64_t begin = column->splits[stretch->rows[i].row];

        item->values = copy;
        if (dtype == TUNDISH_STRING)
            copy_texts(taking, column, begin, item->count, (struct byte_view *)(void *)copy);
        else if (item->count > 0)
            memcpy(copy, (const uint8_t *)column->values + begin * width, item->count * width);
        copy += item->count * width;
    }
}

static void
reject_nulls(const struct taking *taking, const struct stretch *stretch,
             const struct parquet_column *column, const char *name)
{
    for (uint32_t i = 0; i < stretch->count && column->nulls != NULL; i++) {
        uint64_t row = stretch->rows[i].row;
        uint64_t begin = column->splits == NULL ? row : column->splits[row];
        uint64_t end = column->splits == NULL ? row + 1 : column->splits[row + 1];

        while (begin < end && column->nulls[begin] == 0)
            begin++;
        if (begin < end)
            frame_reject(taking->read->output, stretch->rows[i].to,
                         "%s, row group %u, row %llu of it: column '%s' is null and has no "
                         "default_value",
                         stretch->file->name, stretch->group,
                         (unsigned long long)stretch->named[i].row, name);
    }
}

/* The note of a column, begun when a word first comes: of other texts it has no number. */
static struct words_note *
note_of(const struct taking *taking, uint32_t index)
{
    struct words_note *note = &taking->notes[index];
    size_t count = (size_t)taking->read->count;

    if (note->numbers == NULL) {
        uint32_t *numbers = scratch_array(taking->scratch, count, sizeof *numbers);

        memset(numbers, 0xFF, count * sizeof *numbers);
        *note = (struct words_note){ .texts = taking->values[index],
                                     .count = taking->read->count,
                                     .lacks_texts = plan_by_words(taking->read->node, index),
                                     .numbers = numbers,
                                     .dictionary_count = taking->stretch_count };
        note->dictionaries =
            scratch_array(taking->scratch, note->dictionary_count, sizeof *note->dictionaries);
        memset(note->dictionaries, 0, note->dictionary_count * sizeof *note->dictionaries);
    }
    return note;
}

/* Rows here and there are misses of the cache, one for each column: those of a column are on their
 * way while the column before it is taken. */
static void
expect_column(const struct stretch *stretch, const struct parquet_column *column,
              tundish_dtype dtype)
{
    const uint8_t *from = column->words != NULL ? (const uint8_t *)column->numbers : column->values;
    size_t width = column->words != NULL ? sizeof *column->numbers : parquet_value_bytes(dtype);

    if (stretch->is_straight || column->splits != NULL)
        return;
    for (uint32_t i = 0; i < stretch->count; i++)
        __builtin_prefetch(from + stretch->rows[i].row * width);
}

static struct part
part_of(const struct row_group *group, uint32_t index)
{
    struct part part = { .column = &group->columns[index].column };

    if (group->tuples != NULL && group->tuples->fields[index].bytes > 0) {
        part.tuples = group->tuples;
        part.field = &group->tuples->fields[index];
    }
    return part;
}

static void
take_column(const struct taking *taking, const struct stretch *stretch, const struct part *part,
            uint32_t index)
{
    const struct parquet_wanted *wanted = &taking->columns->columns[index];
    const struct parquet_column *column = part->column;
    void *to = taking->values[index];

    if (wanted->is_list)
        take_lists(taking, stretch, column, wanted->dtype, to);
    else if (taking->notes != NULL && column->words != NULL && column->words->bytes <= HELD_BYTES)
        take_words(taking, stretch, part, note_of(taking, index), to);
    else if (wanted->dtype == TUNDISH_STRING)
        take_texts(taking, stretch, part, to);
    else
        take_numbers(stretch, part, to, output_bytes(wanted->dtype));
    reject_nulls(taking, stretch, column, wanted->name);
}

static void
take_columns(const struct taking *taking, const struct stretch *stretch,
             const struct row_group *group)
{
    uint32_t count = taking->columns->count;

    if (group->tuples != NULL)
        parquet_tuples_expect(group->tuples, stretch->rows, stretch->count);
    for (uint32_t i = 0; i < count; i++) {
        const struct part part = part_of(group, i);

        if (i + 1 < count && group->tuples == NULL)
            expect_column(stretch, &group->columns[i + 1].column,
                          taking->columns->columns[i + 1].dtype);
        take_column(taking, stretch, &part, i);
    }
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
            size_t width = wanted->is_list ? sizeof(struct item) : output_bytes(wanted->dtype);

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
                                             .count = stretch->count };
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
    take_columns(taking, stretch, group);
    row_groups_release(cache, group);
    return TUNDISH_OK;
}

/* Put the lists of all rows side by side. */
static void
join_lists(const struct taking *taking, uint32_t index, struct column *ret_column)
{
    const struct item *items = taking->values[index];
    int64_t count = taking->read->count;
    size_t width = output_bytes(taking->columns->columns[index].dtype);
    int64_t *splits = scratch_array(taking->scratch, (size_t)count + 1, sizeof *splits);
    uint8_t *to;

    splits[0] = 0;
    for (int64_t i = 0; i < count; i++)
        splits[i + 1] = splits[i] + (int64_t)items[i].count;
    to = scratch_array(taking->scratch, (size_t)splits[count] + 1, width);
    column_set_scalars(ret_column, count, to);
    ret_column->value_count = splits[count];
    ret_column->level_count = 1;
    ret_column->levels[0] = (struct level){ .uniform = -1, .splits = splits };
    for (int64_t i = 0; i < count; i++)
        if (items[i].count > 0) {
            memcpy(to, items[i].values, items[i].count * width);
            to += items[i].count * width;
        }
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
            taking.values[i] = frame_values(output, i, count * output_bytes(spec->dtype));
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
