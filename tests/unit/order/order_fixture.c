/* order_fixture.c - see order_fixture.h. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"

#include "core/memory.h"
#include "core/must.h"
#include "order/cardinality.h"

/* Runs of all open fixtures that nobody has given up. */
static _Atomic int64_t living_runs;
static int open_fixtures;

/* The services come back without their fixture, and a source's node without its number. */
static struct fixture *current;

struct numbers {
    int64_t start, step;
    uint64_t at, count;
    uint64_t source;
};

static tundish_status
numbers_open(struct order_iterator *iterator)
{
    struct numbers *numbers = (struct numbers *)iterator->state;
    const struct spec_stage *stage = iterator->node->stage;
    const struct spec_value *stop = spec_get(stage, "stop");
    int64_t bounds[3] = { spec_get(stage, "start")->integer, 0, spec_get(stage, "step")->integer };
    uint32_t first = 1;

    if (stop->kind == SPEC_LIST) {
        first = stop->count == 1;
        for (uint32_t i = 0; i < stop->count; i++) {
            tundish_status status =
                order_value_int(iterator->instance, &stop->items[i], &bounds[first + i]);
            if (status != TUNDISH_OK)
                return status;
        }
    } else if (order_value_int(iterator->instance, stop, &bounds[1]) != TUNDISH_OK) {
        return TUNDISH_E_PIPELINE;
    }
    numbers->start = bounds[0];
    numbers->step = bounds[2];
    while (bounds[2] > 0 ? bounds[0] < bounds[1] : bounds[0] > bounds[1]) {
        bounds[0] += bounds[2];
        numbers->count++;
    }
    numbers->source = iterator->node->seed2;
    current->opened[numbers->source]++;
    return TUNDISH_OK;
}

static enum order_result
numbers_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct numbers *numbers = (struct numbers *)iterator->state;

    while (*ret_count < max) {
        int64_t number = numbers->start + (int64_t)numbers->at * numbers->step;

        if (numbers->at == numbers->count)
            return ORDER_END;
        numbers->at++;
        current->pulled[numbers->source]++;
        if (number == current->failing) {
            order_fail(iterator, TUNDISH_E_DATA, "cannot read %" PRId64, number);
            return ORDER_FAILED;
        }
        words[SOURCE_WIDTH * *ret_count] = (uint64_t)number;
        words[SOURCE_WIDTH * *ret_count + 1] = 77;
        current->made++;
        ++*ret_count;
    }
    return ORDER_OK;
}

static enum order_result
numbers_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct numbers *numbers = (struct numbers *)iterator->state;
    int64_t at = -1;
    uint64_t left = numbers->count - numbers->at, some = count < left ? count : left;

    if (current->failing >= 0)
        at = (current->failing - numbers->start) / numbers->step - (int64_t)numbers->at;
    if (at >= 0 && (uint64_t)at < some &&
        numbers->start + ((int64_t)numbers->at + at) * numbers->step == current->failing)
        some = (uint64_t)at; /* not over what cannot be read */
    numbers->at += some;
    current->pulled[numbers->source] += some;
    *ret_passed = some;
    return some == left && some < count ? ORDER_END : ORDER_OK;
}

static tundish_status
numbers_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    struct numbers *numbers = (struct numbers *)iterator->state;

    *ret_count = numbers->count;
    return TUNDISH_OK;
}

static tundish_status
numbers_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
           uint64_t *words)
{
    struct numbers *numbers = (struct numbers *)iterator->state;

    for (size_t i = 0; i < index_count; i++) {
        must(indices[i] < numbers->count);
        words[SOURCE_WIDTH * i] = (uint64_t)(numbers->start + (int64_t)indices[i] * numbers->step);
        words[SOURCE_WIDTH * i + 1] = 77;
    }
    return TUNDISH_OK;
}

static void
numbers_close(struct order_iterator *iterator)
{
    (void)iterator;
}

