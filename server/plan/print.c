/* print.c - prints a plan as text and as JSON. */
#include "plan/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/memory.h"
#include "core/numa.h"
#include "core/plural.h"
#include "core/redact.h"
#include "order/order.h"
#include "plan/build.h"
#include "plan/memory_cost.h"
#include "plan/notes.h"
#include "plan/resume.h"
#include "source/source.h"

static const char *
part_of(const struct plan_node *node)
{
    return node->source != NULL ? "source" : node->order != NULL ? "order" : "content";
}

static void
print_bytes(FILE *file, int64_t bytes)
{
    if (bytes < 0)
        fputs("known after the first batch", file);
    else if (bytes < 10 << 20)
        fprintf(file, "%.1f KiB", (double)bytes / 1024);
    else
        fprintf(file, "%.1f MiB", (double)bytes / (1 << 20));
}

static int64_t
all_lanes(const struct plan *plan, int64_t lane_bytes)
{
    int64_t all;

    return __builtin_mul_overflow(lane_bytes, (int64_t)plan->replicas, &all) ? INT64_MAX : all;
}

/* Print an argument as written; long lists are cut after eight items. */
static void
print_text(FILE *file, const char *text)
{
    char *shown = tnd_strdup(text);

    if (spec_is_url(text))
        tnd_redact_address(shown);
    fputs(shown, file);
    free(shown);
}

static void
print_value(FILE *file, const struct spec_value *value)
{
    switch (value->kind) {
    case SPEC_LIST:
        fputc('[', file);
        for (uint32_t i = 0; i < value->count; i++) {
            if (i == 8) {
                fprintf(file, ", ... %u", value->count);
                break;
            }
            if (i > 0)
                fputs(", ", file);
            print_value(file, &value->items[i]);
        }
        fputc(']', file);
        break;
    case SPEC_MAP:
        fprintf(file, "{%u key%s}", value->count, TND_PLURAL(value->count));
        break;
    case SPEC_DATASET:
        fputs("[...]", file);
        break;
    case SPEC_NULL:
        fputs("null", file);
        break;
    case SPEC_VARIABLE:
        fprintf(file, "$%s", value->text);
        break;
    default:
        print_text(file, value->text);
    }
}

void
print_arguments(const struct plan_node *node, FILE *file)
{
    const char *between = "";

    if (node->stage == NULL) {
        if (node->order != NULL && node->order->print != NULL)
            node->order->print(node, file);
        return;
    }
    fputc('{', file);
    for (uint32_t i = 0; i < node->stage->info->parameter_count; i++) {
        const char *name = node->stage->info->parameters[i].name;

        if (!spec_given(node->stage, name))
            continue;
        fprintf(file, "%s%s: ", between, name);
        print_value(file, node->stage->arguments[i]);
        between = ", ";
    }
    fputc('}', file);
}

/* A source's description of its files, and the results of a stage that learns. */
static void
print_description(FILE *file, const struct plan_node *node, int indent)
{
    char *learned = plan_learned(node);

    if (node->source != NULL && node->source->describe != NULL) {
        char *sentence = node->source->describe(node->state);

        fprintf(file, "  %*s         %s\n", indent, "", sentence);
        free(sentence);
    }
    if (learned != NULL)
        fprintf(file, "  %*s         learned: %s\n", indent, "", learned);
    free(learned);
}

static void
print_node(FILE *file, const struct plan_node *node, int indent)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        print_node(file, node->inputs[i], indent + (node->input_count > 1 ? 2 : 0));
    fprintf(file, "  %*s%-8s %s ", indent, "", part_of(node), node->name);
    print_arguments(node, file);
    if (node->random)
        fprintf(file, " seeds (%" PRIu64 ", %" PRIu64 ")", node->seed, node->seed2);
    if (node->batch_wide)
        fputs(" [needs whole batches: a slice is cut from the computed batch]", file);
    fputc('\n', file);
    print_description(file, node, indent);
    if (node->body != NULL)
        print_node(file, node->body->root, indent + 4);
}

