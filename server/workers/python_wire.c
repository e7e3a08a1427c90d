/* python_wire.c - see python_wire.h. */
#include "workers/python_wire.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"
#include "core/printable.h"

/* Lists that hold nothing take memory and no bytes of an answer. This many are allowed. */
enum { ALIGNMENT = 64, SENTENCE_MAX = 900, EMPTY_LISTS_MAX = 1 << 20 };
enum { DESCRIBED_MAX = 1 << 20, WORD_MAX = 1 << 10 };

/* No column of an answer, and no message, is larger. */
static const uint64_t BYTES_MAX = UINT64_C(1) << 34;

/* As worker.py has it. */
struct head {
    uint64_t element_count, column_count;
    uint64_t ordinals, barred;          /* of a request; 0: there are none */
    uint64_t sentence_count, sentences; /* of an answer: element, offset and bytes of each */
    uint64_t one_by_one;
    int64_t seed;
};

struct record {
    uint64_t value_count;
    uint64_t values; /* of strings: value_count + 1 offsets into the text */
    uint64_t text, text_bytes;
    uint64_t indices, dense_shape; /* SPARSE; 0: none */
    uint64_t level_count, unused;
    int64_t uniform[RANK_MAX]; /* -1: see splits */
    uint64_t splits[RANK_MAX];
};

_Static_assert(sizeof(struct head) == ALIGNMENT && sizeof(struct record) == 192,
               "worker.py reads them");

static uint64_t
aligned(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

/* Where the message ends so far. */
struct writing {
    uint8_t *to; /* NULL: only measured */
    uint64_t used;
};

/* Room for `bytes`; NULL while it is only measured. */
static void *
take_room(struct writing *writing, uint64_t bytes, uint64_t *ret_offset)
{
    *ret_offset = writing->used;
    writing->used += aligned(bytes);
    return writing->to != NULL ? writing->to + *ret_offset : NULL;
}

static void
write_bytes(struct writing *writing, const void *from, uint64_t bytes, uint64_t *ret_offset)
{
    void *to = take_room(writing, bytes, ret_offset);

    if (to != NULL && bytes > 0)
        memcpy(to, from, bytes);
}

static void
write_strings(struct writing *writing, const struct column *column, struct record *record)
{
    const struct byte_view *views = column->values;
    uint64_t *offsets =
        take_room(writing, ((uint64_t)column->value_count + 1) * sizeof *offsets, &record->values);
    uint8_t *text;

    for (int64_t i = 0; i < column->value_count; i++) {
        if (offsets != NULL)
            offsets[i] = record->text_bytes;
        record->text_bytes += views[i].size;
    }
    if (offsets != NULL)
        offsets[column->value_count] = record->text_bytes;
    text = take_room(writing, record->text_bytes, &record->text);
    for (int64_t i = 0; text != NULL && i < column->value_count; i++)
        if (views[i].size > 0) {
            memcpy(text, views[i].data, views[i].size);
            text += views[i].size;
        }
}

static void
write_column(struct writing *writing, const struct column *column, tundish_dtype dtype,
             struct record *record)
{
    *record = (struct record){ .value_count = (uint64_t)column->value_count,
                               .level_count = column->level_count };
    for (uint32_t k = 0; k < column->level_count; k++) {
        uint64_t lists = (uint64_t)column_list_count(column, k);

        record->uniform[k] = column->levels[k].uniform;
        if (column->levels[k].uniform < 0)
            write_bytes(writing, column->levels[k].splits, (lists + 1) * sizeof(int64_t),
                        &record->splits[k]);
    }
    if (column->indices != NULL)
        write_bytes(writing, column->indices,
                    record->value_count * column->level_count * sizeof(int64_t), &record->indices);
    if (column->dense_shape != NULL)
        write_bytes(writing, column->dense_shape,
                    (uint64_t)column->count * column->level_count * sizeof(int64_t),
                    &record->dense_shape);
    if (dtype == TUNDISH_STRING)
        write_strings(writing, column, record);
    else
        write_bytes(writing, column->values, record->value_count * tnd_dtype_bytes(dtype),
                    &record->values);
}

size_t
python_wire_write(const struct python_request *request, uint8_t *to)
{
    const struct frame *input = request->input;
    uint64_t count = (uint64_t)input->count;
    struct head head = { .element_count = count,
                         .column_count = request->column_count,
                         .one_by_one = request->one_by_one,
                         .seed = request->seed };
    struct writing writing = { to, sizeof head };
    uint64_t records;

    (void)take_room(&writing, request->column_count * sizeof(struct record), &records);
    if (request->ordinals != NULL)
        write_bytes(&writing, request->ordinals, count * sizeof *request->ordinals, &head.ordinals);
    if (request->barred != NULL)
        write_bytes(&writing, request->barred, count, &head.barred);
    for (uint32_t i = 0; i < request->column_count; i++) {
        uint32_t column = request->columns[i];
        struct record record;

        write_column(&writing, &input->columns[column], input->schema->columns[column].dtype,
                     &record);
        if (to != NULL)
            memcpy(to + records + i * sizeof record, &record, sizeof record);
    }
    if (to != NULL)
        memcpy(to, &head, sizeof head);
    return writing.used;
}

struct reading {
    const uint8_t *from;
    uint64_t bytes;
    struct frame *output;
};

static tundish_status
corrupt(const struct column_spec *spec, const char *reason)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "column '%s' of the answer %s", spec->name, reason);
}

