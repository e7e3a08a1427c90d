/* index_share.c - find the missing indexes, share out the work, and send the results to all. */
#include "session/nodes/index_share.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "session/checkpoint/place_files.h"
#include "source/files/files.h"
#include "source/source.h"

struct sharing {
    struct link *link;
    uint32_t stream;
    int64_t timeout_ns;
    const _Atomic int *stop;
    const char *kind; /* the name of the source that reads the files */
    struct source_files *files;
    struct place_files list;
    uint8_t *wanted; /* by file: 1 here, 2 anywhere */
    uint32_t made, got;
};

static bool
is_packed(const struct plan_node *node)
{
    const struct spec_value *packed =
        node->stage == NULL || stage_parameter(node->stage->info, "compression_type") < 0
            ? NULL
            : spec_get(node->stage, "compression_type");

    return packed != NULL && (packed->kind != SPEC_TEXT || packed->text[0] != '\0');
}

/* The one source of files whose records lie apart, as they are. NULL: none, or several. */
static const struct source_ops *
find_source(const struct plan_graph *graph, const struct source_ops *found, bool *ret_several)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];
        bool reads = node->source != NULL && node->source->reads_files;

        if (reads && (is_packed(node) || (found != NULL && node->source != found)))
            *ret_several = true;
        if (reads)
            found = node->source;
        if (node->body != NULL)
            found = find_source(node->body, found, ret_several);
    }
    return found;
}

static bool
is_data(const struct sharing *sharing, uint32_t index)
{
    return sharing->list.list[index].is_data && !sharing->list.list[index].is_named;
}

static struct link_key
key_of(const struct sharing *sharing, uint64_t part)
{
    return (struct link_key){ .topic = LINK_INDEX, .stream = sharing->stream, .part = part };
}

static tundish_status
find_wanted(struct sharing *sharing)
{
    uint32_t count = sharing->list.count;
    struct link_key key = key_of(sharing, 0);
    struct link_tally tally = { .merge = LINK_ANY, .byte_count = count };
    struct link_total total = { 0 };
    tundish_status status;

    sharing->wanted = tnd_zalloc(count + 1, 1);
    for (uint32_t i = 0; i < count; i++)
        sharing->wanted[i] =
            is_data(sharing, i) &&
            source_index_is_wanted(sharing->files, sharing->list.list[i].name, sharing->kind);
    tally.bytes = sharing->wanted;
    status =
        link_tally_all(sharing->link, &key, &tally, sharing->timeout_ns, sharing->stop, &total);
    for (uint32_t i = 0; i < count && i < total.byte_count; i++)
        sharing->wanted[i] |= total.bytes[i] != 0 ? 2 : 0;
    free(total.bytes);
    link_forget(sharing->link, &key);
    return status;
}

/* Posted even if it failed, with no bytes: the other nodes wait for it. */
static void
make_own(struct sharing *sharing, uint32_t index)
{
    const char *name = sharing->list.list[index].name;
    struct link_key key = key_of(sharing, 1 + (uint64_t)index);
    struct source_index made;
    uint8_t *bytes = NULL;
    size_t byte_count = 0;

    must_in_debug(sharing->wanted[index] != 0);
    if (sharing->wanted[index] & 1) {
        sharing->made++;
        (void)source_index_build(sharing->files, name, sharing->kind, NULL, NULL, &made);
    }
    if (source_index_export(sharing->files, name, sharing->kind, &bytes, &byte_count) != TUNDISH_OK)
        byte_count = 0;
    link_post(sharing->link, &key, bytes, byte_count);
    free(bytes);
}

struct awaited {
    struct link_key key;
    uint32_t owner;
    uint8_t *bytes;
    size_t byte_count;
};

static bool
has_come(struct link *link, void *context)
{
    struct awaited *awaited = context;

    return link_find(link, &awaited->key, awaited->owner, &awaited->bytes, &awaited->byte_count);
}

static tundish_status
take_from(struct sharing *sharing, uint32_t index, uint32_t owner)
{
    struct awaited awaited = { .key = key_of(sharing, 1 + (uint64_t)index), .owner = owner };
    tundish_status status =
        link_wait(sharing->link, has_come, &awaited, sharing->timeout_ns, sharing->stop);

    if (status != TUNDISH_OK)
        return status;
    if (awaited.byte_count > 0 && (sharing->wanted[index] & 1)) {
        sharing->got++;
        if (source_index_import(sharing->files, sharing->list.list[index].name, sharing->kind,
                                awaited.bytes, awaited.byte_count) != TUNDISH_OK)
            tnd_log(TND_LOG_WARNING, "index", "%s", tnd_error_text());
    }
    free(awaited.bytes);
    return TUNDISH_OK;
}

/* Make first and take after, so that no node waits while it has work to do. */
static tundish_status
exchange_indexes(struct sharing *sharing)
{
    uint32_t size = link_size(sharing->link), rank = link_rank(sharing->link), turn = 0;
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < sharing->list.count; i++)
        if (sharing->wanted[i] != 0 && turn++ % size == rank)
            make_own(sharing, i);
    turn = 0;
    for (uint32_t i = 0; status == TUNDISH_OK && i < sharing->list.count; i++) {
        struct link_key key = key_of(sharing, 1 + (uint64_t)i);

        if (sharing->wanted[i] == 0)
            continue;
        if (turn % size != rank)
            status = take_from(sharing, i, turn % size);
        turn++;
        link_forget(sharing->link, &key);
    }
    return status;
}

tundish_status
index_share(struct link *link, const struct plan *plan, uint32_t stream, int64_t timeout_ns,
            const _Atomic int *stop)
{
    struct source_files_options options = {
        .root = plan->file->root,
        .cache_folder = plan->options.cache_folder,
        .remote = &plan->file->remote,
    };
    struct sharing sharing = { link, stream, timeout_ns, stop, .kind = NULL };
    const struct source_ops *source;
    bool several = false;
    tundish_status status;

    source = find_source(plan->graph, NULL, &several);
    if (link_size(link) == 1 || plan->policy == SHARD_FILE || several ||
        plan->stream->distribute.files_local || plan_fetches_once(plan) || source == NULL ||
        !source->shares_index)
        return TUNDISH_OK;
    sharing.kind = source->name;
    status = source_files_open(&options, &sharing.files);
    if (status == TUNDISH_OK)
        status = place_files_open(plan, &sharing.list);
    if (status == TUNDISH_OK)
        status = find_wanted(&sharing);
    if (status == TUNDISH_OK)
        status = exchange_indexes(&sharing);
    if (status == TUNDISH_OK && sharing.made + sharing.got > 0)
        tnd_log(TND_LOG_NOTICE, "index", "stream %s: %u files indexed here, %u by other nodes",
                plan->stream->name, sharing.made, sharing.got);
    free(sharing.wanted);
    place_files_close(&sharing.list);
    source_files_close(sharing.files);
    return status;
}