static const struct order_ops numbers = {
    .name = "range",
    .cardinality = order_count_source,
    .state_bytes = sizeof(struct numbers),
    .open = numbers_open,
    .next = numbers_next,
    .close = numbers_close,
    .pass_over = numbers_pass_over,
    .count = numbers_count,
    .at = numbers_at,
};

static struct plan_node *plan_dataset(struct fixture *fixture, struct plan_graph *graph,
                                      const struct spec_dataset *dataset);

static bool
is(const struct plan_node *node, const char *name)
{
    return strcmp(node->name, name) == 0;
}

static bool
unites(const struct plan_node *node)
{
    return is(node, "concatenate") || is(node, "sample_from_datasets") ||
           is(node, "choose_from_datasets");
}

static struct plan_node *
add_node(struct plan_graph *graph, const char *name)
{
    struct plan_node *node = tnd_zalloc(1, sizeof *node);

    node->name = name;
    node->number = graph->node_count;
    graph->nodes = tnd_realloc(graph->nodes, graph->node_count + 1, sizeof(struct plan_node *));
    graph->nodes[graph->node_count++] = node;
    graph->root = node;
    return node;
}

static void
set_order(struct plan_node *node, const struct order_ops *order)
{
    node->order = order;
    if (order != NULL && order->arguments_bytes > 0)
        node->arguments = tnd_zalloc(1, order->arguments_bytes);
}

static void
add_input(struct plan_node *node, struct plan_node *input)
{
    node->inputs = tnd_realloc(node->inputs, node->input_count + 1, sizeof(struct plan_node *));
    node->inputs[node->input_count++] = input;
}

static void
add_inputs(struct fixture *fixture, struct plan_graph *graph, struct plan_node *node)
{
    const struct spec_value *datasets = spec_get(node->stage, "datasets");

    for (uint32_t i = 0; i < datasets->count; i++)
        add_input(node, plan_dataset(fixture, graph, datasets->items[i].dataset));
    if (is(node, "choose_from_datasets"))
        add_input(node,
                  plan_dataset(fixture, graph, spec_get(node->stage, "choice_dataset")->dataset));
}

static uint32_t
row_words(const struct plan_node *input, uint64_t *ret_run_words)
{
    uint32_t width = 0;

    *ret_run_words = 0;
    for (uint32_t i = 0; i < input->width; i++) {
        struct order_gathered gathered;

        if ((input->run_words >> i & 1) != 0) {
            gathered = order_gathered(input, i);
            if (gathered.in_pieces) {
                uint64_t run_words;

                row_words(gathered.elements, &run_words);
                *ret_run_words |= run_words << width;
            } else {
                *ret_run_words |= gathered.elements->run_words << width;
            }
        }
        width += order_row_width(input, i);
    }
    return width;
}

static void
lay_out(struct plan_node *node)
{
    const struct plan_node *input = node->input_count > 0 ? node->inputs[0] : NULL;

    node->width = input == NULL ? SOURCE_WIDTH : input->width;
    node->run_words = input == NULL ? 0 : input->run_words;
    if (unites(node) || is(node, "zip")) {
        node->width = unites(node);
        node->run_words = 0;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (is(node, "choose_from_datasets") && i + 1 == node->input_count)
                break;
            node->inputs[i]->first_word = node->width;
            node->run_words |= node->inputs[i]->run_words << node->width;
            node->width += node->inputs[i]->width;
        }
    } else if (is(node, "enumerate") || is(node, "ordinal")) {
        node->width++;
    } else if (strstr(node->name, "unbatch") != NULL) {
        node->width = row_words(input, &node->run_words);
    } else if (node->order != NULL &&
               (node->order->form == ORDER_BATCHES || node->order->form == ORDER_REBATCHES)) {
        node->width = 1;
        node->run_words = 1;
    } else if (node->body != NULL) {
        node->width = node->body->root->width;
        node->run_words = node->body->root->run_words;
        if (node->body->captures) {
            node->run_words |= input->run_words << node->width;
            node->width += input->width;
        }
    }
}

