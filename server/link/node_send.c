/* node_send.c - queues to other nodes, and messages of the channel made of them. */
#include <stdlib.h>
#include <string.h>

#include "core/magic.h"
#include "core/memory.h"
#include "link/node_private.h"

struct payload *
node_payload_make(const void *bytes, size_t byte_count)
{
    struct payload *payload = tnd_alloc(sizeof *payload + byte_count);

    *payload = (struct payload){ .owners = 1, .byte_count = byte_count, .room = byte_count };
    if (byte_count > 0)
        memcpy(payload->bytes, bytes, byte_count);
    return payload;
}

void
node_payload_release(struct payload *payload)
{
    if (payload != NULL && --payload->owners == 0)
        free(payload);
}

struct outgoing *
node_queue(struct node *node, uint32_t to, const struct wire *wire, struct payload *payload)
{
    struct peer *peer = node_peer(node, to);
    struct outgoing *message = tnd_zalloc(1, sizeof *message);

    message->wire = *wire;
    message->wire.magic = TND_WIRE_MAGIC;
    message->wire.version = WIRE_VERSION;
    message->wire.offset = 0;
    message->wire.total = payload != NULL ? payload->byte_count : 0;
    message->payload = payload;
    if (payload != NULL)
        payload->owners++;
    if (peer->last != NULL)
        peer->last->next = message;
    else
        peer->first = message;
    peer->last = message;
    if (!peer->is_sent_to)
        node_ranks_add(&node->sent_to, to);
    peer->is_sent_to = true;
    return message;
}

void
node_say_on(struct node *node, uint32_t except, const struct wire *wire, struct payload *payload)
{
    for (uint32_t i = 0; i < node->watched.count; i++) {
        uint32_t to = node->watched.of[i];

        if (to != except && node->peers[to]->is_next)
            node_queue(node, to, wire, payload);
    }
}

/* Many leave at once: their ranks share a message. */
void
node_say_left(struct node *node, uint32_t to, uint32_t rank)
{
    struct outgoing *last = node_peer(node, to)->last;
    struct payload *ranks;

    if (last == NULL || last->wire.kind != WIRE_LEAVE || last->wire.offset > 0 ||
        last->payload->byte_count == last->payload->room) {
        ranks = tnd_alloc(sizeof *ranks + PIECE_BYTES);
        *ranks = (struct payload){ .owners = 1, .room = PIECE_BYTES / sizeof rank * sizeof rank };
        last = node_queue(node, to, &(struct wire){ .kind = WIRE_LEAVE }, ranks);
        node_payload_release(ranks);
    }
    memcpy(last->payload->bytes + last->payload->byte_count, &rank, sizeof rank);
    last->payload->byte_count += sizeof rank;
    last->wire.total = last->payload->byte_count;
}

/* Those of a node that are still here are old now. */
void
node_queue_counters(struct node *node, uint32_t origin, struct payload *payload)
{
    struct counters *at = node->counters;

    while (at != NULL && at->origin != origin)
        at = at->next;
    payload->owners++;
    if (at != NULL) {
        node_payload_release(at->payload);
        at->payload = payload;
        return;
    }
    at = tnd_zalloc(1, sizeof *at);
    at->origin = origin;
    at->payload = payload;
    *node->last_counters = at;
    node->last_counters = &at->next;
}

/* One after the other and not too often, so that rank 0 has few messages from many nodes: from each
 * of its children as many a second as the tree has levels. */
static void
say_counters(struct node *node, int64_t now_ns)
{
    struct counters *first = node->counters;
    uint32_t parent = node_parent(node);

    if (first == NULL || now_ns < node->counters_ns)
        return;
    node->counters_ns = now_ns + node->config.counters_ns / tree_levels(node->config.size);
    node->counters = first->next;
    if (node->counters == NULL)
        node->last_counters = &node->counters;
    if (parent != UINT32_MAX)
        node_queue(node, parent,
                   &(struct wire){
                       .kind = WIRE_COUNTERS, .origin = first->origin, .key.topic = LINK_COUNTERS },
                   first->payload);
    node_payload_release(first->payload);
    free(first);
}

