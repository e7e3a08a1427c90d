/* node.c - the protocol of one node: posts, mail, heartbeats, and detection of lost nodes. It has
 * no threads and no lock; the link calls it with its lock held. */
#include "link/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/magic.h"
#include "core/memory.h"
#include "core/must.h"
#include "link/kv.h"

enum { NAME_BYTES = 128, TEXT_BYTES = 512, WIRE_VERSION = 2 };
static const uint64_t POST_BYTES_MAX = UINT64_C(1) << 32;

enum wire_kind { WIRE_BEAT = 1, WIRE_POST, WIRE_LOST, WIRE_LEAVE, WIRE_MAIL };

/* Header of every message. */
struct wire {
    uint32_t magic;
    uint16_t version, kind;
    struct link_key key;    /* LOST: key.part is the rank */
    uint64_t total, offset; /* of a post or mail, which may be sent in pieces */
};

enum { PIECE_BYTES = CHANNEL_MESSAGE_BYTES - sizeof(struct wire) };

/* Bytes shared by messages to several nodes. */
struct payload {
    uint32_t owners;
    uint64_t byte_count;
    uint8_t bytes[];
};

struct outgoing {
    struct outgoing *next;
    struct wire wire;
    struct payload *payload; /* NULL: header only */
};

struct peer {
    char name[NAME_BYTES];
    struct outgoing *first, *last;
    int64_t heard_ns, said_ns;
    bool left, lost;

    /* The post or mail that is arriving in pieces: one at a time, since pieces keep their order. */
    enum wire_kind kind;
    struct link_key key;
    int64_t began_ns;
    uint64_t total, had;
    uint8_t *bytes;
};

struct node {
    struct node_config config;
    struct peer *peers; /* by rank; the own entry is unused */
    struct kv *kv;
    struct link_stats stats;
    int64_t stepped_ns;
    bool left, has_failed;
    char failure[TEXT_BYTES];
};

static void
set_name(struct node *node, uint32_t rank, struct byte_view host)
{
    int bytes = host.size < 100 ? (int)host.size : 100;

    snprintf(node->peers[rank].name, NAME_BYTES, "node %.*s (rank %u)", bytes,
             host.size > 0 ? (const char *)host.data : "", rank);
}

void
node_open(const struct node_config *config, struct node **ret_node)
{
    struct node *node = tnd_zalloc(1, sizeof *node);
    struct link_key key = { .topic = LINK_HOST };

    node->config = *config;
    node->kv = kv_open(config->size);
    node->peers = tnd_zalloc(config->size, sizeof *node->peers);
    node->stepped_ns = tnd_clock_ns();
    /* Silence counts from here, so a node that never speaks is found as well. */
    for (uint32_t i = 0; i < config->size; i++) {
        node->peers[i].heard_ns = node->stepped_ns;
        node->peers[i].said_ns = node->stepped_ns;
        snprintf(node->peers[i].name, NAME_BYTES, "the node of rank %u", i);
    }
    set_name(node, config->rank, bytes_of_text(config->host));
    node_post(node, &key, config->host, strlen(config->host));
    *ret_node = node;
}

static void
drop_first(struct peer *peer)
{
    struct outgoing *first = peer->first;

    peer->first = first->next;
    if (peer->first == NULL)
        peer->last = NULL;
    if (first->payload != NULL && --first->payload->owners == 0)
        free(first->payload);
    free(first);
}

void
node_close(struct node *node)
{
    if (node == NULL)
        return;
    for (uint32_t i = 0; i < node->config.size; i++) {
        while (node->peers[i].first != NULL)
            drop_first(&node->peers[i]);
        free(node->peers[i].bytes);
    }
    free(node->peers);
    kv_close(node->kv);
    free(node);
}

static void
queue_message(struct node *node, uint32_t to, enum wire_kind kind, const struct link_key *key,
              struct payload *payload)
{
    struct peer *peer = &node->peers[to];
    struct outgoing *message = tnd_zalloc(1, sizeof *message);