/* TensorFlow's rule, but for the generator of unseeded stages, whose draws the test gives. */
static void
set_seeds(struct fixture *fixture, struct plan_graph *graph, struct plan_node *node,
          uint64_t *unseeded)
{
    const struct spec_file *file = fixture->file;
    const struct spec_value *seed = spec_get(node->stage, "seed");

    node->random = true;
    node->seed = file->has_seed ? (uint64_t)file->seed : 87654321;
    if (seed != NULL)
        node->seed2 = (uint64_t)seed->integer;
    else if (graph->outside != NULL)
        node->seed2 = (*unseeded)++;
    else
        node->seed2 = fixture->draws[fixture->draw_count++ % FIXTURE_DRAWS];
    node->seed = (uint64_t)((int64_t)node->seed % INT32_MAX + INT32_MAX) % INT32_MAX;
    node->seed2 = (uint64_t)((int64_t)node->seed2 % INT32_MAX + INT32_MAX) % INT32_MAX;
    if (node->seed == 0 && node->seed2 == 0)
        node->seed2 = INT32_MAX;
    if (is(node, "shuffle"))
        node->seeds_fixed = !spec_bool(node->stage, "reshuffle_each_iteration");
}

static struct plan_graph *
plan_body(struct fixture *fixture, struct plan_graph *outside, struct plan_node *node)
{
    struct plan_graph *body = tnd_zalloc(1, sizeof *body);

    body->outside = outside;
    body->outer = node->inputs[0];
    plan_dataset(fixture, body, spec_get(node->stage, "dataset")->dataset);
    return body;
}

static struct plan_node *
plan_dataset(struct fixture *fixture, struct plan_graph *graph, const struct spec_dataset *dataset)
{
    struct plan_node *last = NULL;
    uint64_t unseeded = 0;

    for (uint32_t i = 0; i < dataset->stage_count; i++) {
        const struct spec_stage *stage = &dataset->stages[i];
        struct plan_node *node = tnd_zalloc(1, sizeof *node);

        node->stage = stage;
        node->name = stage->info->name;
        if (last != NULL)
            add_input(node, last);
        if (is(node, "zip") || unites(node))
            add_inputs(fixture, graph, node);
        if (is(node, "interleave") || is(node, "flat_map"))
            node->body = plan_body(fixture, graph, node);
        if (is(node, "shuffle") || is(node, "permute") || is(node, "sample_from_datasets"))
            set_seeds(fixture, graph, node, &unseeded);
        set_order(node, is(node, "range") ? &numbers : order_find(node->name));
        if (is(node, "range"))
            node->seed2 = fixture->source_count++;
        node->number = graph->node_count;
        graph->nodes = tnd_realloc(graph->nodes, graph->node_count + 1, sizeof(struct plan_node *));
        graph->nodes[graph->node_count++] = node;
        lay_out(node);
        schema_add(&node->schema, "value", TUNDISH_INT64);
        graph->root = last = node;
    }
    return last;
}

static void
close_graph(struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct plan_node *node = graph->nodes[i];

        if (node->body != NULL)
            close_graph(node->body);
        schema_close(&node->schema);
        free(node->inputs);
        free(node->arguments);
        free(node);
    }
    free(graph->nodes);
    free(graph);
}

/* The words of the first row in an element. */
static const uint64_t *
innermost(const struct plan_node *node, const uint64_t *words)
{
    for (;;) {
        node = order_node(node);
        if (node->body != NULL) {
            node = node->body->root;
        } else if (node->input_count == 0) {
            return words;
        } else if (unites(node)) {
            node = node->inputs[words[0]];
            words += node->first_word;
        } else if (node->order->gathered != NULL && node->width == 1 && node->run_words == 1) {
            const struct run *run = run_of_word(words[0]);

            words = run->words;
            node = order_gathered(node, 0).elements;
        } else {
            node = node->inputs[0];
            words += is(node, "zip") ? node->first_word : 0;
        }
    }
}