static void
print_shards(const struct plan *plan, FILE *file)
{
    int32_t shards = plan->stream->distribute.evaluation_shards;

    if (shards > 0)
        fprintf(file, "evaluation: %" PRId32 " shard%s; one reader reads a whole shard\n", shards,
                TND_PLURAL(shards));
    else if (shards < 0)
        fputs("evaluation: five shards for each reader present at the start\n", file);
}

static void
print_resume(const struct plan *plan, FILE *file)
{
    char *sentence;

    plan_resume_cost(plan, &sentence);
    fprintf(file, "resume: %s\n", sentence);
    free(sentence);
    sentence = plan_draws_sentence(plan);
    if (sentence != NULL)
        fprintf(file, "random: %s\n", sentence);
    free(sentence);
}

static void
print_note(void *context, const char *sentence)
{
    fprintf(context, "note: %s\n", sentence);
}

static const char *
compression_text(const struct spec_deliver *deliver)
{
    switch (deliver->compression) {
    case COMPRESS_AUTO:
        return "auto: columns as they are while there is memory; where it is tight, the codec "
               "whose measured cost is below what it saves; where it is scarce, the one that "
               "saves most for its time; for trainers with a device, which expands them, integers "
               "of a known range in as few bits as possible";
    case COMPRESS_NONE:
        return "none: columns as they are";
    case COMPRESS_NARROW:
        return "narrow: integers of a known range are stored in as few bits as possible";
    case COMPRESS_ZSTD:
        return "zstd: integers of a known range are stored in as few bits as possible, other "
               "columns are compressed, and decompressed on the host even for a device";
    }
    return "";
}

static void
print_numbers(FILE *file, const char *name, const double *numbers, uint32_t count)
{
    fprintf(file, " %s", name);
    for (uint32_t i = 0; i < count && i < 8; i++)
        fprintf(file, "%s%.9g", i > 0 ? ", " : " ", numbers[i]);
    if (count > 8)
        fprintf(file, ", ... %u", count);
}

static void
print_widen(FILE *file, const struct plan_widen *widen)
{
    if (widen->dtype == 0)
        return;
    fprintf(file, ", widened by the consumer to %s:", tnd_dtype_name(widen->dtype));
    print_numbers(file, "scale", widen->scale, widen->scale_count);
    print_numbers(file, "offset", widen->offset, widen->offset_count);
    if (widen->layout == TUNDISH_NCHW)
        fputs(" layout NCHW", file);
}

/* Print the bytes of one lane and, with several replicas, of all. */
static void
print_lane(const struct plan *plan, int64_t lane_bytes, FILE *file)
{
    print_bytes(file, lane_bytes);
    if (plan->replicas == 1)
        return;
    fprintf(file, ", all %u lanes ", plan->replicas);
    print_bytes(file, all_lanes(plan, lane_bytes));
}

static void
print_lanes(const struct plan *plan, const struct plan_lanes *lanes, FILE *file)
{
    if (lanes->lane_bytes < 0) {
        fprintf(file,
                "shared memory: a lane has %u slots; its size is known after the first batch\n",
                plan->stream->deliver.slots);
        return;
    }
    fprintf(file, "shared memory: a lane of %u slots takes %s", plan->stream->deliver.slots,
            lanes->is_exact ? "" : "at most ");
    print_lane(plan, lanes->lane_bytes, file);
    if (lanes->as_is_bytes > lanes->lane_bytes) {
        fputs("; without compression ", file);
        print_lane(plan, lanes->as_is_bytes, file);
    }
    fputc('\n', file);
}

/* Only where there are several: with one, nothing is to choose. */
static void
print_memory_nodes(FILE *file)
{
    struct tnd_numa numa;
    char text[TND_NUMA_TEXT_BYTES];

    tnd_numa_read(TND_NUMA_FOLDER, &numa);
    if (numa.count < 2)
        return;
    tnd_numa_text(&numa, text);
    fprintf(file,
            "memory nodes %s: a lane lies on its trainer's, if that is bound to one; serve --pin "
            "binds threads\n",
            text);
}

