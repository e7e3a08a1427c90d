/* identity.c - a stream's parts. */
#include "session/checkpoint/identity.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/memory.h"
#include "session/checkpoint/place_code.h"
#include "session/checkpoint/place_contents.h"

enum { NAME_BYTES = 1024 };

void
identity_add(struct identity *identity, uint64_t hash, const char *format, ...)
{
    char name[NAME_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    identity->parts = tnd_realloc(identity->parts, identity->count + 1, sizeof *identity->parts);
    identity->parts[identity->count++] = (struct agree_part){ tnd_strdup(name), hash };
}

void
identity_close(struct identity *identity)
{
    for (size_t i = 0; i < identity->count; i++)
        free((char *)(uintptr_t)identity->parts[i].name);
    free(identity->parts);
    *identity = (struct identity){ 0 };
}

/* Functions of the user's own, which each node has in files of its own. */
static void
add_code(struct identity *identity, const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];
        uint64_t hash = place_code_of(node);
        char *learned = plan_learned(node);

        if (hash != 0)
            identity_add(identity, hash, "the code of stage '%s' (line %u)", node->name,
                         node->stage->line);
        /* Where the code is alike its rows may still differ. */
        if (learned != NULL)
            identity_add(identity, tnd_hash_farm(learned, strlen(learned)),
                         "what stage '%s' (line %u) was learned to give", node->name,
                         node->stage->line);
        free(learned);
        if (node->body != NULL)
            add_code(identity, node->body);
    }
}

/* The parameters that decide, with the stages, which rows a node's trainers get. */
static void
add_dealing(struct identity *identity, const struct plan *plan)
{
    const struct spec_distribute *distribute = &plan->stream->distribute;
    const struct spec_deliver *deliver = &plan->stream->deliver;
    const struct {
        const char *name;
        uint64_t value;
    } parts[] = {
        { "distribute.delivery", distribute->delivery },
        { "distribute.evaluation_shards", (uint64_t)distribute->evaluation_shards },
        { "distribute.files", distribute->files_local },
        { "distribute.from_function", distribute->from_function },
        { "distribute.drop_remainder_step", distribute->drop_remainder_step },
        { "distribute.even", distribute->even_repeat },
        { "deliver.on_error", deliver->skip_errors },
        { "the number of replicas", plan->replicas },
        { "the number of epochs", deliver->epochs },
        { "distribute.auto_shard", plan->policy },
        { "distribute.rebatch", plan->rebatched ? 1 + (uint64_t)plan->rule : 0 },
    };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        identity_add(identity, parts[i].value, "%s of stream '%s'", parts[i].name,
                     plan->stream->name);
}

static uint64_t
hash_of_widen(uint64_t hash, const struct plan_widen *widen)
{
    const uint64_t numbers[] = { widen->dtype, widen->layout, widen->scale_count,
                                 widen->offset_count };

    hash = tnd_hash_farm_chain(hash, numbers, sizeof numbers);
    hash = tnd_hash_farm_chain(hash, widen->scale, widen->scale_count * sizeof *widen->scale);
    return tnd_hash_farm_chain(hash, widen->offset, widen->offset_count * sizeof *widen->offset);
}

/* As trainers get them. */
static void
add_columns(struct identity *identity, const struct plan *plan)
{
    const struct schema *schema = &plan->element_spec;

    identity_add(identity, schema->count, "the number of columns of stream '%s'",
                 plan->stream->name);
    for (uint32_t i = 0; i < schema->count; i++) {
        char *type = column_spec_text(&schema->columns[i]);
        char *text = tnd_sprintf("%s %s", schema->columns[i].name, type);

        identity_add(identity, hash_of_widen(tnd_hash_farm(text, strlen(text)), &plan->widen[i]),
                     "column %u of stream '%s'", i + 1, plan->stream->name);
        free(text);
        free(type);
    }
}

char *
identity_difference(const struct plan *plan, const struct plan *other)
{
    struct identity one = { 0 }, two = { 0 };
    char *name = NULL;

    add_dealing(&one, plan);
    add_dealing(&two, other);
    add_columns(&one, plan);
    add_columns(&two, other);
    for (size_t i = 0; name == NULL && i < one.count && i < two.count; i++)
        if (one.parts[i].hash != two.parts[i].hash)
            name = tnd_strdup(one.parts[i].name);
    identity_close(&one);
    identity_close(&two);
    return name;
}

tundish_status
identity_add_stream(struct identity *identity, const struct plan *plan)
{
    struct place_files files;
    const char *name = plan->stream->name;
    tundish_status status;

    /* Part by part and with names, so that an error can say which part differs: those that others
     * follow from come first. */
    add_dealing(identity, plan);
    identity_add(identity, place_fingerprint(plan), "stream '%s' (stages, parameters and seeds)",
                 name);
    add_code(identity, plan->graph);
    add_columns(identity, plan);
    status = place_files_open(plan, &files);
    if (status != TUNDISH_OK)
        return status;
    for (uint32_t i = 0; i < files.count; i++)
        if (!files.list[i].is_named)
            identity_add(identity, files.list[i].hash, "file %s", files.list[i].name);
    place_files_close(&files);
    return TUNDISH_OK;
}