static bool
predicate(const struct plan_node *node, int64_t value)
{
    const char *text = spec_text(node->stage, "predicate");
    int64_t by, rest;

    if (sscanf(text, "value %% %" SCNd64 " == %" SCNd64, &by, &rest) == 2)
        return value % by == rest;
    if (sscanf(text, "value %% %" SCNd64 " != %" SCNd64, &by, &rest) == 2)
        return value % by != rest;
    must(sscanf(text, "value > %" SCNd64, &rest) == 1);
    return value > rest;
}

/* The key of group_by_window. */
static int64_t
key_of(const struct plan_node *node, int64_t value)
{
    int64_t by;

    must(sscanf(spec_text(node->stage, "key"), "value %% %" SCNd64, &by) == 1);
    return value % by;
}

/* And the size of its window, behind the key. */
static void
add_sizes(struct frame *frame, const struct plan_node *node)
{
    const struct spec_value *function = spec_get(node->stage, "window_size_func");
    struct column *size = &frame->columns[1];
    int64_t *values = tnd_realloc((void *)size->values, (size_t)frame->count + 1, sizeof *values);
    int64_t more = 0;

    must(function == NULL || sscanf(function->text, "key + %" SCNd64, &more) == 1);
    for (int64_t i = 0; i < frame->count; i++)
        values[i] = ((const int64_t *)frame->columns[0].values)[i] + more;
    *size = (struct column){ .count = frame->count, .value_count = frame->count, .values = values };
}

/* One column: what the stage `asking` asks, if there is one, else the innermost number or lists of
 * a batch's rows. */
static tundish_status
look(const struct plan_node *input, const struct plan_node *asking, const uint64_t *words,
     uint64_t count, const struct frame **ret_frame)
{
    struct fixture *fixture = current;
    struct frame *frame = &fixture->frame;
    int64_t *values = tnd_realloc((void *)frame->columns->values, count + 1, sizeof *values);
    int64_t *splits =
        tnd_realloc((void *)frame->columns->levels[0].splits, count + 1, sizeof *splits);

    int64_t left = 0;

    frame->columns->values = values;
    frame->columns->levels[0].splits = splits;
    fixture->evaluated += count;
    fixture->kept = tnd_realloc(fixture->kept, count + 1, sizeof *fixture->kept);
    splits[0] = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t *element = words + i * input->width;
        int64_t value = (int64_t)*innermost(input, element);

        if (value == fixture->bad && !fixture->skip_bad)
            return tnd_fail(TUNDISH_E_DATA, "%" PRId64 " is bad", value);
        if (value == fixture->bad)
            continue;
        if (asking != NULL && is(asking, "filter"))
            ((bool *)values)[left] = predicate(asking, value);
        else if (asking != NULL)
            values[left] = key_of(asking, value);
        else
            values[left] = value;
        splits[left + 1] = splits[left];
        if (input->run_words == 1)
            splits[left + 1] += (int64_t)run_of_word(element[0])->row_count;
        fixture->kept[left++] = (int64_t)i;
    }
    *frame->columns = (struct column){
        .count = left,
        .level_count = input->run_words == 1 && asking == NULL,
        .levels = { { .uniform = -1, .splits = splits } },
        .value_count = left,
        .values = values,
    };
    frame->count = left;
    frame->column_count = 1;
    frame->schema = &input->schema;
    frame->kept = (uint64_t)left == count ? NULL : fixture->kept;
    if (asking != NULL && !is(asking, "filter"))
        add_sizes(frame, asking);
    *ret_frame = frame;
    return TUNDISH_OK;
}

static tundish_status
evaluate(struct order_services *services, const struct plan_node *node,
         const struct order_scope *scope, const uint64_t *words, uint64_t count,
         const struct frame **ret_frame)
{
    (void)services;
    (void)scope;
    return look(node, NULL, words, count, ret_frame);
}

