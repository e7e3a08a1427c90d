/* explain_print.c - where the rows of a batch come from, as text or as one JSON object. */
#include "commands/explain.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "batch/column_combine.h"
#include "commands/print_batch.h"
#include "content/content.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/plural.h"
#include "core/printable.h"
#include "core/redact.h"
#include "source/files/whereabouts.h"

/* A record's text is cut there: a picture must not fill the screen. */
enum { RAW_SHOWN = 256 };

struct printing {
    struct explain *explain;
    struct json out;
    struct frame frame; /* --show: the content of the batch */
    bool has_frame;
};

static const char *
stage_name(const struct plan_node *node)
{
    return node->stage != NULL ? node->stage->info->name : node->name;
}

static void
print_stage(struct json *out, const struct plan_node *node)
{
    json_key_text(out, "stage", stage_name(node));
    json_key(out, "line");
    if (node->stage != NULL)
        json_int(out, node->stage->line);
    else
        json_null(out);
}

static void
print_number(struct json *out, const char *key, bool is_known, uint64_t number)
{
    json_key(out, key);
    if (is_known)
        json_uint(out, number);
    else
        json_null(out);
}

/* A file's name, which may be an address. */
static void
print_name(struct json *out, struct byte_view name)
{
    char *shown;

    if (name.data == NULL) {
        json_null(out);
        return;
    }
    shown = tnd_strndup((const char *)name.data, name.size);
    tnd_redact(shown);
    json_bytes(out, (struct byte_view){ (const uint8_t *)shown, strlen(shown) });
    free(shown);
}

static void
print_text_or_null(struct json *out, const char *key, const char *text)
{
    json_key(out, key);
    if (text != NULL)
        json_bytes(out, (struct byte_view){ (const uint8_t *)text, strlen(text) });
    else
        json_null(out);
}

static uint32_t
drawn_numbers(const struct origin_mark *mark, struct content_drawn *ret_drawn)
{
    const struct plan_node *node = mark->node;

    return node->order == NULL && node->content->drawn != NULL
               ? node->content->drawn(node->state, mark->number, mark->row, mark->rows, ret_drawn)
               : 0;
}

/* The key under which the number of a mark stands. */
static const char *
mark_name(const struct origin_mark *mark)
{
    const struct order_ops *order = mark->node->order;
    const char *name = "dataset";

    if (order == NULL)
        name = "ordinal";
    else if (order->form == ORDER_NUMBERS)
        name = "index";
    return name;
}

/* A record's bytes are printed as they are. */
static tundish_status
read_record(const struct printing *printing, const struct origin_source *source,
            uint8_t **ret_bytes)
{
    *ret_bytes = NULL;
    return printing->explain->shows && source->node->source->refers_to_records
               ? whereabouts_read(printing->explain->files, source->words, ret_bytes)
               : TUNDISH_OK;
}

static tundish_status
print_source_json(struct printing *printing, const struct origin_source *source)
{
    struct json *out = &printing->out;
    struct whereabouts where;
    uint8_t *bytes;
    tundish_status status = read_record(printing, source, &bytes);

    whereabouts_of(source->node, printing->explain->files, source->words, &where);
    json_object(out);
    print_stage(out, source->node);
    json_key(out, "file");
    print_name(out, where.file);
    json_key(out, "path");
    print_name(out, (struct byte_view){ (const uint8_t *)where.path,
                                        where.path != NULL ? strlen(where.path) : 0 });
    print_number(out, "offset", where.has_bytes, where.offset);
    print_number(out, "length", where.has_bytes, where.length);
    print_number(out, "record", where.has_record, where.record);
    print_text_or_null(out, "compression", where.packing);
    if (where.number_name != NULL)
        json_key_int(out, where.number_name, where.number);
    if (source->row >= 0)
        json_key_int(out, "row", source->row);
    if (source->is_outer)
        json_key_bool(out, "outer", true);
    if (where.note != NULL)
        json_key_text(out, "note", where.note);
    if (bytes != NULL) {
        json_key(out, "bytes");
        json_bytes(out, (struct byte_view){ bytes, where.length });
    }
    json_object_end(out);
    free(bytes);
    return status;
}

