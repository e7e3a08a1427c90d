/* transform.c - the plan of a stream with its source replaced by the caller's rows.
 *
 * Inference thus runs the same stages as training. An element's word is a pointer to a fed_row
 * instead of a reference into a file. */
#include "inference/transform.h"

#include <stdlib.h>
#include <string.h>

#include "batch/column_combine.h"
#include "batch/content_budget.h"
#include "core/memory.h"
#include "learn/learn_view.h"
#include "learn/results/provenance.h"
#include "plan/plan.h"
#include "source/source.h"

struct transform {
    struct spec_file *file;
    struct learned learned;
    struct learn_view view;
    struct spec_stream stream;
    struct plan *plan;
    struct plan_node *input;
    struct plan_node replaced; /* the input as the plan had it */
    bool is_replaced;
    bool is_batched; /* the stream has a stage that batches */
    bool is_csv;     /* lines of the csv source */
    struct csv_table csv;
    struct schema outputs;
};

/* One row of the caller; its address is the word of an element. */
struct fed_row {
    const struct column *columns;
    int64_t index;
};

struct transformer {
    const struct transform *transform;
    struct evaluation evaluation;
    struct budget_task memory; /* for what records unpack to */
    struct output_column *outputs;
};

static const struct fed_row *
row_at(const struct source_read *read, int64_t i)
{
    return (const struct fed_row *)(uintptr_t)read->words[(size_t)i * read->stride];
}

static tundish_status
fed_read(const void *state, const struct source_read *read)
{
    struct frame *output = read->output;
    bool is_whole = true;
    int64_t *index;

    (void)state;
    if (read->count == 0)
        return TUNDISH_OK;
    for (int64_t i = 0; i < read->count; i++)
        is_whole &= row_at(read, i)->index == i;
    index = scratch_array(output->scratch, (size_t)read->count, sizeof *index);
    for (int64_t i = 0; i < read->count; i++)
        index[i] = row_at(read, i)->index;
    for (uint32_t c = 0; c < output->column_count; c++) {
        const struct column *from = &row_at(read, 0)->columns[c];

        /* All rows in their order: pass the caller's column through without a copy. */
        if (is_whole && from->count == read->count)
            output->columns[c] = *from;
        else
            column_gather(from, output->schema->columns[c].dtype, index, read->count,
                          output->scratch, &output->columns[c]);
    }
    return TUNDISH_OK;
}

static const struct source_ops fed_source = { .name = "rows", .read = fed_read };

static bool
is_content(const struct plan_node *node)
{
    return node->content != NULL && node->order == NULL;
}

/* Does the node read files or unite several datasets? Rows are fed in here at the latest. */
static bool
makes_elements(const struct plan_node *node)
{
    return node->source != NULL || (node->input_count != 1 && node->body == NULL);
}

/* A content stage of the datasets that `node` unites, or NULL. */
static const struct plan_node *
content_inside(const struct plan_node *node)
{
    const struct plan_node *found = NULL;

    for (uint32_t i = 0; found == NULL && i < node->input_count; i++)
        found = is_content(node->inputs[i]) ? node->inputs[i] : content_inside(node->inputs[i]);
    if (found == NULL && node->body != NULL)
        found = is_content(node->body->root) ? node->body->root : content_inside(node->body->root);
    return found;
}

static tundish_status
complain_about(const struct plan_node *node, struct spec_errors *errors, const char *why)
{
    return spec_complain(errors, node->stage != NULL ? node->stage->line : 0,
                         node->stage != NULL ? node->stage->column : 0, "%s: %s", node->name, why);
}

/* Make rows come in at this node. The plan is restored in transform_close, which frees
 * it as it was. */
static tundish_status
feed(struct transform *transform, struct plan_node *node, struct spec_errors *errors)
{
    const struct plan_node *inside = content_inside(node);

    if (inside != NULL)
        return complain_about(inside, errors,
                              "input rows do not say to which of several datasets they belong, so "
                              "this stage cannot be applied");
    transform->input = node;
    transform->replaced = *node;
    transform->is_replaced = true;
    node->source = &fed_source;
    node->content = NULL;
    node->width = 1;
    node->run_words = 0;
    return TUNDISH_OK;
}

static tundish_status lay_out(struct transform *transform, struct plan_node *node,
                              struct spec_errors *errors);

/* Feed rows into the inner dataset of interleave or flat_map. There is then no outer element whose
 * columns could be used. */
static tundish_status
lay_out_body(struct transform *transform, struct plan_node *node, struct spec_errors *errors)
{
    tundish_status status;

    if (node->body->captures)
        return complain_about(
            node, errors,
            "its stages use columns of the outer element, which input rows do not have");
    status = lay_out(transform, node->body->root, errors);
    node->width = node->body->root->width;
    node->run_words = node->body->root->run_words;
    return status;
}

