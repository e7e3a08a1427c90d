/* source_count.c - a source for `arrow_stream` stages (tundish_source.h): the numbers from 0, and
 * their names.
 *
 *     cc -shared -fPIC source_count.c -o libcount.so
 *
 *     - arrow_stream: {library: ./libcount.so, arguments: 1000}
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <tundish/tundish_source.h>

enum { BATCH = 100, NAME_BYTES = 16 };

/* A batch: its memory, and what the structs point to. */
struct batch {
    int64_t numbers[BATCH];
    int32_t offsets[BATCH + 1];
    char names[BATCH * NAME_BYTES];
    struct ArrowArray columns[2], *children[2];
    const void *struct_buffers[1], *number_buffers[2], *name_buffers[3];
};

struct count {
    int64_t next, end;
};

static void
release_part(struct ArrowArray *array)
{
    array->release = NULL; /* its memory is the batch's */
}

static void
release_batch(struct ArrowArray *array)
{
    free(array->private_data);
    array->release = NULL;
}

static int
next_batch(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct count *count = stream->private_data;
    int64_t rows = count->end - count->next < BATCH ? count->end - count->next : BATCH;
    struct batch *batch;
    int32_t at = 0;

    *out = (struct ArrowArray){ .release = NULL };
    if (rows <= 0)
        return 0; /* without a release: the end */
    batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return ENOMEM;
    for (int64_t i = 0; i < rows; i++) {
        batch->numbers[i] = count->next;
        at += snprintf(batch->names + at, NAME_BYTES, "n%lld", (long long)count->next++ % 1000000);
        batch->offsets[i + 1] = at;
    }
    batch->number_buffers[1] = batch->numbers;
    batch->name_buffers[1] = batch->offsets;
    batch->name_buffers[2] = batch->names;
    batch->columns[0] = (struct ArrowArray){
        .length = rows, .n_buffers = 2, .buffers = batch->number_buffers, .release = release_part
    };
    batch->columns[1] = (struct ArrowArray){
        .length = rows, .n_buffers = 3, .buffers = batch->name_buffers, .release = release_part
    };
    batch->children[0] = &batch->columns[0];
    batch->children[1] = &batch->columns[1];
    *out = (struct ArrowArray){ .length = rows,
                                .n_buffers = 1,
                                .n_children = 2,
                                .buffers = batch->struct_buffers,
                                .children = batch->children,
                                .release = release_batch,
                                .private_data = batch };
    return 0;
}

static void
release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL; /* all of it is constant */
}

static int
get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    static struct ArrowSchema columns[] = {
        { .format = "l", .name = "number", .release = release_schema },
        { .format = "u", .name = "name", .release = release_schema },
    };
    static struct ArrowSchema *children[] = { &columns[0], &columns[1] };

    (void)stream;
    *out = (struct ArrowSchema){
        .format = "+s", .n_children = 2, .children = children, .release = release_schema
    };
    return 0;
}

static const char *
last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "arguments is the number of rows";
}

static void
release_stream(struct ArrowArrayStream *stream)
{
    free(stream->private_data);
    stream->release = NULL;
}

int
tundish_source_open(const char *arguments, struct ArrowArrayStream *out)
{
    struct count *count = calloc(1, sizeof *count);
    long long rows = 0;

    if (count == NULL)
        return ENOMEM;
    *out = (struct ArrowArrayStream){ .get_schema = get_schema,
                                      .get_next = next_batch,
                                      .get_last_error = last_error,
                                      .release = release_stream,
                                      .private_data = count };
    if (sscanf(arguments, "%lld", &rows) != 1 || rows < 0)
        return EINVAL;
    count->end = rows;
    return 0;
}