void
plan_print_text(const struct plan *plan, const struct plan_lanes *lanes, FILE *file)
{
    struct plan_memory memory;

    plan_memory(plan, &memory);
    fprintf(file, "stream %s: worker %u of %u, %u replica%s each\n", plan->stream->name,
            plan->options.worker, plan->options.worker_count, plan->replicas,
            TND_PLURAL(plan->replicas));
    fprintf(file, "sharding %s: %s\n", plan_policy_name(plan->policy), plan->policy_reason);
    print_shards(plan, file);
    if (plan->rebatched) {
        fprintf(file, "rebatch %s: %s", plan->rule == REBATCH_CARRY ? "carry" : "split",
                plan->rule_reason);
        if (plan->global_batch >= 0)
            fprintf(file, "; global batch %" PRId64, plan->global_batch);
        fputc('\n', file);
    }
    fputs("stages, first to last:\n", file);
    print_node(file, plan->graph->root, 0);
    fputs("columns of a batch:\n", file);
    for (uint32_t i = 0; i < plan->element_spec.count; i++) {
        char *text = column_spec_text(&plan->element_spec.columns[i]);

        fprintf(file, "  %-20s %s", plan->element_spec.columns[i].name, text);
        print_widen(file, &plan->widen[i]);
        fputc('\n', file);
        free(text);
    }
    fputs("memory: references held ", file);
    print_bytes(file, memory.window_bytes);
    fputs(", a replica's batch ", file);
    print_bytes(file, memory.slice_bytes);
    fputc('\n', file);
    print_lanes(plan, lanes, file);
    print_memory_nodes(file);
    fprintf(file, "compression %s\n", compression_text(&plan->stream->deliver));
    print_remote(plan, file);
    print_resume(plan, file);
    plan_notes(plan, print_note, file);
}

static void
json_numbers(struct json *json, const char *key, const double *numbers, uint32_t count)
{
    json_key(json, key);
    json_array(json);
    for (uint32_t i = 0; i < count; i++)
        json_float(json, numbers[i], 17);
    json_array_end(json);
}

/* The conversions that consumers apply to widened columns. */
static void
json_widen(struct json *json, const struct plan *plan)
{
    json_key(json, "widen");
    json_object(json);
    for (uint32_t i = 0; i < plan->element_spec.count; i++) {
        const struct plan_widen *widen = &plan->widen[i];

        if (widen->dtype == 0)
            continue;
        json_key(json, plan->element_spec.columns[i].name);
        json_object(json);
        json_key_text(json, "dtype", tnd_dtype_name(widen->dtype));
        json_numbers(json, "scale", widen->scale, widen->scale_count);
        json_numbers(json, "offset", widen->offset, widen->offset_count);
        if (widen->layout == TUNDISH_NCHW)
            json_key_text(json, "layout", "NCHW");
        json_object_end(json);
    }
    json_object_end(json);
}

void
print_shape(struct json *json, const struct column_spec *spec)
{
    if (spec->rank == RANK_UNKNOWN) {
        json_null(json);
        return;
    }
    json_array(json);
    for (int k = 0; k < spec->rank; k++)
        if (spec->shape[k] < 0)
            json_null(json);
        else
            json_int(json, spec->shape[k]);
    json_array_end(json);
}

static void
json_columns(struct json *json, const struct schema *schema)
{
    json_array(json);
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct column_spec *spec = &schema->columns[i];

        json_object(json);
        json_key_text(json, "name", spec->name);
        json_key_text(json, "dtype", tnd_dtype_name(spec->dtype));
        json_key(json, "shape");
        print_shape(json, spec);
        json_key_text(json, "kind",
                      spec->kind == TUNDISH_RAGGED   ? "ragged"
                      : spec->kind == TUNDISH_SPARSE ? "sparse"
                                                     : "dense");
        json_object_end(json);
    }
    json_array_end(json);
}