/* The bytes at an offset of the message, or NULL: they are not all in it. */
static const uint8_t *
bytes_at(const struct reading *reading, uint64_t offset, uint64_t count, uint64_t each)
{
    uint64_t bytes;

    if (__builtin_mul_overflow(count, each, &bytes) || offset > reading->bytes ||
        bytes > reading->bytes - offset)
        return NULL;
    return reading->from + offset;
}

/* The splits of a level, copied and checked: from 0, never falling. */
static const int64_t *
read_splits(const struct reading *reading, uint64_t offset, uint64_t lists)
{
    const uint8_t *from = bytes_at(reading, offset, lists + 1, sizeof(int64_t));
    int64_t *splits;

    if (from == NULL)
        return NULL;
    splits = scratch_array(reading->output->scratch, lists + 1, sizeof *splits);
    memcpy(splits, from, (lists + 1) * sizeof *splits);
    if (splits[0] != 0)
        return NULL;
    for (uint64_t i = 0; i < lists; i++)
        if (splits[i + 1] < splits[i] || (uint64_t)splits[i + 1] > BYTES_MAX)
            return NULL;
    return splits;
}

/* Dense: the lists of one dimension of one element are equally long. */
static bool
is_even(const struct column *column, uint32_t level)
{
    const struct level *last = &column->levels[level];

    if (last->uniform >= 0)
        return true;
    for (int64_t i = 0; i < column->count; i++) {
        int64_t begin = i, end = i + 1;

        for (uint32_t k = 0; k < level; k++) {
            begin = level_begin(&column->levels[k], begin);
            end = level_begin(&column->levels[k], end);
        }
        for (int64_t list = begin + 1; list < end; list++)
            if (level_length(last, list) != level_length(last, begin))
                return false;
    }
    return true;
}

static tundish_status
read_levels(const struct reading *reading, const struct record *record,
            const struct column_spec *spec, struct column *column)
{
    uint64_t lists = (uint64_t)reading->output->count, most = lists;

    if (record->level_count != (uint64_t)spec->rank)
        return corrupt(spec, "has another number of dimensions");
    column->level_count = (uint32_t)spec->rank;
    for (uint32_t k = 0; k < column->level_count; k++) {
        struct level *level = &column->levels[k];
        uint64_t next;

        *level = (struct level){ .uniform = record->uniform[k] };
        if (spec->shape[k] >= 0 && level->uniform != spec->shape[k])
            return corrupt(spec, "has another size");
        if (level->uniform < 0) {
            level->uniform = -1;
            level->splits = read_splits(reading, record->splits[k], lists);
            if (level->splits == NULL || !is_even(column, k))
                return corrupt(spec, "has splits that are none");
            next = (uint64_t)level->splits[lists];
        } else if (__builtin_mul_overflow(lists, (uint64_t)level->uniform, &next)) {
            return corrupt(spec, "is too large");
        }
        if (next > BYTES_MAX)
            return corrupt(spec, "is too large");
        if (next > most)
            most = next;
        lists = next;
    }
    if (most > EMPTY_LISTS_MAX && most > record->value_count)
        return corrupt(spec, "has too many empty lists");
    if (record->value_count != lists)
        return corrupt(spec, "has another number of values than its shape says");
    column->value_count = (int64_t)lists;
    return TUNDISH_OK;
}

