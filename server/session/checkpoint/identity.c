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

tundish_status
identity_add_stream(struct identity *identity, const struct plan *plan)
{
    struct place_files files;
    const char *name = plan->stream->name;
    tundish_status status;

    /* Part by part and with names, so that an error can say which part differs. */
    identity_add(identity, place_fingerprint(plan), "stream '%s' (stages, parameters and seeds)",
                 name);
    identity_add(identity, plan->replicas, "the number of replicas of stream '%s'", name);
    identity_add(identity, plan->stream->deliver.epochs, "the number of epochs of stream '%s'",
                 name);
    add_code(identity, plan->graph);
    status = place_files_open(plan, &files);
    if (status != TUNDISH_OK)
        return status;
    for (uint32_t i = 0; i < files.count; i++)
        identity_add(identity, files.list[i].hash, "file %s", files.list[i].name);
    place_files_close(&files);
    return TUNDISH_OK;
}