static void
json_node(struct json *json, const struct plan_node *node)
{
    char *learned = plan_learned(node);

    json_object(json);
    json_key_int(json, "node", node->index);
    json_key_text(json, "stage", node->name);
    json_key_text(json, "part", part_of(node));
    if (node->stage != NULL)
        json_key_int(json, "line", node->stage->line);
    if (node->source != NULL && node->source->describe != NULL) {
        char *sentence = node->source->describe(node->state);

        json_key_text(json, "files", sentence);
        free(sentence);
    }
    if (learned != NULL)
        json_key_text(json, "learned", learned);
    free(learned);
    json_key_bool(json, "put_in", node->stage == NULL);
    json_key_bool(json, "sees_whole_batches", node->batch_wide);
    json_key_int(json, "depth", node->depth);
    json_key_int(json, "reference_bytes", (int64_t)(node->width * sizeof(uint64_t)));
    if (node->random) {
        json_key(json, "seeds");
        json_array(json);
        json_uint(json, node->seed);
        json_uint(json, node->seed2);
        json_array_end(json);
    }
    json_key(json, "columns");
    json_columns(json, &node->schema);
    if (node->body != NULL) {
        json_key(json, "body");
        json_node(json, node->body->root);
    }
    json_key(json, "inputs");
    json_array(json);
    for (uint32_t i = 0; i < node->input_count; i++)
        json_node(json, node->inputs[i]);
    json_array_end(json);
    json_object_end(json);
}

static void
json_bytes_or_null(struct json *json, const char *key, int64_t bytes)
{
    json_key(json, key);
    if (bytes < 0)
        json_null(json);
    else
        json_int(json, bytes);
}

static void
json_lanes(struct json *json, const struct plan *plan, const struct plan_lanes *lanes)
{
    json_bytes_or_null(json, "lane_bytes", lanes->lane_bytes);
    json_bytes_or_null(json, "all_lanes_bytes", all_lanes(plan, lanes->lane_bytes));
    json_key_bool(json, "lanes_at_most", !lanes->is_exact);
    json_bytes_or_null(json, "uncompressed_lane_bytes", lanes->as_is_bytes);
    json_bytes_or_null(json, "uncompressed_all_lanes_bytes", all_lanes(plan, lanes->as_is_bytes));
}

static void
json_resume(struct json *json, const struct plan *plan)
{
    char *sentence;

    json_key_text(json, "resume", plan_resume_name(plan_resume_cost(plan, &sentence)));
    json_key_text(json, "resume_reason", sentence);
    free(sentence);
    sentence = plan_draws_sentence(plan);
    if (sentence != NULL)
        json_key_text(json, "random", sentence);
    free(sentence);
}

static void
json_note(void *context, const char *sentence)
{
    json_text(context, sentence);
}

void
plan_print_json(const struct plan *plan, const struct plan_lanes *lanes, FILE *file)
{
    struct plan_memory memory;
    struct json json;

    plan_memory(plan, &memory);
    json_start(&json, file);
    json_object(&json);
    json_key_text(&json, "stream", plan->stream->name);
    json_key_int(&json, "worker", plan->options.worker);
    json_key_int(&json, "num_workers", plan->options.worker_count);
    json_key_int(&json, "replicas", plan->replicas);
    json_key_text(&json, "auto_shard", plan_policy_name(plan->policy));
    json_key_text(&json, "auto_shard_reason", plan->policy_reason);
    if (plan->stream->distribute.evaluation_shards > 0)
        json_key_int(&json, "evaluation_shards", plan->stream->distribute.evaluation_shards);
    else if (plan->stream->distribute.evaluation_shards < 0)
        json_key_text(&json, "evaluation_shards", "auto");
    if (plan->rebatched) {
        json_key_text(&json, "rebatch", plan->rule == REBATCH_CARRY ? "carry" : "split");
        json_key_text(&json, "rebatch_reason", plan->rule_reason);
        json_bytes_or_null(&json, "global_batch", plan->global_batch);
    }
    json_key(&json, "element_spec");
    json_columns(&json, &plan->element_spec);
    json_widen(&json, plan);
    json_key_text(&json, "compression", spec_compression_name(&plan->stream->deliver));
    json_key(&json, "memory");
    json_object(&json);
    json_bytes_or_null(&json, "reference_bytes", memory.window_bytes);
    json_bytes_or_null(&json, "slice_bytes", memory.slice_bytes);
    json_lanes(&json, plan, lanes);
    json_object_end(&json);
    print_remote_json(plan, &json);
    json_resume(&json, plan);
    json_key(&json, "notes");
    json_array(&json);
    plan_notes(plan, json_note, &json);
    json_array_end(&json);
    json_key(&json, "root");
    json_node(&json, plan->graph->root);
    json_object_end(&json);
    fputc('\n', file);
}
