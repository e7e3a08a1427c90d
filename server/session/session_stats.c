/* session_stats.c - a session's metrics. Sets for events that are counted as they happen are made
 * here. Other values are read from time to time. */
#include "session/session_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "order/ops.h"
#include "plan/print.h"
#include "session/lane_size.h"
#include "session/session_private.h"

void
session_stats_label(char labels[TND_STATS_LABEL_BYTES], const struct session *session)
{
    const char *stream = session->plan->stream->name;

    labels[0] = '\0';
    stats_label(labels, "stream", stream);
    if (session->options.name != NULL)
        stats_label(labels, "session", session->options.name);
}

static void
add_plan(struct session *session, struct stats *stats)
{
    struct plan_lanes lanes;
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);

    if (file == NULL)
        return;
    lane_forecast(session->plan, &lanes);
    plan_print_json(session->plan, &lanes, file);
    if (fclose(file) == 0)
        stats_add_text(stats, "plan", session->plan->stream->name, text);
    free(text);
}

static void
label_lane(char labels[TND_STATS_LABEL_BYTES], const struct session *session, uint32_t replica)
{
    session_stats_label(labels, session);
    stats_label_number(labels, "replica",
                       session->plan->options.worker * session->plan->replicas + replica);
}

void
session_stats_open(struct session *session, struct stats *stats)
{
    struct session_stats *counters = &session->counters;
    char labels[TND_STATS_LABEL_BYTES];

    counters->stats = stats;
    session_stats_label(labels, session);
    counters->stream = stats_add(stats, TND_STATS_KIND_stream, labels);
    counters->lanes = tnd_zalloc(session->plan->replicas, sizeof *counters->lanes);
    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        label_lane(labels, session, r);
        counters->lanes[r].values = stats_add(stats, TND_STATS_KIND_lane, labels);
    }
    session_vocabularies_describe(&counters->vocabularies, session);
    health_open(&counters->health, session);
    add_plan(session, stats);
}

void
session_stats_compression(struct session *session, const struct lane_config *lane,
                          const struct slice_bytes *slice, uint64_t arena_allowed)
{
    const struct compressed *compressed = &session->compressed;
    uint64_t replicas = session->plan->replicas;
    struct slice_bytes uncompressed = { .as_is = slice->as_is, .stored = slice->as_is };
    struct lane_config as_is = *lane;
    char labels[TND_STATS_LABEL_BYTES], how[COMPRESS_TEXT_BYTES], packed[COMPRESS_TEXT_BYTES] = "";
    struct tnd_stats_compression *values;

    session_stats_label(labels, session);
    compress_describe(&session->fill, how);
    stats_label(labels, "asked", spec_compression_name(&session->plan->stream->deliver));
    stats_label(labels, "how", how);
    stats_label(labels, "why", compress_reason(compressed->why));
    if (session->packed.columns != NULL)
        compress_describe(&session->packed, packed);
    stats_label(labels, "on_devices", packed);
    values = stats_add(session->counters.stats, TND_STATS_KIND_compression, labels);
    session->counters.compression = values;
    lane_give_size(&session->fill, &uncompressed, &as_is);
    tnd_stats_set(&values->lanes, replicas * lane_segment_bytes(lane));
    tnd_stats_set(&values->uncompressed, replicas * lane_segment_bytes(&as_is));
    tnd_stats_set(&values->room, replicas * arena_allowed);
    tnd_stats_set(&values->batch, slice->stored);
    tnd_stats_set(&values->saved, slice->as_is - slice->stored);
    tnd_stats_set(&values->cost, (uint64_t)compressed->cost_ns);
    tnd_stats_set(&values->worth, (uint64_t)compressed->worth_ns);
}

void
session_stats_close(struct session *session)
{
    struct session_stats *counters = &session->counters;

    if (counters->stats == NULL)
        return;
    stats_drop(counters->stats, counters->stream);
    stats_drop(counters->stats, counters->compression);
    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        stats_drop(counters->stats, counters->lanes[r].values);
        for (int i = 0; i < LANE_ENCODINGS; i++)
            stats_drop(counters->stats, counters->lanes[r].encodings[i]);
    }
    session_readers_close(&counters->readers, counters->stats);
    session_vocabularies_close(&counters->vocabularies, counters->stats);
    health_close(&counters->health, counters->stats);
    free(counters->lanes);
}

/* Stages that only move references have no content to make. */
static bool
makes_content(const struct plan_node *node)
{
    if (node->content != NULL || node->batch_wide)
        return true;
    switch (node->order->form) {
    case ORDER_READS:
    case ORDER_BATCHES:
    case ORDER_REBATCHES:
    case ORDER_UNBATCHES:
    case ORDER_FUNCTION:
        return true;
    case ORDER_PASSES:
    case ORDER_NUMBERS:
    case ORDER_SLICES:
    case ORDER_ZIPS:
    case ORDER_BRANCHES:
        break;
    }
    return false;
}

/* The line number tells stages of the same name apart. Stages that distribution adds have none. */
static void
label_stage(char labels[TND_STATS_LABEL_BYTES], const struct session *session,
            const struct plan_node *node, const char *part)
{
    session_stats_label(labels, session);
    stats_label(labels, "stage", node->name);
    stats_label_number(labels, "node", node->index);
    if (node->stage != NULL)
        stats_label_number(labels, "line", node->stage->line);
    stats_label(labels, "part", part);
}