static void
drop_first(struct peer *peer)
{
    struct outgoing *first = peer->first;

    peer->first = first->next;
    if (peer->first == NULL)
        peer->last = NULL;
    node_payload_release(first->payload);
    free(first);
}

/* As many queued messages as find room, and a piece of the next. Returns the bytes; `ret_whole`
 * counts those that are sent with them, `ret_piece` is the piece of the next. */
static size_t
pack(const struct peer *peer, uint8_t bytes[CHANNEL_MESSAGE_BYTES], uint32_t *ret_whole,
     size_t *ret_piece)
{
    size_t used = 0;

    *ret_whole = 0;
    *ret_piece = 0;
    for (const struct outgoing *at = peer->first; at != NULL; at = at->next) {
        struct wire wire = at->wire;
        size_t left = (size_t)(wire.total - wire.offset);
        size_t room = CHANNEL_MESSAGE_BYTES - used, piece;

        if (room < sizeof wire + (left > 0))
            break;
        piece = left < room - sizeof wire ? left : room - sizeof wire;
        wire.piece_bytes = (uint32_t)piece;
        memcpy(bytes + used, &wire, sizeof wire);
        used += sizeof wire;
        if (piece > 0)
            memcpy(bytes + used, at->payload->bytes + wire.offset, piece);
        used += piece;
        if (piece < left) {
            *ret_piece = piece;
            break;
        }
        ++*ret_whole;
    }
    return used;
}

/* False: the channel is full, or nothing waits. */
static bool
send_some(struct node *node, struct peer *peer)
{
    uint8_t bytes[CHANNEL_MESSAGE_BYTES];
    uint32_t whole;
    size_t piece, byte_count = pack(peer, bytes, &whole, &piece);

    if (byte_count == 0 ||
        !node->config.channel->send(node->config.channel_state, peer->rank, bytes, byte_count))
        return false;
    node->stats.messages_sent++;
    node->stats.bytes_sent += byte_count;
    for (; whole > 0; whole--)
        drop_first(peer);
    if (piece > 0)
        peer->first->wire.offset += piece;
    return true;
}

/* Any message is a sign of life, so a beat is sent only if nothing else was for a while. One that
 * has left and is still there looks after its neighbours as well. */
static void
beat(struct node *node, struct peer *peer, int64_t now_ns)
{
    if (peer->first != NULL || node->members[peer->rank].lost || !(peer->is_next || peer->owes) ||
        now_ns - peer->said_ns < node->config.beat_ns)
        return;
    node_queue(node, peer->rank, &(struct wire){ .kind = peer->owes ? WIRE_ASK : WIRE_BEAT }, NULL);
    node->stats.beats_sent++;
}

void
node_beat(struct node *node, int64_t now_ns)
{
    for (uint32_t i = 0; i < node->watched.count; i++)
        beat(node, node->peers[node->watched.of[i]], now_ns);
}

bool
node_say_what_waits(struct node *node, int64_t now_ns)
{
    uint32_t kept = 0;
    bool moved = false;

    say_counters(node, now_ns);
    node_say_handed(node, now_ns);
    for (uint32_t i = 0; i < node->sent_to.count; i++) {
        struct peer *peer = node->peers[node->sent_to.of[i]];

        while (peer->first != NULL && send_some(node, peer)) {
            peer->said_ns = now_ns;
            moved = true;
        }
        peer->is_sent_to = peer->first != NULL;
        if (peer->is_sent_to) /* the channel is full */
            node->sent_to.of[kept++] = peer->rank;
    }
    node->sent_to.count = kept;
    return moved;
}

uint64_t
node_queued(const struct node *node, uint32_t to)
{
    uint64_t bytes = 0;

    if (node->peers[to] == NULL)
        return 0;
    for (const struct outgoing *at = node->peers[to]->first; at != NULL; at = at->next)
        bytes += at->wire.total - at->wire.offset;
    return bytes;
}

void
node_drop_queue(struct peer *peer)
{
    while (peer->first != NULL)
        drop_first(peer);
}
