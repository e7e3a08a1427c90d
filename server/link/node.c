/* node.c - who is there: neighbours, the lost, those that left. It has no threads and no lock; the
 * link calls it with its lock held. */
#include "link/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "link/kv.h"
#include "link/node_private.h"

enum { LOOKS_A_BEAT = 10 };

static const struct link_key host_key = { .topic = LINK_HOST };

struct peer *
node_peer(struct node *node, uint32_t rank)
{
    struct peer *peer = node->peers[rank];

    if (peer != NULL)
        return peer;
    peer = tnd_zalloc(1, sizeof *peer);
    peer->rank = rank;
    peer->heard_ns = peer->said_ns = node->stepped_ns;
    node->peers[rank] = peer;
    return peer;
}

void
node_ranks_add(struct ranks *ranks, uint32_t rank)
{
    if (ranks->count == ranks->room) {
        ranks->room = ranks->room * 2 + 16;
        ranks->of = tnd_realloc(ranks->of, ranks->room, sizeof *ranks->of);
    }
    ranks->of[ranks->count++] = rank;
}

static void
watch(struct node *node, struct peer *peer)
{
    if (!peer->is_watched)
        node_ranks_add(&node->watched, peer->rank);
    peer->is_watched = true;
}

static bool
is_gone(const void *node, uint32_t rank)
{
    const struct link_member *member = &((const struct node *)node)->members[rank];

    return member->lost || member->gone;
}

uint32_t
node_parent_of(const struct node *node, uint32_t rank)
{
    return tree_parent(rank, is_gone, node);
}

uint32_t
node_parent(const struct node *node)
{
    return node_parent_of(node, node->config.rank);
}

/* A node that comes to be next to this one may have missed what went over the one between. */
static void
greet(struct node *node, struct peer *peer)
{
    peer->is_next = true;
    peer->heard_ns = node->stepped_ns;
    watch(node, peer);
    for (uint32_t i = 0; i < node->config.size; i++) {
        if (node->members[i].left || (i == node->config.rank && node->left))
            node_say_left(node, peer->rank, i);
        if (node->members[i].lost)
            node_queue(
                node, peer->rank,
                &(struct wire){ .kind = WIRE_LOST, .origin = node->config.rank, .key.part = i },
                NULL);
    }
}

/* Who is next to this node, after others have gone. */
static void
node_find_neighbours(struct node *node)
{
    uint32_t own = node->config.rank;
    uint32_t parent = node_parent(node);

    for (uint32_t rank = 0; rank < node->config.size; rank++) {
        bool is_next = rank != own && !is_gone(node, rank) &&
                       (rank == parent || tree_parent(rank, is_gone, node) == own);

        if (is_next && !node_peer(node, rank)->is_next)
            greet(node, node->peers[rank]);
        else if (!is_next && node->peers[rank] != NULL)
            node->peers[rank]->is_next = false;
    }
}

void
node_open(const struct node_config *config, struct node **ret_node)
{
    struct node *node = tnd_zalloc(1, sizeof *node);
    struct link_tally host = { .merge = LINK_EACH,
                               .bytes = (const uint8_t *)config->host,
                               .byte_count = strnlen(config->host, NODE_NAME_BYTES / 2) };

    node->config = *config;
    node->kv = kv_open();
    node->tallies = tallies_open();
    node->members = tnd_zalloc(config->size, sizeof *node->members);
    node->peers = tnd_zalloc(config->size, sizeof(struct peer *));
    node->first_left = config->size;
    node->last_counters = &node->counters;
    /* Silence counts from here, so a node that never speaks is found as well. */
    node->stepped_ns = tnd_clock_ns();
    node_find_neighbours(node);
    node_tally(node, &host_key, &host);
    *ret_node = node;
}

void
node_close(struct node *node)
{
    if (node == NULL)
        return;
    for (uint32_t i = 0; i < node->config.size; i++)
        if (node->peers[i] != NULL) {
            node_drop_queue(node->peers[i]);
            node_drop_unheard(node, node->peers[i]);
            free(node->peers[i]->bytes);
            free(node->peers[i]);
        }
    while (node->counters != NULL) {
        struct counters *first = node->counters;

        node->counters = first->next;
        node_payload_release(first->payload);
        free(first);
    }
    node_drop_handed(node);
    free(node->peers);
    free(node->members);
    free(node->watched.of);
    free(node->sent_to.of);
    free(node->names);
    kv_close(node->kv);
    tallies_close(node->tallies);
    free(node);
}