/* As the filters right after it would find them, but for one in whose place nothing is known. */
static void
foresee(const struct order_look *asked, const struct frame *answers)
{
    memset(asked->foreseen, 0, asked->count * sizeof *asked->foreseen);
    for (int64_t i = 0; i < answers->count; i++) {
        int64_t element = answers->kept != NULL ? answers->kept[i] : i;
        const struct plan_node *input = asked->node->inputs[0];
        int64_t value = (int64_t)*innermost(input, asked->words + (uint64_t)element * input->width);
        bool passes = ((const bool *)answers->columns->values)[i];

        for (uint32_t f = 0; f < asked->later_count && passes; f++) {
            if (value == current->unforeseen)
                break;
            passes = predicate(asked->later[f], value);
            asked->foreseen[element] =
                (uint16_t)(asked->foreseen[element] + (passes ? FORESEEN_PASS : FORESEEN_STOP));
        }
    }
}

static tundish_status
evaluate_answers(struct order_services *services, const struct order_look *asked,
                 const struct frame **ret_frame)
{
    tundish_status status =
        look(asked->node->inputs[0], asked->node, asked->words, asked->count, ret_frame);

    (void)services;
    if (status == TUNDISH_OK && asked->later_count > 0)
        foresee(asked, *ret_frame);
    return status;
}

static void print_element(FILE *out, const struct plan_node *node, const uint64_t *words);

static void
print_run(FILE *out, const struct plan_node *elements, const struct run *run, bool in_pieces)
{
    if (run->in_pieces != in_pieces)
        fprintf(out, "?");
    if (in_pieces && run->element_count == 0)
        fprintf(out, "[]");
    fprintf(out, in_pieces ? "" : "[");
    for (uint64_t i = 0; i < run->element_count; i++) {
        if (i > 0)
            fprintf(out, in_pieces ? "+" : " ");
        print_element(out, elements, run->words + i * run->width);
    }
    fprintf(out, in_pieces ? "" : "]");
}

static void
print_zipped(FILE *out, const struct plan_node *node, const uint64_t *words)
{
    fprintf(out, "(");
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (i > 0)
            fprintf(out, " ");
        print_element(out, node->inputs[i], words + node->inputs[i]->first_word);
    }
    fprintf(out, ")");
}

/* A row of an element of `node`, as unbatch lays it out. */
static void
print_row(FILE *out, const struct plan_node *node, const uint64_t *words)
{
    node = order_node(node);
    if (unites(node)) {
        const struct plan_node *input = node->inputs[words[0]];
        uint64_t row_words_before = 0;

        for (uint32_t i = 0; i < input->first_word; i++)
            row_words_before += order_row_width(node, i);
        print_row(out, input, words + row_words_before);
    } else if (is(node, "zip")) {
        fprintf(out, "(");
        for (uint32_t i = 0, at = 0; i < node->input_count; i++) {
            fprintf(out, i > 0 ? " " : "");
            print_row(out, node->inputs[i], words + at);
            at += order_row_width(node->inputs[i], 0);
        }
        fprintf(out, ")");
    } else if (node->order->gathered != NULL && !order_gathered(node, 0).in_pieces) {
        print_element(out, order_gathered(node, 0).elements, words);
    } else {
        print_row(out, node->inputs[0], words);
    }
}

static void
print_element(FILE *out, const struct plan_node *node, const uint64_t *words)
{
    node = order_node(node);
    if (node->input_count == 0) {
        fprintf(out, "%" PRId64, (int64_t)words[0]);
        assert_int_equal(words[1], 77);
    } else if (is(node, "zip")) {
        print_zipped(out, node, words);
    } else if (unites(node)) {
        const struct plan_node *input = node->inputs[words[0]];

        for (uint32_t i = 1; i < node->width; i++)
            if (i < input->first_word || i >= input->first_word + input->width)
                assert_int_equal(words[i], 0);
        print_element(out, input, words + input->first_word);
    } else if (node->body != NULL) {
        print_element(out, node->body->root, words);
        if (node->body->captures) {
            fprintf(out, "@");
            print_element(out, node->inputs[0], words + node->body->root->width);
        }
    } else if (is(node, "enumerate") || is(node, "ordinal")) {
        fprintf(out, "%" PRIu64 ":", words[node->width - 1]);
        print_element(out, node->inputs[0], words);
    } else if (is(node, "unbatch")) {
        print_row(out, node->inputs[0], words);
    } else if (node->order->gathered != NULL && node->run_words == 1 && node->width == 1) {
        struct order_gathered gathered = order_gathered(node, 0);

        print_run(out, gathered.elements, run_of_word(words[0]), gathered.in_pieces);
    } else {
        print_element(out, node->inputs[0], words);
    }
}

