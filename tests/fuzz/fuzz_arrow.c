/* fuzz_arrow.c - streams of Arrow's C interface that lie about all that can be checked: lengths,
 * offsets, counts, buffers and children that are missing, offsets of texts and lists, indices,
 * views.
 *
 * The interface does not say how long buffers are, so those that are there have room for whatever
 * the numbers may claim.
 */
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow_rows.h"
#include "core/must.h"

/* Rows, and elements before them, that an honest number claims; bytes of a buffer. */
enum { CLAIM = 16, BUFFER_BYTES = 16 << 10, BUFFERS = 6, DEPTH = 3 };

struct noise {
    const uint8_t *at, *end;
};

static uint8_t
draw(struct noise *noise)
{
    return noise->at < noise->end ? *noise->at++ : 0;
}

/* A schema and an array of its own, in a chain: a column, its items or its words, their words. */
struct link {
    struct ArrowSchema schema, *schemas[1];
    struct ArrowArray array, *arrays[1];
    const void *buffers[BUFFERS];
    uint8_t *bytes[BUFFERS];
};

struct liar {
    struct link root, links[DEPTH];
    int batches_left;
};

static void
release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void
release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

static void
release_stream(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
}

static int
get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *ret_schema)
{
    *ret_schema = ((struct liar *)stream->private_data)->root.schema;
    return 0;
}

static int
get_next(struct ArrowArrayStream *stream, struct ArrowArray *ret_array)
{
    struct liar *liar = stream->private_data;

    *ret_array = (struct ArrowArray){ 0 };
    if (liar->batches_left-- > 0)
        *ret_array = liar->root.array;
    return 0;
}

/* Mostly within what the buffers have. */
static int64_t
draw_count(struct noise *noise)
{
    static const int64_t lies[] = { -1, INT64_MIN, INT64_MAX, INT64_MAX / 64, INT64_MAX - CLAIM };
    uint8_t drawn = draw(noise);

    return drawn < 240 ? drawn % (CLAIM + 1) : lies[drawn % (sizeof lies / sizeof *lies)];
}

static const char *
draw_format(struct noise *noise)
{
    static const char *const formats[] = {
        "b",     "c",      "C",          "s",  "S",   "i",   "I",   "l",    "L",    "e",
        "f",     "g",      "u",          "U",  "z",   "Z",   "vu",  "vz",   "+l",   "+L",
        "+w:3",  "+w:0",   "n",          "+s", "w:5", "w:0", "tdD", "tts",  "tsu:", "+m",
        "d:9,2", "d:38,0", "d:76,0,256", "w:", "",    "+w:", "+vl", "+w:-1"
    };

    return formats[draw(noise) % (sizeof formats / sizeof *formats)];
}

/* Bytes of an offset or a length that lies in a buffer; 1: of anything else. */
static size_t
width_of_buffer(const char *format, int64_t index, int64_t count)
{
    if (format[0] == 'v')
        return index > 1 && index == count - 1 ? 8 : 1;
    if (index != 1)
        return 1;
    if (strcmp(format, "+l") == 0 || strcmp(format, "u") == 0 || strcmp(format, "z") == 0)
        return 4;
    return strcmp(format, "+L") == 0 || strcmp(format, "U") == 0 || strcmp(format, "Z") == 0 ? 8
                                                                                             : 1;
}

/* Noise, or numbers that mostly grow, to no more than a buffer has. */
static void
fill(struct noise *noise, uint8_t *bytes, size_t width)
{
    int64_t sum = 0;

    for (size_t i = 0; i < 2 * CLAIM + 1; i++) {
        uint8_t drawn = draw(noise);
        int64_t number = drawn == 255 ? -1 : drawn == 254 ? 0 : (sum += drawn % 8);

        memcpy(bytes + i * width, width == 1 ? (const void *)&drawn : &number, width);
    }
}

static void
fill_link(struct noise *noise, struct link *link)
{
    uint8_t missing = draw(noise);

    for (int i = 0; i < BUFFERS; i++) {
        link->bytes[i] = calloc(1, BUFFER_BYTES);
        must(link->bytes[i] != NULL);
        fill(noise, link->bytes[i], width_of_buffer(link->schema.format, i, link->array.n_buffers));
        link->buffers[i] = i == missing % 16 ? NULL : link->bytes[i];
    }
}