void
node_set_names(struct node *node, struct byte_view entries)
{
    struct byte_view rest = entries, host;
    uint32_t rank;

    if (node->names != NULL)
        return;
    node->names = tnd_alloc(entries.size + 1);
    memcpy(node->names, entries.data, entries.size);
    rest.data = node->names;
    while (link_next_of_each(&rest, &rank, &host))
        if (rank < node->config.size)
            node->members[rank].name_at = (uint32_t)(host.data - node->names);
}

const char *
node_name(const struct node *node, uint32_t rank, char ret_name[NODE_NAME_BYTES])
{
    uint32_t at = node->members[rank].name_at;
    const char *host = at > 0 ? (const char *)node->names + at : "";
    size_t byte_count = at > 0 ? load_u32(node->names + at - sizeof(uint32_t)) : 0;

    if (at == 0 && rank == node->config.rank) {
        host = node->config.host;
        byte_count = strlen(host);
        at = 1;
    }
    if (at > 0)
        snprintf(ret_name, NODE_NAME_BYTES, "node %.*s (rank %u)",
                 byte_count < 100 ? (int)byte_count : 100, host, rank);
    else
        snprintf(ret_name, NODE_NAME_BYTES, "the node of rank %u", rank);
    return ret_name;
}

void
node_post(struct node *node, const struct link_key *key, const void *bytes, size_t byte_count)
{
    struct payload *payload = node_payload_make(bytes, byte_count);
    struct wire wire = { .kind = WIRE_POST, .origin = node->config.rank, .key = *key };

    must(byte_count <= POST_BYTES_MAX);
    /* Only rank 0 shows counters, so they go to no other node and are not kept. */
    if (key->topic == LINK_COUNTERS) {
        if (node->config.rank != 0)
            node_queue_counters(node, node->config.rank, payload);
    } else {
        wire.number = ++node->posts;
        kv_put(node->kv, key, node->config.rank, bytes, byte_count);
        node_say_on(node, node->config.rank, &wire, payload);
        node->stats.posts_sent++;
    }
    node_payload_release(payload);
}

void
node_send(struct node *node, uint32_t to, const struct link_key *key, const void *bytes,
          size_t byte_count)
{
    struct wire wire = { .kind = WIRE_MAIL, .origin = node->config.rank, .key = *key };
    struct payload *payload;
    struct peer *peer;

    must(byte_count <= POST_BYTES_MAX && to != node->config.rank && to < node->config.size);
    if (node->members[to].lost)
        return;
    payload = node_payload_make(bytes, byte_count);
    node_queue(node, to, &wire, payload);
    node_payload_release(payload);
    node->stats.mail_sent++;
    peer = node->peers[to];
    if (!peer->is_next && !peer->owes) {
        peer->owes = true;
        peer->heard_ns = tnd_clock_ns();
        watch(node, peer);
    }
}

void
node_note_left(struct node *node, uint32_t from, uint32_t rank)
{
    if (node->members[rank].left)
        return;
    node->members[rank].left = true;
    node->left_count++;
    if (rank < node->first_left)
        node->first_left = rank;
    for (uint32_t i = 0; i < node->watched.count; i++) {
        uint32_t to = node->watched.of[i];

        if (to != from && node->peers[to]->is_next)
            node_say_left(node, to, rank);
    }
}

void
node_leave(struct node *node)
{
    if (node->left)
        return;
    node->left = true;
    for (uint32_t i = 0; i < node->watched.count; i++)
        if (node->peers[node->watched.of[i]]->is_next) /* nodes that left wait for this message */
            node_say_left(node, node->watched.of[i], node->config.rank);
}

void
node_fail(struct node *node, const char *text)
{
    if (node->has_failed)
        return;
    node->has_failed = true;
    snprintf(node->failure, sizeof node->failure, "%s", text);
}

/* Mark a node as lost, and drop everything queued for it. It may just have been stopped, or be cut
 * off from the node that says so, and must then fail too: its neighbours tell it. */
static void
give_up(struct node *node, uint32_t rank, const struct wire *wire)
{
    bool tells = wire->origin == node->config.rank;

    node->members[rank].lost = true;
    if (rank == node->config.rank)
        return;
    if (node->peers[rank] != NULL) {
        tells |= node->peers[rank]->is_next;
        node_drop_queue(node->peers[rank]);
        node_drop_unheard(node, node->peers[rank]);
    }
    node_find_neighbours(node);
    if (tells)
        node_queue(node, rank, wire, NULL);
}

/* All nodes are told, so that they fail by one reason at once, not each by its own silence. */
static void
node_lose(struct node *node, uint32_t rank)
{
    struct wire wire = { .kind = WIRE_LOST, .origin = node->config.rank, .key.part = rank };
    char name[NODE_NAME_BYTES], text[TEXT_BYTES];

    snprintf(text, sizeof text,
             "%s has been silent for %.1f s: it has died, hangs, or cannot be reached",
             node_name(node, rank, name), (double)node->config.silence_ns * 1e-9);
    node_fail(node, text);
    give_up(node, rank, &wire);
    node_say_on(node, rank, &wire, NULL);
}

