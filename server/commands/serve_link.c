/* serve_link.c - links this server with those of the other nodes. */
#include "commands/serve.h"

#include "commands/serve_crew.h"
#include "commands/serve_signals.h"
#include "core/log.h"
#include "link/agree.h"
#include "session/nodes/agreement.h"
#include "stats/stats_relay.h"

/* Time for the slowest node to start. */
static const int64_t AGREE_NS = 600000000000;

static tundish_status
open_peers(struct serve *serve)
{
    struct peers_options options = {
        .transport = peer_link_transport(serve->link, &serve->peer_link),
        .catalogue = &serve->catalogue,
        .root = serve->file->root,
        .cache_folder = serve->pipeline_options.cache,
        .remote = &serve->file->remote,
    };

    return peers_open(&options, &serve->peers);
}

/* Reach an agreement of all nodes that they serve the same streams. Nothing may be opened before
 * that. */
tundish_status
serve_agree(struct serve *serve)
{
    struct session_options options = serve_session_options(serve);
    struct agreement_options wanted = {
        .file = serve->file,
        .stream = serve->pipeline_options.stream,
        .plan = &options.plan,
        .catalogue = &serve->catalogue,
        .given_seed = serve->pipeline_options.has_seed ? serve->pipeline_options.seed : 0,
        .keeps_places = serve->state != NULL,
        .timeout_ns = AGREE_NS,
        .stop = &serve_stop_signal,
    };
    tundish_status status;

    status = agreement_reach(serve->link, &wanted, &serve->errors);
    return status == TUNDISH_OK && serve->catalogue.is_made ? open_peers(serve) : status;
}

void
serve_hear_others(void *user, uint32_t from, const struct link_key *key, struct byte_view bytes)
{
    struct serve *serve = user;

    if (key != NULL && key->topic == LINK_COUNTERS) {
        stats_relay_keep(serve->stats, from, bytes, link_counters_ns(serve->link, TND_STATS_NODES));
        return;
    }
    if (key != NULL && key->topic == LINK_CREW) {
        serve_crew_hear(serve, key);
        return;
    }
    for (uint32_t i = 0; i < serve->session_count; i++)
        session_link_hear(serve->sessions[i], from, key, bytes);
    named_sessions_link_hear(serve->named_sessions, from, key, bytes);
}

/* Open the link. All nodes use the seed of rank 0. */
tundish_status
serve_open_link(struct serve *serve)
{
    struct link_options options = { .expected_nodes = serve->expected_nodes };
    tundish_status status = link_open(&options, &serve->link);

    if (status == TUNDISH_OK)
        status = agree_on_number(serve->link, &serve->pipeline_options.seed, AGREE_NS,
                                 &serve_stop_signal);
    if (status == TUNDISH_OK && link_size(serve->link) > 1)
        tnd_log(TND_LOG_NOTICE, "link", "rank %u of %u nodes", link_rank(serve->link),
                link_size(serve->link));
    return status;
}

/* Log how many messages the link carried. With steps that are known ahead it should be no message
 * per step. */
void
serve_log_link(const struct serve *serve)
{
    struct link_stats stats;

    if (serve->link == NULL || link_size(serve->link) == 1)
        return;
    link_stats(serve->link, &stats);
    tnd_log(TND_LOG_NOTICE, "link",
            "%llu messages sent (%llu beats, %llu bytes), %llu received; %llu posts; waited %llu "
            "times, %.3f s",
            (unsigned long long)stats.messages_sent, (unsigned long long)stats.beats_sent,
            (unsigned long long)stats.bytes_sent, (unsigned long long)stats.messages_received,
            (unsigned long long)stats.posts_sent, (unsigned long long)stats.waits,
            (double)stats.waited_ns * 1e-9);
}