void
fixture_open(struct fixture *fixture, const char *pipeline)
{
    struct spec_errors errors = { 0 };
    bool whole = strncmp(pipeline, "seed:", 5) == 0 || strncmp(pipeline, "streams:", 8) == 0 ||
                 strncmp(pipeline, "datasets:", 9) == 0;
    char *text =
        whole ? tnd_strdup(pipeline) : tnd_sprintf("streams: {case: {dataset: [%s]}}", pipeline);
    tundish_status status;

    *fixture = (struct fixture){
        .services = { .evaluate = evaluate,
                      .evaluate_answers = evaluate_answers,
                      .worker_count = 1,
                      .replicas_in_sync = 1 },
        .failing = -1,
        .bad = -1,
        .unforeseen = -1,
    };
    fixture->frame.columns = tnd_zalloc(2, sizeof *fixture->frame.columns);
    if (open_fixtures++ == 0)
        run_count_living(&living_runs);
    current = fixture;
    status = spec_open_text(text, strlen(text), "test.yaml", "/", &errors, &fixture->file);
    if (status != TUNDISH_OK)
        fail_msg("%s", spec_errors_text(&errors));
    free(text);
    fixture->graph = tnd_zalloc(1, sizeof *fixture->graph);
    plan_dataset(fixture, fixture->graph, &fixture->file->streams[0].dataset);
}

void
fixture_append(struct fixture *fixture, const struct order_ops *order, const void *arguments)
{
    struct plan_node *input = fixture->graph->root;
    struct plan_node *node = add_node(fixture->graph, order->name);

    add_input(node, input);
    set_order(node, order);
    if (arguments != NULL)
        memcpy(node->arguments, arguments, order->arguments_bytes);
    if (order == &order_ordinal)
        ((struct ordinal_arguments *)node->arguments)->counter = fixture->graph->draw_count++;
    lay_out(node);
}

void
fixture_close(struct fixture *fixture)
{
    order_close(fixture->iterator);
    order_instance_close(fixture->instance);
    close_graph(fixture->graph);
    spec_close(fixture->file);
    free((void *)fixture->frame.columns[0].values);
    free((void *)fixture->frame.columns[1].values);
    free((void *)fixture->frame.columns->levels[0].splits);
    free(fixture->frame.columns);
    free(fixture->kept);
    if (--open_fixtures > 0)
        return;
    run_count_living(NULL);
    assert_int_equal(atomic_exchange(&living_runs, 0), 0);
}

static void
print_epoch(FILE *out, struct fixture *fixture, size_t max, size_t chunk)
{
    const struct plan_node *root = fixture->graph->root;
    uint64_t *words = tnd_alloc(chunk * root->width * sizeof *words);
    int failures = 0;
    size_t count;

    for (size_t done = 0; done < max;) {
        size_t wanted = max - done < chunk ? max - done : chunk;
        enum order_result result = order_next(fixture->iterator, words, wanted, &count);

        if (result == ORDER_END)
            break;
        if (result == ORDER_FAILED) {
            assert_int_equal(count, 0);
            fprintf(out, done > 0 || failures > 0 ? " !" : "!");
            if (++failures == 10)
                break;
            continue;
        }
        assert_in_range(count, 1, wanted);
        for (size_t i = 0; i < count; i++) {
            fprintf(out, done + i > 0 || failures > 0 ? " " : "");
            print_element(out, root, words + i * root->width);
        }
        run_words_release(words, count, root->width, root->run_words);
        done += count;
    }
    free(words);
}