void
node_hear_lost(struct node *node, uint32_t from, const struct wire *wire)
{
    char first[NODE_NAME_BYTES], other[NODE_NAME_BYTES], text[TEXT_BYTES];
    uint32_t rank = (uint32_t)wire->key.part;

    if (wire->key.part >= node->config.size || node->members[rank].lost)
        return;
    /* This may be about this node itself: the others have given it up, so it must end as well. */
    give_up(node, rank, wire);
    if (rank == node->config.rank)
        snprintf(text, sizeof text,
                 "%s has received nothing from this node for too long and treats it as lost",
                 node_name(node, wire->origin, first));
    else
        snprintf(text, sizeof text, "%s says that %s is lost", node_name(node, wire->origin, first),
                 node_name(node, rank, other));
    node_fail(node, text);
    node_say_on(node, from, wire, NULL);
}

/* A neighbour that has left, and is silent now, hands nothing on any more. */
static void
find_silent(struct node *node, struct peer *peer)
{
    struct link_member *member = &node->members[peer->rank];

    if (member->lost || member->gone)
        return;
    if (!member->left) {
        node_lose(node, peer->rank);
    } else if (peer->is_next) {
        member->gone = true;
        node_drop_queue(peer);
        node_find_neighbours(node);
    }
}

/* Time in which this node itself was stopped does not count against others. */
static void
forgive_pause(struct node *node, int64_t now_ns)
{
    int64_t stood_ns = now_ns - node->stepped_ns;

    node->stepped_ns = now_ns;
    for (uint32_t i = 0; stood_ns > node->config.beat_ns && i < node->watched.count; i++) {
        struct peer *peer = node->peers[node->watched.of[i]];

        peer->heard_ns = peer->heard_ns < now_ns - stood_ns ? peer->heard_ns + stood_ns : now_ns;
    }
}

static void
look_for_the_silent(struct node *node, int64_t now_ns)
{
    for (uint32_t i = 0; i < node->watched.count; i++) {
        struct peer *peer = node->peers[node->watched.of[i]];

        if ((peer->is_next || peer->owes) && now_ns - peer->heard_ns > node->config.silence_ns)
            find_silent(node, peer);
    }
}

/* Those that are not next to this node, and have been heard from, need not be looked after. */
static void
rest(struct node *node)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < node->watched.count; i++) {
        struct peer *peer = node->peers[node->watched.of[i]];

        if (node->members[peer->rank].left || node->members[peer->rank].lost)
            peer->owes = false;
        peer->is_watched = peer->is_next || peer->owes;
        if (peer->is_watched)
            node->watched.of[kept++] = peer->rank;
    }
    node->watched.count = kept;
}

bool
node_step(struct node *node)
{
    int64_t now_ns = tnd_clock_ns();
    bool moved = node_hear(node, now_ns);

    /* After hearing: messages that lay in the channel while this node was stopped count. */
    forgive_pause(node, now_ns);
    if (now_ns >= node->looks_ns) {
        node->looks_ns = now_ns + node->config.beat_ns / LOOKS_A_BEAT;
        look_for_the_silent(node, now_ns);
        node_beat(node, now_ns);
        rest(node);
    }
    node_pass_tallies(node);
    moved |= node_say_what_waits(node, now_ns);
    return moved;
}

bool
node_find(const struct node *node, const struct link_key *key, uint32_t rank,
          struct byte_view *ret_bytes)
{
    return kv_find(node->kv, key, rank, ret_bytes);
}

void
node_forget(struct node *node, const struct link_key *key)
{
    kv_forget(node->kv, key);
    tallies_forget(node->tallies, key);
}

uint32_t
node_first_left(const struct node *node)
{
    return node->first_left;
}

bool
node_has_left(const struct node *node, uint32_t rank)
{
    return node->members[rank].left;
}

bool
node_is_lost(const struct node *node, uint32_t rank)
{
    return node->members[rank].lost;
}

bool
node_is_done(const struct node *node)
{
    if (!node->left || node->left_count + 1 < node->config.size)
        return false;
    for (uint32_t i = 0; i < node->sent_to.count; i++)
        if (node->peers[node->sent_to.of[i]]->first != NULL)
            return false;
    return true;
}

const char *
node_failure(const struct node *node)
{
    return node->has_failed ? node->failure : NULL;
}

void
node_stats(const struct node *node, struct link_stats *ret_stats)
{
    *ret_stats = node->stats;
}