static void
print_mark_json(struct json *out, const struct origin_mark *mark)
{
    struct content_drawn drawn[CONTENT_DRAWN_MAX];
    uint32_t count = drawn_numbers(mark, drawn);

    json_object(out);
    print_stage(out, mark->node);
    print_number(out, mark_name(mark), true, mark->number);
    if (mark->rows > 1)
        json_key_int(out, "row", mark->row);
    if (mark->node->order == NULL) {
        json_key(out, "drawn");
        if (mark->node->content->drawn == NULL)
            json_null(out);
        else
            json_object(out);
        for (uint32_t i = 0; i < count; i++) {
            json_key(out, drawn[i].name);
            json_float(out, drawn[i].value, 9);
        }
        if (mark->node->content->drawn != NULL)
            json_object_end(out);
    }
    json_object_end(out);
}

/* The columns of one row, as a batch of one row. */
static void
row_column(const struct printing *printing, uint64_t row, uint32_t index,
           struct output_column *ret_column)
{
    const struct schema *schema = &explain_plan(printing->explain)->element_spec;
    struct scratch *scratch = printing->explain->evaluation.scratch;
    struct frame one = printing->frame;
    int64_t rows;

    one.columns = scratch_array(scratch, one.column_count, sizeof *one.columns);
    for (uint32_t i = 0; i < one.column_count; i++)
        column_copy(&one.columns[i], &printing->frame.columns[i]);
    if (printing->explain->origins.is_batch && one.columns[index].level_count > 0) {
        if (schema->columns[index].kind == TUNDISH_SPARSE)
            column_state_shape(&one.columns[index], scratch);
        rows = column_rows(&one.columns[index]);
        column_slice(&one.columns[index], schema->columns[index].dtype,
                     (int64_t)row < rows ? (int64_t)row : rows,
                     (int64_t)row < rows ? (int64_t)row + 1 : rows, scratch, &one.columns[index]);
    }
    output_column(&one, schema, index, scratch, ret_column);
}

static tundish_status
print_row_json(struct printing *printing, uint64_t number)
{
    const struct origin_row *row = &printing->explain->origins.rows[number];
    struct json *out = &printing->out;
    tundish_status status = TUNDISH_OK;

    json_object(out);
    json_key_int(out, "row", (int64_t)number);
    json_key(out, "sources");
    json_array(out);
    for (size_t i = 0; i < row->source_count; i++) {
        tundish_status one = print_source_json(printing, &row->sources[i]);

        status = status == TUNDISH_OK ? one : status;
    }
    json_array_end(out);
    json_key(out, "marks");
    json_array(out);
    for (size_t i = 0; i < row->mark_count; i++)
        print_mark_json(out, &row->marks[i]);
    json_array_end(out);
    if (printing->has_frame) {
        json_key(out, "columns");
        json_object(out);
        for (uint32_t i = 0; i < printing->frame.column_count; i++) {
            struct output_column column;

            row_column(printing, number, i, &column);
            json_key(out, column.spec->name);
            print_column(out, &column);
        }
        json_object_end(out);
    }
    json_object_end(out);
    return status;
}

static void
print_raw_text(const uint8_t *bytes, uint64_t length)
{
    struct byte_view view = { bytes, length < RAW_SHOWN ? (size_t)length : RAW_SHOWN };
    struct json out;

    if (bytes == NULL)
        return;
    fputs("    ", stdout);
    json_start(&out, stdout);
    json_bytes(&out, view);
    puts(length > RAW_SHOWN ? " ..." : "");
}

/* A newline within would look like the next row. */
static void
print_name_text(const char *before, struct byte_view name)
{
    char raw[PATH_MAX], shown[4 * PATH_MAX];

    snprintf(raw, sizeof raw, "%.*s", (int)name.size, (const char *)name.data);
    tnd_redact(raw);
    tnd_printable(raw, shown, sizeof shown);
    printf("%s%s", before, shown);
}