/* Only a plain batch of all rows: which rows a window or a bucket would hold depends on rows that
 * are not there. */
static bool
is_batch(const struct plan_node *node)
{
    return node->order != NULL && node->order->form == ORDER_BATCHES &&
           node->order->selection == ORDER_KEEPS;
}

/* Set the words of elements from the input on: a row is one word, a batch one run. */
static tundish_status
lay_out(struct transform *transform, struct plan_node *node, struct spec_errors *errors)
{
    tundish_status status;

    if (makes_elements(node))
        return feed(transform, node, errors);
    if (node->body != NULL)
        return lay_out_body(transform, node, errors);
    status = lay_out(transform, node->inputs[0], errors);
    if (status != TUNDISH_OK)
        return status;
    if (is_batch(node)) {
        if (transform->is_batched)
            return complain_about(node, errors,
                                  "a second batch stage: input rows are already one batch");
        transform->is_batched = true;
        node->width = 1;
        node->run_words = 1;
    } else if (is_content(node) || node->order->selection == ORDER_CHOOSES) {
        node->width = node->inputs[0]->width;
        node->run_words = node->inputs[0]->run_words;
    } else {
        return complain_about(node, errors,
                              "input rows cannot pass this stage; set until to an earlier stage");
    }
    return TUNDISH_OK;
}

static const struct spec_stream *
choose_stream(const struct transform *transform, const char *name, struct spec_errors *errors)
{
    const struct spec_stream *stream =
        name != NULL ? spec_find_stream(transform->file, name) : provenance_stream(transform->file);

    if (stream == NULL)
        spec_complain(
            errors, 0, 0,
            name != NULL ? "there is no stream '%s'" : "there are several streams: name one", name);
    return stream;
}

static tundish_status
cut(struct transform *transform, const char *until, struct spec_errors *errors)
{
    struct spec_dataset *dataset = &transform->stream.dataset;
    uint32_t count = dataset->stage_count;

    if (until == NULL)
        return TUNDISH_OK;
    /* The last stage of that name, if there are several. */
    while (count > 0 && strcmp(dataset->stages[count - 1].info->name, until) != 0)
        count--;
    if (count == 0)
        return spec_complain(errors, transform->stream.line, transform->stream.column,
                             "stream %s has no stage %s", transform->stream.name, until);
    dataset->stage_count = count;
    return TUNDISH_OK;
}

/* Without a batch stage rows still come out together: the outputs get a first dimension, and become
 * ragged where rows differ in size. */
static void
describe_outputs(struct transform *transform)
{
    struct schema *outputs = &transform->outputs;

    schema_pass_all(outputs, &transform->plan->user_root->schema);
    for (uint32_t i = 0; !transform->is_batched && i < outputs->count; i++) {
        struct column_spec *column = &outputs->columns[i];
        int last_unknown = 0;

        if (column->rank < 0 || column->rank == RANK_MAX)
            continue;
        memmove(&column->shape[1], &column->shape[0], (size_t)column->rank * sizeof(int64_t));
        column->shape[0] = -1;
        column->rank++;
        for (int k = 1; k < column->rank; k++)
            if (column->shape[k] < 0)
                last_unknown = k;
        if (column->kind == TUNDISH_RAGGED) {
            column->ragged_rank++;
        } else if (column->kind == TUNDISH_DENSE && last_unknown > 0) {
            column->kind = TUNDISH_RAGGED;
            column->ragged_rank = last_unknown;
        }
    }
}

static tundish_status
open_csv(struct transform *transform, const struct transform_options *options,
         struct spec_errors *errors)
{
    static const struct schema none = { 0 };
    const struct stage_config config = {
        .stage = transform->replaced.stage,
        .input = &none,
        .cache_folder = options->cache_folder,
        .errors = errors,
    };

    transform->is_csv = transform->replaced.source != NULL && transform->replaced.source->is_csv;
    return transform->is_csv ? csv_table_open(&config, true, &transform->csv) : TUNDISH_OK;
}

static tundish_status
open_plan(struct transform *transform, const struct transform_options *options,
          struct spec_errors *errors)
{
    const struct spec_stream *stream = choose_stream(transform, options->stream, errors);
    const struct plan_options plan_options = {
        .worker_count = 1,
        .replicas = 1,
        .cache_folder = options->cache_folder,
        .learned = &transform->learned,
        .batches_vary = true,
    };
    tundish_status status;