static void
add_stages(struct worker_stats *counters, const struct session *session,
           const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];
        struct evaluation_stage *stage = &counters->evaluation.stages[node->index];
        char labels[TND_STATS_LABEL_BYTES];

        if (node->body != NULL)
            add_stages(counters, session, node->body);
        if (!makes_content(node))
            continue;
        label_stage(labels, session, node, "content");
        stage->values = stats_add(session->counters.stats, TND_STATS_KIND_stage, labels);
        tnd_stats_set(&stage->values->source, node->source != NULL);
        stage->what = stats_offset(session->counters.stats, stage->values);
    }
}

/* Sets for what the order does with references, beside the sets for the content of the same
 * stages. */
static void
add_order(struct worker_stats *counters, const struct session *session,
          const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];
        char labels[TND_STATS_LABEL_BYTES];

        if (node->body != NULL)
            add_order(counters, session, node->body);
        if (node->order == NULL)
            continue;
        label_stage(labels, session, node, "order");
        counters->evaluation.order[node->index] =
            stats_add(session->counters.stats, TND_STATS_KIND_stage, labels);
    }
}

void
session_worker_stats_open(struct worker_stats *counters, const struct session *session,
                          const char *thread)
{
    struct stats *stats = session->counters.stats;
    char labels[TND_STATS_LABEL_BYTES];

    session_stats_label(labels, session);
    stats_label(labels, "thread", thread);
    counters->thread = stats_add(stats, TND_STATS_KIND_thread, labels);
    counters->evaluation.track = stats_add_track(stats, session->plan->stream->name, thread);
    counters->evaluation.stages =
        tnd_zalloc(session->plan->node_count, sizeof *counters->evaluation.stages);
    add_stages(counters, session, session->plan->graph);
    if (counters == &session->dealing.counters) {
        counters->evaluation.order =
            tnd_zalloc(session->plan->node_count, sizeof(struct tnd_stats_stage *));
        add_order(counters, session, session->plan->graph);
    }
    session_vocabularies_count(&counters->vocabularies, session, &counters->evaluation);
}

void
session_worker_stats_close(struct worker_stats *counters, const struct session *session)
{
    struct stats *stats = session->counters.stats;

    if (counters->evaluation.stages == NULL)
        return;
    for (uint32_t i = 0; i < session->plan->node_count; i++) {
        stats_drop(stats, counters->evaluation.stages[i].values);
        if (counters->evaluation.order != NULL)
            stats_drop(stats, counters->evaluation.order[i]);
        free(counters->evaluation.stages[i].vocabularies);
    }
    session_vocabularies_close(&counters->vocabularies, stats);
    stats_drop(stats, counters->thread);
    stats_drop_track(stats, counters->evaluation.track);
    free(counters->evaluation.stages);
    free(counters->evaluation.order);
}

static void
show_encodings(struct session *session, uint32_t replica, const struct lane_stats *lane)
{
    struct session_lane_counters *counters = &session->counters.lanes[replica];

    for (int i = 0; i < LANE_ENCODINGS; i++) {
        struct tnd_stats_encoding *values = counters->encodings[i];

        if (lane->encoded[i].buffers == 0)
            continue;
        if (values == NULL) {
            char labels[TND_STATS_LABEL_BYTES];

            label_lane(labels, session, replica);
            stats_label(labels, "codec", lane_encoding_name((enum lane_encoding)i));
            values = stats_add(session->counters.stats, TND_STATS_KIND_encoding, labels);
            counters->encodings[i] = values;
        }
        tnd_stats_set(&values->buffers, lane->encoded[i].buffers);
        tnd_stats_set(&values->decoded, lane->encoded[i].decoded_bytes);
        tnd_stats_set(&values->stored, lane->encoded[i].stored_bytes);
    }
}

static void
show_lanes(struct session *session)
{
    uint64_t lag = 0;
    bool awaits_readers = atomic_load(&session->dealing.awaits_shards);

    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        struct tnd_stats_lane *values = session->counters.lanes[r].values;
        struct lane_stats lane;

        lane_stats(feed_lane(session->feed, r), &lane);
        lag = lane.published - lane.taken > lag ? lane.published - lane.taken : lag;
        awaits_readers |= lane.starves;
        show_encodings(session, r, &lane);
        tnd_stats_set(&values->occupied, lane.taken - lane.released);
        tnd_stats_set(&values->segments, lane.segment_bytes);
        tnd_stats_set(&values->slots, session->plan->stream->deliver.slots);
        tnd_stats_set(&values->published, lane.published);
        tnd_stats_set(&values->released, lane.released);
        tnd_stats_set(&values->taken, lane.taken);
        tnd_stats_set(&values->payload, lane.payload_bytes);
        tnd_stats_set(&values->own_segments, lane.own_segment_count);
        tnd_stats_set(&values->arena, lane.arena_bytes);
        tnd_stats_set(&values->decoded, lane.decoded_bytes);
        tnd_stats_set(&values->stored, lane.stored_bytes);
    }
    tnd_stats_set(&session->counters.stream->lag, lag);
    tnd_stats_set(&session->counters.stream->awaits_readers, awaits_readers);
}

void
session_show(struct session *session)
{
    struct tnd_stats_stream *stream = session->counters.stream;
    struct source_files_stats files;
    struct feed_losses losses;

    source_files_stats(session->files, &files);
    tnd_stats_set(&stream->rows_read, files.rows_read);
    tnd_stats_set(&stream->read, files.bytes_read);
    tnd_stats_set(&stream->scanned, files.bytes_scanned);
    tnd_stats_set(&stream->program_wait, files.program_wait_ns);
    feed_losses(session->feed, &losses);
    tnd_stats_set(&stream->trainers_lost, losses.trainers);
    tnd_stats_set(&stream->groups_lost, losses.groups);
    ring_show(session, stream);
    show_lanes(session);
    session_readers_show(session);
}