static void
make_link(struct noise *noise, struct link *link)
{
    uint8_t lies = draw(noise);

    link->schema = (struct ArrowSchema){ .format = draw_format(noise),
                                         .name = "x",
                                         .n_children = draw(noise) % 8 == 0 ? 0 : 1,
                                         .release = release_schema };
    link->array = (struct ArrowArray){ .length = draw_count(noise),
                                       .null_count = draw_count(noise),
                                       .offset = draw_count(noise),
                                       .n_buffers = draw(noise) % (BUFFERS + 1),
                                       .n_children = (lies & 1) != 0 ? 0 : 1,
                                       .release = (lies & 6) == 6 ? NULL : release_array };
    /* The numbers of an honest array more often than not. */
    if (lies < 200) {
        const char *format = link->schema.format;
        bool is_text = strchr("uzUZv", format[0]) != NULL && format[0] != '\0';

        link->array.n_buffers = is_text ? 3 : strncmp(format, "+w", 2) == 0 ? 1 : 2;
        link->array.length = CLAIM;
        link->array.null_count = (lies & 1) != 0 ? 0 : -1;
        link->array.n_children = 1;
        link->schema.n_children = 1;
        lies = 0;
        link->array.release = release_array;
    }
    link->array.buffers = (lies & 24) == 24 ? NULL : link->buffers;
}

/* `inner` is the children of `link`, or its dictionary. */
static void
join_links(struct noise *noise, struct link *link, struct link *inner)
{
    uint8_t drawn = draw(noise);

    link->schemas[0] = drawn % 32 == 31 ? NULL : &inner->schema;
    link->arrays[0] = drawn % 32 == 30 ? NULL : &inner->array;
    link->schema.children = link->schemas;
    link->array.children = drawn % 32 == 29 ? NULL : link->arrays;
    if (drawn < 128 || link->schema.format[0] == '+')
        return;
    link->schema.dictionary = &inner->schema;
    link->array.dictionary = drawn % 32 == 28 ? NULL : &inner->array;
}

/* Look at all that was given. */
static uint64_t
add_up(const struct arrow_rows *rows)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < rows->byte_count; i++)
        sum += rows->bytes.data[i];
    must(rows->row_count > 0);
    return sum;
}

static void
read_rows(struct ArrowArrayStream *stream, bool has_fallback)
{
    static const uint8_t zeros[sizeof(struct byte_view)]; /* an empty text, too */
    struct arrow_rows rows = { 0 };
    tundish_status status = arrow_rows_open(&rows, stream);

    for (uint32_t i = 0; i < rows.field_count && status == TUNDISH_OK; i++)
        if (rows.fields[i].obstacle[0] == '\0')
            status =
                arrow_rows_take(&rows, &rows.fields[i], has_fallback ? (const void *)zeros : NULL);
    for (int i = 0; i < 64 && status == TUNDISH_OK && rows.column_count > 0; i++) {
        status = arrow_rows_next(&rows, 1 + i % 5);
        if (status == TUNDISH_OK)
            (void)add_up(&rows);
    }
    arrow_rows_close(&rows);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct noise noise = { data, data + bytes };
    struct liar liar = { .batches_left = 2 };
    struct ArrowArrayStream stream = { .get_schema = get_schema,
                                       .get_next = get_next,
                                       .release = release_stream,
                                       .private_data = &liar };

    for (int i = 0; i < DEPTH; i++)
        make_link(&noise, &liar.links[i]);
    make_link(&noise, &liar.root);
    if (draw(&noise) % 16 != 0) {
        liar.root.schema.format = "+s";
        liar.root.array.length = liar.links[0].array.length;
        liar.root.array.offset = 0;
        liar.root.array.null_count = 0;
        liar.root.array.n_buffers = 1;
    }
    for (int i = 0; i + 1 < DEPTH; i++)
        join_links(&noise, &liar.links[i], &liar.links[i + 1]);
    liar.links[DEPTH - 1].schema.n_children = liar.links[DEPTH - 1].array.n_children = 0;
    join_links(&noise, &liar.root, &liar.links[0]);
    liar.root.schema.dictionary = NULL;
    fill_link(&noise, &liar.root);
    for (int i = 0; i < DEPTH; i++)
        fill_link(&noise, &liar.links[i]);
    read_rows(&stream, draw(&noise) % 2 != 0);
    for (int i = 0; i < BUFFERS; i++) {
        free(liar.root.bytes[i]);
        for (int k = 0; k < DEPTH; k++)
            free(liar.links[k].bytes[i]);
    }
    return 0;
}