static void
print_where_text(const struct whereabouts *where)
{
    const char *between = ": ";

    if (where->file.data != NULL) {
        print_name_text(between, where->file);
        between = ", ";
    }
    if (where->has_record) {
        printf("%srecord %llu", between, (unsigned long long)where->record);
        between = ", ";
    }
    if (where->has_bytes) {
        printf("%s%llu bytes at %llu", between, (unsigned long long)where->length,
               (unsigned long long)where->offset);
        between = ", ";
    }
    if (where->packing != NULL)
        printf(" of what the %s file unpacks to", where->packing);
    if (where->number_name != NULL)
        printf("%s%s %lld", between, where->number_name, (long long)where->number);
}

static tundish_status
print_source_text(struct printing *printing, const struct origin_source *source)
{
    struct whereabouts where;
    uint8_t *bytes;
    tundish_status status = read_record(printing, source, &bytes);

    whereabouts_of(source->node, printing->explain->files, source->words, &where);
    printf("  %s", stage_name(source->node));
    if (source->node->stage != NULL)
        printf(" (line %u)", source->node->stage->line);
    print_where_text(&where);
    if (source->row >= 0)
        printf(", row %lld of what it gives", (long long)source->row);
    if (source->is_outer)
        printf(" (outer element)");
    putchar('\n');
    if (where.note != NULL)
        printf("    %s\n", where.note);
    print_raw_text(bytes, where.length);
    free(bytes);
    return status;
}

static void
print_mark_text(const struct origin_mark *mark)
{
    struct content_drawn drawn[CONTENT_DRAWN_MAX];
    uint32_t count = drawn_numbers(mark, drawn);

    printf("  %s", stage_name(mark->node));
    if (mark->node->stage != NULL)
        printf(" (line %u)", mark->node->stage->line);
    printf(": %s %llu", mark_name(mark), (unsigned long long)mark->number);
    if (mark->rows > 1)
        printf(", row %lld of the batch", (long long)mark->row);
    for (uint32_t i = 0; i < count; i++)
        printf(", %s %.9g", drawn[i].name, drawn[i].value);
    if (mark->node->order == NULL && mark->node->content->drawn == NULL)
        printf(" (its draws depend on the size of the image)");
    putchar('\n');
}

static tundish_status
print_row_text(struct printing *printing, uint64_t number)
{
    const struct origin_row *row = &printing->explain->origins.rows[number];
    tundish_status status = TUNDISH_OK;

    printf("row %llu\n", (unsigned long long)number);
    if (row->source_count == 0)
        puts("  no source: all rows that it was made of are left out (on_error: skip)");
    for (size_t i = 0; i < row->source_count; i++) {
        tundish_status one = print_source_text(printing, &row->sources[i]);

        status = status == TUNDISH_OK ? one : status;
    }
    for (size_t i = 0; i < row->mark_count; i++)
        print_mark_text(&row->marks[i]);
    for (uint32_t i = 0; printing->has_frame && i < printing->frame.column_count; i++) {
        struct output_column column;

        row_column(printing, number, i, &column);
        print_column_text(stdout, &column);
    }
    return status;
}

/* Sentences about the batch that no row says. The caller frees what `say` is given. */
static void
tell_notes(const struct explain *explain, void (*say)(void *context, const char *text),
           void *context)
{
    const struct plan *plan = explain_plan(explain);

    if (explain->origins.row_count == 0)
        say(context, "this replica has no rows at this step: it gets an empty batch");
    if (plan->stream->distribute.delivery == DELIVER_QUEUE)
        say(context, "the stream is a queue: any of its readers may have been given this batch");
    if (explain->counts_epochs)
        say(context, "earlier epochs are taken to have been read to their end: if trainers cut one "
                     "short (tundish_restart), a place of the epoch itself names the right rows");
    for (size_t i = 0; i < explain->origins.blender_count; i++) {
        const struct plan_node *node = explain->origins.blenders[i];
        char *text = tnd_sprintf("%s (line %u) looks across the rows of a batch: rows are named in "
                                 "the order in which it was given them",
                                 stage_name(node), node->stage != NULL ? node->stage->line : 0);

        say(context, text);
        free(text);
    }
}

