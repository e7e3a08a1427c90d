/* node_hear.c - messages of other nodes, checked and taken in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/magic.h"
#include "core/memory.h"
#include "link/kv.h"
#include "link/node_private.h"

static void
take_mail(struct node *node, struct peer *peer, uint32_t from)
{
    struct link_message message = {
        .from = from,
        .key = peer->wire.key,
        .bytes = peer->bytes,
        .byte_count = peer->wire.total,
        .took_ns = tnd_clock_ns() - peer->began_ns,
    };

    peer->bytes = NULL;
    node->stats.mail_received++;
    if (node->config.message_came != NULL)
        node->config.message_came(node->config.user, &message);
    else
        free(message.bytes);
}

/* A post goes one way to each node, but ways may change when nodes go: one that has come before, or
 * an older one, is dropped. */
static void
take_post(struct node *node, uint32_t from, const struct wire *wire, struct byte_view bytes)
{
    struct link_member *origin = &node->members[wire->origin];
    struct payload *payload;

    if (wire->origin == node->config.rank || wire->number <= origin->posts)
        return;
    origin->posts = (uint32_t)wire->number;
    payload = node_payload_make(bytes.data, bytes.size);
    node_say_on(node, from, wire, payload);
    node_payload_release(payload);
    kv_put(node->kv, &wire->key, wire->origin, bytes.data, bytes.size);
    if (node->config.arrived != NULL)
        node->config.arrived(node->config.user, wire->origin, &wire->key, bytes);
}

static void
take_counters(struct node *node, const struct wire *wire, struct byte_view bytes)
{
    struct payload *payload;

    if (node->config.rank == 0) {
        if (node->config.arrived != NULL)
            node->config.arrived(node->config.user, wire->origin, &wire->key, bytes);
        return;
    }
    payload = node_payload_make(bytes.data, bytes.size);
    node_queue_counters(node, wire->origin, payload);
    node_payload_release(payload);
}

static void
take_left(struct node *node, uint32_t from, struct byte_view ranks)
{
    for (; ranks.size >= sizeof(uint32_t);
         ranks.data += sizeof(uint32_t), ranks.size -= sizeof(uint32_t)) {
        uint32_t rank = load_u32(ranks.data);

        if (rank < node->config.size && rank != node->config.rank)
            node_note_left(node, from, rank);
    }
}

/* All of it has come. False: it is malformed. */
static bool
take(struct node *node, struct peer *peer)
{
    const struct wire *wire = &peer->wire;
    struct byte_view bytes = { peer->bytes, wire->total };
    bool is_good = true, is_mail = wire->kind == WIRE_MAIL;

    if (wire->kind == WIRE_HANDED || wire->kind == WIRE_HEARD)
        is_good = node_hear_handed(node, wire, bytes, &is_mail);
    if (is_mail) {
        take_mail(node, peer, wire->kind == WIRE_MAIL ? peer->rank : wire->origin);
        return true;
    }
    if (wire->kind == WIRE_POST)
        take_post(node, peer->rank, wire, bytes);
    else if (wire->kind == WIRE_COUNTERS)
        take_counters(node, wire, bytes);
    else if (wire->kind == WIRE_LEAVE)
        take_left(node, peer->rank, bytes);
    else if (wire->kind == WIRE_UP || wire->kind == WIRE_DOWN)
        is_good = node_hear_tally(node, peer->rank, wire, bytes);
    free(peer->bytes);
    peer->bytes = NULL;
    return is_good;
}

/* Take a piece. False: malformed. Pieces must arrive in order and without gaps. */
static bool
hear_piece(struct node *node, struct peer *peer, const struct wire *wire, struct byte_view piece)
{
    if (wire->offset == 0) {
        /* The sizes come from the network: they are bounded before memory is taken. */
        if (wire->total > POST_BYTES_MAX || peer->bytes != NULL)
            return false;
        peer->wire = *wire;
        peer->began_ns = tnd_clock_ns();
        peer->had = 0;
        peer->bytes = tnd_alloc(wire->total + 1);
    }
    if (peer->bytes == NULL || peer->wire.kind != wire->kind || wire->offset != peer->had ||
        wire->total != peer->wire.total || piece.size > wire->total - peer->had ||
        (piece.size == 0 && wire->total != 0))
        return false;
    if (piece.size > 0)
        memcpy(peer->bytes + peer->had, piece.data, piece.size);
    peer->had += piece.size;
    return peer->had < wire->total || take(node, peer);
}

static bool
hear_wire(struct node *node, struct peer *peer, const struct wire *wire, struct byte_view piece)
{
    switch (wire->kind) {
    case WIRE_BEAT:
        return true;
    case WIRE_ASK:
        node_queue(node, peer->rank, &(struct wire){ .kind = WIRE_BEAT }, NULL);
        return true;
    case WIRE_LOST:
        node_hear_lost(node, peer->rank, wire);
        return true;
    default:
        return hear_piece(node, peer, wire, piece);
    }
}

/* A message of the channel: one wire and its piece after the other. */
static bool
hear_message(struct node *node, struct peer *peer, struct byte_view bytes)
{
    while (bytes.size > 0) {
        struct byte_view piece;
        struct wire wire;

        if (bytes.size < sizeof wire)
            return false;
        memcpy(&wire, bytes.data, sizeof wire);
        piece = (struct byte_view){ bytes.data + sizeof wire, wire.piece_bytes };
        if (wire.magic != TND_WIRE_MAGIC || wire.version != WIRE_VERSION || wire.kind == 0 ||
            wire.kind >= WIRE_KIND_COUNT || wire.origin >= node->config.size ||
            piece.size > bytes.size - sizeof wire || !hear_wire(node, peer, &wire, piece))
            return false;
        bytes.data += sizeof wire + piece.size;
        bytes.size -= sizeof wire + piece.size;
    }
    return true;
}

bool
node_hear(struct node *node, int64_t now_ns)
{
    struct byte_view bytes;
    const void *data;
    uint32_t from;
    bool moved = false;

    while ((bytes.size = node->config.channel->receive(node->config.channel_state, &from, &data)) >
           0) {
        char name[NODE_NAME_BYTES], text[TEXT_BYTES];
        struct peer *peer;

        bytes.data = data;
        moved = true;
        /* The channel should not deliver these; a peer's entry must not be taken on its word. */
        if (from >= node->config.size || from == node->config.rank)
            continue;
        node->stats.messages_received++;
        node->stats.bytes_received += bytes.size;
        peer = node_peer(node, from);
        peer->heard_ns = now_ns;
        peer->owes = false;
        if (hear_message(node, peer, bytes))
            continue;
        snprintf(text, sizeof text,
                 "%s sent a message that this version of Tundish does not know: install the same "
                 "version on every node",
                 node_name(node, from, name));
        node_fail(node, text);
    }
    return moved;
}