    if (stream == NULL)
        return TUNDISH_E_PIPELINE;
    provenance_find(transform->file, options->analysis, false, &transform->learned);
    /* The view has no random changes: the same row always gives the same result. */
    learn_view_open(&transform->view, &stream->dataset);
    transform->stream = *stream;
    transform->stream.dataset = transform->view.dataset;
    transform->stream.distribute =
        (struct spec_distribute){ .replicas = 1, .from_function = true, .groups = 1 };
    transform->stream.deliver =
        (struct spec_deliver){ .slots = 3, .memory_limit = stream->deliver.memory_limit };
    status = cut(transform, options->until, errors);
    if (status == TUNDISH_OK)
        status =
            plan_open(transform->file, &transform->stream, &plan_options, errors, &transform->plan);
    if (status == TUNDISH_OK)
        status = lay_out(transform, transform->plan->user_root, errors);
    if (status == TUNDISH_OK)
        status = open_csv(transform, options, errors);
    if (status == TUNDISH_OK)
        describe_outputs(transform);
    return status;
}

tundish_status
transform_open(const struct transform_options *options, struct spec_errors *errors,
               struct transform **ret_transform)
{
    struct transform *transform = tnd_zalloc(1, sizeof *transform);
    tundish_status status =
        options->text != NULL ? spec_open_text(options->text, strlen(options->text), options->path,
                                               options->root, errors, &transform->file)
                              : spec_open(options->path, options->root, errors, &transform->file);

    if (status == TUNDISH_OK)
        status = open_plan(transform, options, errors);
    if (status != TUNDISH_OK) {
        transform_close(transform);
        return status;
    }
    *ret_transform = transform;
    return TUNDISH_OK;
}

void
transform_close(struct transform *transform)
{
    if (transform == NULL)
        return;
    if (transform->is_replaced)
        *transform->input = transform->replaced;
    if (transform->is_csv)
        csv_table_close(&transform->csv);
    plan_close(transform->plan);
    schema_close(&transform->outputs);
    learn_view_close(&transform->view);
    provenance_close(&transform->learned);
    spec_close(transform->file);
    free(transform);
}

const struct schema *
transform_inputs(const struct transform *transform)
{
    return &transform->input->schema;
}

const struct schema *
transform_outputs(const struct transform *transform)
{
    return &transform->outputs;
}

bool
transform_takes_records(const struct transform *transform)
{
    const struct schema *inputs = transform_inputs(transform);

    return transform->is_csv || (inputs->count == 1 && inputs->columns[0].rank == 0 &&
                                 inputs->columns[0].dtype == TUNDISH_STRING);
}

struct transformer *
transformer_open(const struct transform *transform)
{
    struct transformer *transformer = tnd_zalloc(1, sizeof *transformer);

    transformer->transform = transform;
    transformer->evaluation.scratch = scratch_open();
    /* Records come from anywhere: a few bytes must not unpack to all the memory there is. */
    transformer->memory.budget = content_budget_open(transform->plan, 1);
    scratch_share(transformer->evaluation.scratch, &transformer->memory);
    transformer->outputs =
        tnd_zalloc((size_t)transform->outputs.count + 1, sizeof *transformer->outputs);
    return transformer;
}

void
transformer_close(struct transformer *transformer)
{
    if (transformer == NULL)
        return;
    scratch_close(transformer->evaluation.scratch);
    budget_close(transformer->memory.budget);
    free(transformer->outputs);
    free(transformer);
}

struct scratch *
transformer_begin(struct transformer *transformer)
{
    scratch_reset(transformer->evaluation.scratch);
    return transformer->evaluation.scratch;
}

/* A run in scratch memory. Its count of owners never changes, because content stages do not retain
 * runs. */
static uint64_t
make_run(struct scratch *scratch, const uint64_t *words, int64_t count)
{
    struct run *run = scratch_alloc(scratch, sizeof *run);

    memset(run, 0, sizeof *run);
    run->count_of_owners = 1;
    run->width = 1;
    run->element_count = (uint64_t)count;
    run->row_count = (uint64_t)count;
    run->words = words;
    return run_word(run);
}

/* Join the rows into one element with a new first dimension. */
static tundish_status
join_rows(struct transformer *transformer, struct frame *frame)
{
    struct scratch *scratch = transformer->evaluation.scratch;
    int64_t *splits = scratch_array(scratch, 2, sizeof *splits);

    splits[0] = 0;
    splits[1] = frame->count;
    for (uint32_t i = 0; i < frame->column_count; i++) {
        struct column rows = frame->columns[i];

        if (rows.level_count == RANK_MAX)
            return tnd_fail(TUNDISH_E_DATA,
                            "column '%s' has %d dimensions in a row, so a batch would have too "
                            "many: use reshape",
                            frame->schema->columns[i].name, RANK_MAX);
        column_batch(&rows, splits, 1, scratch, &frame->columns[i]);
        column_settle(&frame->columns[i]);
    }
    frame->count = 1;
    frame->schema = &transformer->transform->outputs;
    return TUNDISH_OK;
}