static void
say_json(void *context, const char *text)
{
    json_text(context, text);
}

static void
say_text(void *context, const char *text)
{
    (void)context;
    printf("%s\n", text);
}

/* The seeds of stages that decide the order. */
static void
print_seeds(struct json *out, const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (node->random) {
            json_object(out);
            print_stage(out, node);
            print_number(out, "seed", true, node->seed);
            print_number(out, "seed2", true, node->seed2);
            json_object_end(out);
        }
        if (node->body != NULL)
            print_seeds(out, node->body);
    }
}

static void
print_head_json(struct printing *printing)
{
    const struct explain *explain = printing->explain;
    const struct plan *plan = explain_plan(explain);
    struct json *out = &printing->out;

    json_key_text(out, "stream", plan->stream->name);
    print_number(out, "epoch", true, explain->epoch);
    print_number(out, "step", true, explain->step);
    json_key_int(out, "worker", explain->worker);
    json_key_int(out, "worker_count", plan->options.worker_count);
    json_key_int(out, "replica", explain->replica);
    json_key_int(out, "replica_count", plan->replicas);
    print_number(out, "root_seed", plan->draws_from_root, plan->options.root_seed);
    json_key(out, "seeds");
    json_array(out);
    print_seeds(out, plan->graph);
    json_array_end(out);
    json_key_bool(out, "is_batch", plan->graph->root->depth > 0);
    json_key_int(out, "row_count", (int64_t)explain->origins.row_count);
    json_key(out, "notes");
    json_array(out);
    tell_notes(explain, say_json, out);
    json_array_end(out);
}

static tundish_status
print_rows(struct printing *printing)
{
    const struct explain *explain = printing->explain;
    uint64_t first = explain->has_row ? explain->row : 0;
    uint64_t last = explain->has_row ? explain->row + 1 : explain->origins.row_count;
    tundish_status status = TUNDISH_OK;

    for (uint64_t i = first; i < last; i++) {
        tundish_status one =
            explain->json ? print_row_json(printing, i) : print_row_text(printing, i);

        status = status == TUNDISH_OK ? one : status;
    }
    return status;
}

/* The whole batch is made, as the trainer has seen it: padding, for example, depends on all rows.
 */
static tundish_status
make_content(struct printing *printing)
{
    struct explain *explain = printing->explain;
    const struct plan_node *root = explain_plan(explain)->graph->root;
    const struct deal_slice *slice = &explain->round.slices[explain->replica];
    struct evaluate_request request = { .words = slice->words, .stride = root->width, .count = 1 };
    tundish_status status;

    if (!explain->shows || !slice->present)
        return TUNDISH_OK;
    scratch_reset(explain->evaluation.scratch);
    status = evaluate(&explain->evaluation, root, &request, &printing->frame);
    printing->has_frame = status == TUNDISH_OK && printing->frame.count > 0;
    return status;
}

tundish_status
explain_print(struct explain *explain)
{
    struct printing printing = { .explain = explain };
    const struct plan *plan = explain_plan(explain);
    tundish_status made = make_content(&printing), status;
    char *text = made == TUNDISH_OK ? NULL : tnd_strdup(tnd_error_text());

    json_start(&printing.out, stdout);
    if (explain->json) {
        json_object(&printing.out);
        print_head_json(&printing);
        json_key(&printing.out, "rows");
        json_array(&printing.out);
    } else {
        printf("stream %s, epoch %llu, step %llu, worker %u of %u, replica %u of %u: %zu row%s\n",
               plan->stream->name, (unsigned long long)explain->epoch,
               (unsigned long long)explain->step, explain->worker, plan->options.worker_count,
               explain->replica, plan->replicas, explain->origins.row_count,
               TND_PLURAL(explain->origins.row_count));
        tell_notes(explain, say_text, NULL);
    }
    status = print_rows(&printing);
    if (explain->json) {
        json_array_end(&printing.out);
        print_text_or_null(&printing.out, "error", text);
        json_object_end(&printing.out);
        putchar('\n');
    }
    if (made != TUNDISH_OK)
        status = tnd_fail(made, "%s", text);
    free(text);
    return status;
}