    message->wire = (struct wire){ .magic = TND_WIRE_MAGIC, .version = WIRE_VERSION };
    message->wire.kind = (uint16_t)kind;
    if (key != NULL)
        message->wire.key = *key;
    message->payload = payload;
    if (payload != NULL) {
        message->wire.total = payload->byte_count;
        payload->owners++;
    }
    if (peer->last != NULL)
        peer->last->next = message;
    else
        peer->first = message;
    peer->last = message;
}

static void
say_to_all(struct node *node, enum wire_kind kind, const struct link_key *key,
           struct payload *payload)
{
    for (uint32_t i = 0; i < node->config.size; i++)
        if (i != node->config.rank && !node->peers[i].left && !node->peers[i].lost)
            queue_message(node, i, kind, key, payload);
}

void
node_post(struct node *node, const struct link_key *key, const void *bytes, size_t byte_count)
{
    struct payload *payload = tnd_alloc(sizeof *payload + byte_count);

    must(byte_count <= POST_BYTES_MAX);
    payload->owners = 1;
    payload->byte_count = byte_count;
    if (byte_count > 0)
        memcpy(payload->bytes, bytes, byte_count);
    /* Only rank 0 shows counters, so they go to no other node and are not kept. */
    if (key->topic == LINK_COUNTERS) {
        if (node->config.rank != 0 && !node->peers[0].left)
            queue_message(node, 0, WIRE_POST, key, payload);
    } else {
        kv_put(node->kv, key, node->config.rank, bytes, byte_count);
        say_to_all(node, WIRE_POST, key, payload);
        node->stats.posts_sent++;
    }
    /* Nobody else may have taken it: there may be one node, or all others have left. */
    if (--payload->owners == 0)
        free(payload);
}

void
node_send(struct node *node, uint32_t to, const struct link_key *key, const void *bytes,
          size_t byte_count)
{
    struct payload *payload;

    must(byte_count <= POST_BYTES_MAX && to != node->config.rank && to < node->config.size);
    if (node->peers[to].lost)
        return;
    payload = tnd_alloc(sizeof *payload + byte_count);
    payload->owners = 0;
    payload->byte_count = byte_count;
    if (byte_count > 0)
        memcpy(payload->bytes, bytes, byte_count);
    queue_message(node, to, WIRE_MAIL, key, payload);
    node->stats.mail_sent++;
}

uint64_t
node_queued(const struct node *node, uint32_t to)
{
    uint64_t bytes = 0;

    for (const struct outgoing *at = node->peers[to].first; at != NULL; at = at->next)
        bytes += at->wire.total - at->wire.offset;
    return bytes;
}

void
node_leave(struct node *node)
{
    if (node->left)
        return;
    for (uint32_t i = 0; i < node->config.size; i++)
        if (i != node->config.rank) /* nodes that left wait for this message */
            queue_message(node, i, WIRE_LEAVE, NULL, NULL);
    node->left = true;
}

/* Send the next piece of the first message to a peer. False: the channel is full. */
static bool
send_piece(struct node *node, uint32_t to)
{
    struct outgoing *message = node->peers[to].first;
    uint64_t left = message->payload != NULL ? message->wire.total - message->wire.offset : 0;
    size_t piece = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    uint8_t bytes[CHANNEL_MESSAGE_BYTES];

    memcpy(bytes, &message->wire, sizeof message->wire);
    if (piece > 0)
        memcpy(bytes + sizeof message->wire, message->payload->bytes + message->wire.offset, piece);
    if (!node->config.channel->send(node->config.channel_state, to, bytes,
                                    sizeof message->wire + piece))
        return false;
    node->stats.messages_sent++;
    node->stats.bytes_sent += sizeof message->wire + piece;
    message->wire.offset += piece;
    if (piece == left)
        drop_first(&node->peers[to]);
    return true;
}