static tundish_status
read_strings(const struct reading *reading, const struct record *record,
             const struct column_spec *spec, struct column *column)
{
    uint64_t count = record->value_count;
    const int64_t *offsets = read_splits(reading, record->values, count);
    const uint8_t *text = bytes_at(reading, record->text, record->text_bytes, 1);
    struct byte_view *views;
    uint8_t *own;

    if (offsets == NULL || text == NULL || (uint64_t)offsets[count] != record->text_bytes)
        return corrupt(spec, "has strings that are none");
    own = scratch_alloc(reading->output->scratch, record->text_bytes);
    if (record->text_bytes > 0)
        memcpy(own, text, record->text_bytes);
    views = scratch_array(reading->output->scratch, count + 1, sizeof *views);
    for (uint64_t i = 0; i < count; i++)
        views[i] = (struct byte_view){ own + offsets[i], (uint64_t)(offsets[i + 1] - offsets[i]) };
    column->values = views;
    return TUNDISH_OK;
}

static tundish_status
read_numbers(const struct reading *reading, const struct record *record, uint32_t index,
             struct column *column)
{
    const struct column_spec *spec = &reading->output->schema->columns[index];
    uint64_t each = tnd_dtype_bytes(spec->dtype);
    const uint8_t *from = bytes_at(reading, record->values, record->value_count, each);
    uint8_t *values;

    if (from == NULL)
        return corrupt(spec, "does not end where the answer does");
    values = frame_values(reading->output, index, record->value_count * each);
    if (record->value_count > 0)
        memcpy(values, from, record->value_count * each);
    for (uint64_t i = 0; spec->dtype == TUNDISH_BOOL && i < record->value_count; i++)
        values[i] = values[i] != 0;
    column->values = values;
    return TUNDISH_OK;
}

static tundish_status
read_column(const struct reading *reading, const struct record *record, uint32_t index)
{
    const struct column_spec *spec = &reading->output->schema->columns[index];
    struct column *column = &reading->output->columns[index];
    tundish_status status;

    column_clear(column);
    column->count = reading->output->count;
    status = read_levels(reading, record, spec, column);
    if (status != TUNDISH_OK)
        return status;
    return spec->dtype == TUNDISH_STRING ? read_strings(reading, record, spec, column)
                                         : read_numbers(reading, record, index, column);
}

/* The sentences about elements that could not be made. */
static tundish_status
read_sentences(const struct reading *reading, const struct head *head)
{
    const uint8_t *list = bytes_at(reading, head->sentences, head->sentence_count, 24);

    if (list == NULL || head->sentence_count > head->element_count)
        return tnd_fail(TUNDISH_E_CORRUPT, "the answer rejects more than there is");
    for (uint64_t i = 0; i < head->sentence_count; i++) {
        uint64_t element = load_u64(list + 24 * i), at = load_u64(list + 24 * i + 8);
        uint64_t bytes = load_u64(list + 24 * i + 16);
        const uint8_t *from = bytes_at(reading, at, bytes, 1);
        char sentence[SENTENCE_MAX + 1], text[SENTENCE_MAX + 1];

        if (from == NULL || element >= head->element_count)
            return tnd_fail(TUNDISH_E_CORRUPT, "the answer rejects what there is not");
        if (bytes > SENTENCE_MAX)
            bytes = SENTENCE_MAX;
        memcpy(sentence, from, bytes);
        sentence[bytes] = '\0';
        (void)tnd_printable(sentence, text, sizeof text);
        frame_reject(reading->output, (int64_t)element, "%s", text);
    }
    return TUNDISH_OK;
}