const char *
fixture_epoch(struct fixture *fixture, size_t max, size_t chunk)
{
    static char text[1 << 20];
    FILE *out;

    text[0] = '\0';
    out = fmemopen(text, sizeof text, "w");

    current = fixture;
    if (fixture->instance == NULL)
        fixture->instance = order_instance_open(fixture->graph, NULL, &fixture->services);
    order_drop(&fixture->iterator);
    if (order_open(fixture->graph->root, fixture->instance, &fixture->iterator) != TUNDISH_OK)
        fprintf(out, "!!");
    else
        print_epoch(out, fixture, max, chunk);
    must(fclose(out) == 0);
    return text;
}

const char *
fixture_rest(struct fixture *fixture, size_t chunk)
{
    static char text[1 << 20];
    FILE *out = fmemopen(text, sizeof text, "w");

    text[0] = '\0';
    print_epoch(out, fixture, SIZE_MAX, chunk);
    must(fclose(out) == 0);
    return text;
}

void
assert_order(const char *pipeline, const char *expected)
{
    static const size_t chunks[] = { 1, 2, 3, 7, 64, 1000 };

    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct fixture fixture;
        char *all = tnd_strdup("");
        size_t epochs = 1;

        for (const char *bar = expected; (bar = strstr(bar, " | ")) != NULL; bar += 3)
            epochs++;
        fixture_open(&fixture, pipeline);
        for (size_t epoch = 0; epoch < epochs; epoch++) {
            char *longer = tnd_sprintf("%s%s%s", all, epoch > 0 ? " | " : "",
                                       fixture_epoch(&fixture, 10000, chunks[i]));

            free(all);
            all = longer;
        }
        assert_string_equal(all, expected);
        free(all);
        fixture_close(&fixture);
    }
}

/* Of all but sources in functions: how far those are pulled cannot be seen. */
static uint64_t
pulled_of(const struct fixture *fixture)
{
    uint64_t pulled = 0;

    for (uint32_t i = 0; i < fixture->graph->node_count; i++)
        if (fixture->graph->nodes[i]->input_count == 0)
            pulled += fixture->pulled[fixture->graph->nodes[i]->seed2];
    return pulled;
}

/* Pass over `count` elements, those that fail included. */
static void
pass_over(struct fixture *fixture, uint64_t count)
{
    enum order_result result = ORDER_OK;
    uint64_t passed;

    while (count > 0 && result != ORDER_END) {
        result = order_pass_over(fixture->iterator, count, &passed);
        assert_in_range(passed, 0, count);
        count -= passed + (result == ORDER_FAILED);
    }
}

/* The elements after the first `count`, if `all` are the elements. */
static const char *
without_first(const char *all, uint64_t count)
{
    for (; count > 0 && *all != '\0'; count--) {
        int depth = 0;

        for (; *all != '\0' && (*all != ' ' || depth > 0); all++)
            depth += *all == '[' || *all == '(' ? 1 : *all == ']' || *all == ')' ? -1 : 0;
        all += *all == ' ';
    }
    return all;
}

void
assert_passes_over(const char *stages, int64_t failing)
{
    struct fixture fixture;
    char *all, *rest;

    fixture_open(&fixture, stages);
    fixture.failing = failing;
    all = tnd_strdup(fixture_epoch(&fixture, 1000, 1));
    for (uint64_t count = 0; count < 45; count++) {
        uint64_t pulled = pulled_of(&fixture), before;

        fixture_epoch(&fixture, 0, 1);
        pass_over(&fixture, count);
        pulled = pulled_of(&fixture) - pulled;
        rest = tnd_strdup(fixture_rest(&fixture, 3));
        if (strcmp(rest, without_first(all, count)) != 0)
            fail_msg("%s, after %d with %d failing: %s, not %s", stages, (int)count, (int)failing,
                     rest, without_first(all, count));
        free(rest);
        /* As many as where each is made. */
        fixture_epoch(&fixture, 0, 1);
        before = pulled_of(&fixture);
        for (uint64_t i = 0; i < count; i++)
            pass_over(&fixture, 1);
        if (pulled_of(&fixture) - before != pulled)
            fail_msg("%s: %d pulled for %d", stages, (int)pulled, (int)count);
    }
    free(all);
    fixture_close(&fixture);
}