/* Any message is a sign of life, so a beat is sent only if nothing else was for a while. */
static bool
say_what_waits(struct node *node, int64_t now_ns)
{
    bool moved = false;

    for (uint32_t to = 0; to < node->config.size; to++) {
        struct peer *peer = &node->peers[to];

        if (to == node->config.rank)
            continue;
        if (peer->first == NULL && !peer->left && !peer->lost &&
            now_ns - peer->said_ns >= node->config.beat_ns) {
            queue_message(node, to, WIRE_BEAT, NULL, NULL);
            node->stats.beats_sent++;
        }
        while (peer->first != NULL && send_piece(node, to)) {
            peer->said_ns = now_ns;
            moved = true;
        }
    }
    return moved;
}

void
node_fail(struct node *node, const char *text)
{
    if (node->has_failed)
        return;
    node->has_failed = true;
    snprintf(node->failure, sizeof node->failure, "%s", text);
}

/* Mark a peer as lost and drop everything queued for it. */
static void
give_up(struct node *node, uint32_t rank)
{
    struct peer *peer = &node->peers[rank];

    peer->lost = true;
    while (rank != node->config.rank && peer->first != NULL)
        drop_first(peer);
}

/* All nodes are told, so that they fail by one reason within a beat, not each by its own silence.
 */
static void
lose(struct node *node, uint32_t rank)
{
    struct link_key key = { .part = rank };
    char text[TEXT_BYTES];

    snprintf(text, sizeof text,
             "%s has been silent for %.1f s: it has died, hangs, or cannot be reached",
             node->peers[rank].name, (double)node->config.silence_ns * 1e-9);
    node_fail(node, text);
    give_up(node, rank);
    queue_message(node, rank, WIRE_LOST, &key,
                  NULL); /* it may just have been stopped, and must then fail too */
    say_to_all(node, WIRE_LOST, &key, NULL);
}

/* Look for peers that have been silent too long. Time in which this node itself was stopped does
 * not count against the others. */
static void
look_for_the_silent(struct node *node, int64_t now_ns)
{
    int64_t stood_ns = now_ns - node->stepped_ns;

    node->stepped_ns = now_ns;
    for (uint32_t i = 0; i < node->config.size; i++) {
        struct peer *peer = &node->peers[i];

        if (stood_ns > node->config.beat_ns)
            peer->heard_ns += stood_ns;
        if (i != node->config.rank && !peer->left && !peer->lost &&
            now_ns - peer->heard_ns > node->config.silence_ns)
            lose(node, i);
    }
}

static void
take_message(struct node *node, uint32_t from)
{
    struct peer *peer = &node->peers[from];
    struct link_message message = {
        .from = from,
        .key = peer->key,
        .bytes = peer->bytes,
        .byte_count = peer->total,
        .took_ns = tnd_clock_ns() - peer->began_ns,
    };

    peer->bytes = NULL;
    node->stats.mail_received++;
    if (node->config.message_came != NULL)
        node->config.message_came(node->config.user, &message);
    else
        free(message.bytes);
}

static void
take_post(struct node *node, uint32_t from)
{
    struct peer *peer = &node->peers[from];
    struct byte_view bytes = { peer->bytes, peer->total };

    if (peer->kind == WIRE_MAIL) {
        take_message(node, from);
        return;
    }
    if (peer->key.topic == LINK_HOST)
        set_name(node, from, bytes);
    kv_put(node->kv, &peer->key, from, peer->bytes, peer->total);
    if (node->config.arrived != NULL)
        node->config.arrived(node->config.user, from, &peer->key, bytes);
    free(peer->bytes);
    peer->bytes = NULL;
}

/* Take a piece of a post or mail. False: malformed. Pieces must arrive in order and without gaps.
 */
static bool
hear_piece(struct node *node, uint32_t from, const struct wire *wire, struct byte_view piece)
{
    struct peer *peer = &node->peers[from];

    if (wire->offset == 0) {
        /* The sizes come from the network: they are bounded before memory is taken. */
        if (wire->total > POST_BYTES_MAX || peer->bytes != NULL)
            return false;
        peer->kind = wire->kind;
        peer->began_ns = tnd_clock_ns();
        peer->key = wire->key;
        peer->total = wire->total;
        peer->had = 0;
        peer->bytes = tnd_alloc(wire->total + 1);
    }
    if (peer->bytes == NULL || peer->kind != wire->kind || wire->offset != peer->had ||
        wire->total != peer->total || piece.size > peer->total - peer->had ||
        (piece.size == 0 && peer->total != 0))
        return false;
    if (piece.size > 0)
        memcpy(peer->bytes + peer->had, piece.data, piece.size);
    peer->had += piece.size;
    if (peer->had == peer->total)
        take_post(node, from);
    return true;
}