tundish_status
python_wire_read(const uint8_t *answer, size_t bytes, const uint32_t *columns,
                 uint32_t column_count, struct frame *output)
{
    struct reading reading = { answer, bytes, output };
    const uint8_t *records =
        bytes_at(&reading, sizeof(struct head), column_count, sizeof(struct record));
    struct head head;
    tundish_status status;

    if (records == NULL)
        return tnd_fail(TUNDISH_E_CORRUPT, "the answer is cut off");
    memcpy(&head, answer, sizeof head);
    if (head.element_count != (uint64_t)output->count || head.column_count != column_count)
        return tnd_fail(TUNDISH_E_CORRUPT, "the answer is to another question");
    status = read_sentences(&reading, &head);
    for (uint32_t i = 0; i < column_count && status == TUNDISH_OK; i++) {
        struct record record;

        memcpy(&record, records + i * sizeof record, sizeof record);
        status = read_column(&reading, &record, columns[i]);
    }
    return status;
}

/* A column as it is described: its name and its dtype follow all of these. */
struct description {
    uint64_t name_bytes, dtype_bytes, rank;
    int64_t shape[RANK_MAX];
};

/* The rest of what is described. */
struct describing {
    const uint8_t *at, *end;
};

static char *
take_word(struct describing *describing, uint64_t bytes)
{
    char *word;

    if (bytes == 0 || bytes > WORD_MAX || bytes > (uint64_t)(describing->end - describing->at))
        return NULL;
    for (uint64_t i = 0; i < bytes; i++)
        if (describing->at[i] < ' ' || describing->at[i] == 0x7F)
            return NULL;
    word = tnd_strndup((const char *)describing->at, bytes);
    describing->at += bytes;
    return word;
}

static bool
take_column(struct describing *describing, const struct description *description,
            struct schema *schema)
{
    char *name = take_word(describing, description->name_bytes);
    char *dtype = name != NULL ? take_word(describing, description->dtype_bytes) : NULL;
    bool is_one = dtype != NULL && tnd_dtype_by_name(dtype) != 0 && description->rank <= RANK_MAX &&
                  schema_find(schema, name) < 0;

    for (uint64_t k = 0; is_one && k < description->rank; k++)
        is_one = description->shape[k] >= -1 && description->shape[k] <= INT32_MAX;
    if (is_one) {
        struct column_spec *column = schema_add(schema, name, tnd_dtype_by_name(dtype));

        column->rank = (int)description->rank;
        memcpy(column->shape, description->shape, sizeof column->shape);
    }
    free(dtype);
    free(name);
    return is_one;
}

tundish_status
python_wire_read_columns(const uint8_t *described, size_t bytes, struct schema *schema)
{
    struct describing describing;
    uint8_t *copy;
    uint64_t count = 0;
    bool is_one = bytes >= sizeof count && bytes <= DESCRIBED_MAX;

    if (!is_one)
        return tnd_fail(TUNDISH_E_CORRUPT, "it describes columns in %zu bytes", bytes);
    copy = tnd_alloc(bytes);
    memcpy(copy, described, bytes); /* nobody changes it from here on */
    memcpy(&count, copy, sizeof count);
    is_one = count > 0 && count <= (bytes - sizeof count) / sizeof(struct description);
    if (is_one)
        describing = (struct describing){
            copy + sizeof count + count * sizeof(struct description),
            copy + bytes,
        };
    for (uint64_t i = 0; i < count && is_one; i++) {
        struct description description;

        memcpy(&description, copy + sizeof count + i * sizeof description, sizeof description);
        is_one = take_column(&describing, &description, schema);
    }
    free(copy);
    return is_one ? TUNDISH_OK : tnd_fail(TUNDISH_E_CORRUPT, "it describes columns that are none");
}