/* Transform `count` rows of the columns, from row `first` on. */
static tundish_status
run_from(struct transformer *transformer, const struct column *columns, int64_t first,
         int64_t count)
{
    const struct transform *transform = transformer->transform;
    struct scratch *scratch = transformer->evaluation.scratch;
    struct fed_row *rows = scratch_array(scratch, (size_t)count, sizeof *rows);
    uint64_t *words = scratch_array(scratch, (size_t)count, sizeof *words), batch;
    struct evaluate_request request = { .words = words, .stride = 1, .count = count };
    struct frame frame;
    tundish_status status;

    for (int64_t i = 0; i < count; i++) {
        rows[i] = (struct fed_row){ columns, first + i };
        words[i] = (uint64_t)(uintptr_t)&rows[i];
    }
    /* All rows of a call are one batch, whatever the stream's batch_size is. */
    if (transform->is_batched) {
        batch = make_run(scratch, words, count);
        request.words = &batch;
        request.count = 1;
    }
    status = evaluate(&transformer->evaluation, transform->plan->user_root, &request, &frame);
    if (status == TUNDISH_OK && !transform->is_batched)
        status = join_rows(transformer, &frame);
    return status == TUNDISH_OK
               ? output_columns(&frame, &transform->outputs, scratch, transformer->outputs)
               : status;
}

tundish_status
transformer_run(struct transformer *transformer, const struct column *columns, int64_t count,
                const struct output_column **ret_columns)
{
    tundish_status status = run_from(transformer, columns, 0, count);

    if (status == TUNDISH_OK)
        *ret_columns = transformer->outputs;
    return status;
}

static tundish_status
read_csv(struct transformer *transformer, const struct byte_view *records, int64_t count,
         struct column *columns)
{
    const struct csv_table *table = &transformer->transform->csv;
    struct scratch *scratch = transformer->evaluation.scratch;
    void **values = scratch_array(scratch, table->count, sizeof *values);
    struct frame_errors errors = { 0 };
    struct frame frame = { .count = count, .scratch = scratch, .errors = &errors };
    const struct csv_records rows = { .records = records, .count = count };

    for (uint32_t i = 0; i < table->count; i++) {
        size_t bytes = table->columns[i].dtype == TUNDISH_STRING
                           ? sizeof(struct byte_view)
                           : tnd_dtype_bytes(table->columns[i].dtype);

        values[i] = scratch_array(scratch, (size_t)count, bytes);
        column_set_scalars(&columns[i], count, values[i]);
    }
    csv_table_read(table, &rows, &frame, values);
    return errors.bad_count == 0 ? TUNDISH_OK : tnd_fail(errors.status, "%s", errors.text);
}

tundish_status
transformer_run_records(struct transformer *transformer, const struct byte_view *records,
                        int64_t count, const struct output_column **ret_columns)
{
    const struct transform *transform = transformer->transform;
    struct column *columns;
    tundish_status status = TUNDISH_OK;

    if (!transform_takes_records(transform))
        return tnd_fail(TUNDISH_E_ARGUMENT, "this stream takes named columns, not records");
    columns = scratch_array(transformer->evaluation.scratch, transform->input->schema.count,
                            sizeof *columns);
    if (transform->is_csv)
        status = read_csv(transformer, records, count, columns);
    else
        column_set_scalars(&columns[0], count, records);
    return status == TUNDISH_OK ? transformer_run(transformer, columns, count, ret_columns)
                                : status;
}

tundish_status
transformer_blame(struct transformer *transformer, const struct transformer_rows *rows,
                  uint64_t first, tundish_status status)
{
    char *text = tnd_strdup(tnd_error_text());

    for (int64_t i = 0; i < rows->count; i++) {
        const struct output_column *columns;
        tundish_status alone =
            rows->columns != NULL
                ? run_from(transformer, rows->columns, i, 1)
                : transformer_run_records(transformer, &rows->records[i], 1, &columns);

        if (alone != TUNDISH_OK) {
            free(text);
            return tnd_fail_while(alone, "row %llu", (unsigned long long)first + (uint64_t)i);
        }
    }
    status = tnd_fail(status, "rows from %llu on: %s", (unsigned long long)first, text);
    free(text);
    return status;
}