static void
hear_lost(struct node *node, uint32_t from, uint64_t rank)
{
    char text[TEXT_BYTES];

    /* This may be about this node itself: the others have given it up, so it must end as well. */
    if (rank < node->config.size)
        give_up(node, (uint32_t)rank);
    if (rank == node->config.rank)
        snprintf(text, sizeof text,
                 "%s has received nothing from this node for too long and treats it as lost",
                 node->peers[from].name);
    else
        snprintf(text, sizeof text, "%s says that %s is lost", node->peers[from].name,
                 rank < node->config.size ? node->peers[rank].name : "a node");
    node_fail(node, text);
}

static bool
hear_message(struct node *node, uint32_t from, struct byte_view bytes)
{
    struct wire wire;

    if (bytes.size < sizeof wire)
        return false;
    memcpy(&wire, bytes.data, sizeof wire);
    bytes.data += sizeof wire;
    bytes.size -= sizeof wire;
    if (wire.magic != TND_WIRE_MAGIC || wire.version != WIRE_VERSION)
        return false;
    if (wire.kind == WIRE_POST || wire.kind == WIRE_MAIL)
        return hear_piece(node, from, &wire, bytes);
    if (wire.kind == WIRE_LOST)
        hear_lost(node, from, wire.key.part);
    else if (wire.kind == WIRE_LEAVE)
        node->peers[from].left = true;
    return wire.kind >= WIRE_BEAT && wire.kind <= WIRE_MAIL;
}

static bool
hear(struct node *node, int64_t now_ns)
{
    struct byte_view bytes;
    const void *data;
    uint32_t from;
    bool moved = false;

    while ((bytes.size = node->config.channel->receive(node->config.channel_state, &from, &data)) >
           0) {
        char text[TEXT_BYTES];

        bytes.data = data;
        moved = true;
        /* The channel should not deliver these; a peer's entry must not be taken on its word. */
        if (from >= node->config.size || from == node->config.rank)
            continue;
        node->stats.messages_received++;
        node->stats.bytes_received += bytes.size;
        node->peers[from].heard_ns = now_ns;
        if (hear_message(node, from, bytes))
            continue;
        snprintf(text, sizeof text,
                 "%s sent a message that this version of Tundish does not know: install the same "
                 "version on every node",
                 node->peers[from].name);
        node_fail(node, text);
    }
    return moved;
}

bool
node_step(struct node *node)
{
    int64_t now_ns = tnd_clock_ns();
    bool moved = hear(node, now_ns);

    /* After hearing: messages that lay in the channel while this node was stopped count. */
    look_for_the_silent(node, now_ns);
    return say_what_waits(node, now_ns) || moved;
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
}

uint32_t
node_first_left(const struct node *node)
{
    for (uint32_t i = 0; i < node->config.size; i++)
        if (node->peers[i].left)
            return i;
    return node->config.size;
}

bool
node_has_left(const struct node *node, uint32_t rank)
{
    return node->peers[rank].left;
}

bool
node_is_lost(const struct node *node, uint32_t rank)
{
    return node->peers[rank].lost;
}

bool
node_is_done(const struct node *node)
{
    for (uint32_t i = 0; i < node->config.size; i++)
        if (i != node->config.rank && (!node->peers[i].left || node->peers[i].first != NULL))
            return false;
    return node->left;
}

const char *
node_failure(const struct node *node)
{
    return node->has_failed ? node->failure : NULL;
}

const char *
node_name(const struct node *node, uint32_t rank)
{
    return node->peers[rank].name;
}

void
node_stats(const struct node *node, struct link_stats *ret_stats)
{
    *ret_stats = node->stats;
}
