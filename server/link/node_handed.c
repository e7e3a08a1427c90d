/* node_handed.c - mail that nodes hand on through the tree, to one of them.
 *
 * On its way up it waits a little at each node that has others below, and goes on together with
 * what they have: so the root has few messages, however many nodes write to it. A node that is
 * lost takes along what it was to hand on. So who writes keeps a letter until it was heard, and
 * says it again meanwhile; who hears takes each once, in order.
 */
#include <stdlib.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "link/node_private.h"

static const int64_t WAIT_NS = 25000000; /* for each level below */
static const int64_t AGAIN_NS = 500000000;

static void
add(struct handed_list *list, struct handed *letter)
{
    letter->next = NULL;
    if (list->first == NULL)
        list->last = &list->first;
    *list->last = letter;
    list->last = &letter->next;
}

static struct handed *
take_first(struct handed_list *list)
{
    struct handed *first = list->first;

    list->first = first->next;
    return first;
}

static struct handed *
make(const struct wire *wire, struct payload *payload)
{
    struct handed *letter = tnd_zalloc(1, sizeof *letter);

    letter->wire = *wire;
    letter->payload = payload;
    if (payload != NULL)
        payload->owners++;
    return letter;
}

static void
drop(struct handed *letter)
{
    node_payload_release(letter->payload);
    free(letter);
}

void
node_drop_handed(struct node *node)
{
    while (node->goes_up.first != NULL)
        drop(take_first(&node->goes_up));
}

static void
drop_first_unheard(struct node *node, struct peer *peer)
{
    drop(take_first(&peer->unheard));
    node->unheard_count--;
}

void
node_drop_unheard(struct node *node, struct peer *peer)
{
    while (peer->unheard.first != NULL)
        drop_first_unheard(node, peer);
}

/* The next to that node; UINT32_MAX: there is no way. */
static uint32_t
way_to(const struct node *node, uint32_t to)
{
    uint32_t parent;

    for (uint32_t at = to; (parent = node_parent_of(node, at)) != UINT32_MAX; at = parent)
        if (parent == node->config.rank)
            return at;
    return node_parent(node);
}

/* wire.number: where it goes, and its number among those of its origin to that node; of HEARD, the
 * last that came. */
static uint32_t
goes_to(const struct wire *wire)
{
    return (uint32_t)wire->number;
}

static uint32_t
letter_of(const struct wire *wire)
{
    return (uint32_t)(wire->number >> 32);
}

static struct wire
wire_of(const struct node *node, enum wire_kind kind, uint32_t to, uint32_t letter)
{
    return (struct wire){ .kind = (uint16_t)kind,
                          .origin = node->config.rank,
                          .number = (uint64_t)letter << 32 | to };
}

/* Who hears several letters of one node says so once. Only the link's thread does, which also sends
 * what waits: the last of the queue is not under way. */
static bool
is_said_by(const struct outgoing *last, const struct wire *heard)
{
    return last != NULL && last->wire.kind == WIRE_HEARD && last->wire.origin == heard->origin &&
           goes_to(&last->wire) == goes_to(heard);
}

static void
hand_down(struct node *node, uint32_t next, const struct wire *wire, struct payload *payload)
{
    struct outgoing *last = node_peer(node, next)->last;

    if (wire->kind != WIRE_HEARD || !is_said_by(last, wire))
        node_queue(node, next, wire, payload);
    else if (letter_of(&last->wire) < letter_of(wire))
        last->wire.number = wire->number;
}

static void
hand_on(struct node *node, const struct wire *wire, struct payload *payload)
{
    uint32_t to = goes_to(wire), next = way_to(node, to);

    if (node->members[to].lost || next == UINT32_MAX)
        return;
    if (next == node_parent(node))
        add(&node->goes_up, make(wire, payload));
    else
        hand_down(node, next, wire, payload);
}

void
node_send_by_tree(struct node *node, uint32_t to, const struct link_key *key, const void *bytes,
                  size_t byte_count)
{
    struct wire wire = wire_of(node, WIRE_HANDED, to, ++node->members[to].letters_sent);
    struct payload *payload;
    struct handed *letter;

    must(byte_count <= POST_BYTES_MAX && to != node->config.rank && to < node->config.size);
    if (node->members[to].lost)
        return;
    wire.key = *key;
    payload = node_payload_make(bytes, byte_count);
    letter = make(&wire, payload);
    letter->said_ns = tnd_clock_ns();
    add(&node_peer(node, to)->unheard, letter);
    node->unheard_count++;
    hand_on(node, &wire, payload);
    node_payload_release(payload);
    node->stats.mail_sent++;
}

/* All up to that one have come to their node. */
static void
take_heard(struct node *node, uint32_t from, uint32_t letter)
{
    struct peer *peer = node->peers[from];

    while (peer != NULL && peer->unheard.first != NULL &&
           letter_of(&peer->unheard.first->wire) <= letter)
        drop_first_unheard(node, peer);
}

/* Is it the next of its origin? One that came before, or before another, comes again. */
static bool
take_letter(struct node *node, const struct wire *wire)
{
    struct link_member *origin = &node->members[wire->origin];
    bool is_next = letter_of(wire) == origin->letters_heard + 1;
    struct wire heard;

    origin->letters_heard += is_next;
    heard = wire_of(node, WIRE_HEARD, wire->origin, origin->letters_heard);
    hand_on(node, &heard, NULL);
    return is_next;
}

bool
node_hear_handed(struct node *node, const struct wire *wire, struct byte_view bytes, bool *ret_own)
{
    struct payload *payload;

    *ret_own = false;
    if (goes_to(wire) >= node->config.size)
        return false;
    if (wire->origin == node->config.rank)
        return true;
    if (goes_to(wire) != node->config.rank) {
        payload = wire->kind == WIRE_HANDED ? node_payload_make(bytes.data, bytes.size) : NULL;
        hand_on(node, wire, payload);
        node_payload_release(payload);
    } else if (wire->kind == WIRE_HEARD) {
        take_heard(node, wire->origin, letter_of(wire));
    } else {
        *ret_own = take_letter(node, wire);
    }
    return true;
}

bool
node_is_unheard(const struct node *node)
{
    for (uint32_t i = 0; node->unheard_count > 0 && i < node->config.size; i++)
        if (node->peers[i] != NULL && node->peers[i]->unheard.first != NULL &&
            !node->members[i].left)
            return true;
    return false;
}

/* Those that wait to go up, all at once. */
static void
say_up(struct node *node, int64_t now_ns)
{
    uint32_t parent = node_parent(node);

    if (node->goes_up.first == NULL || now_ns < node->goes_up_ns)
        return;
    node->goes_up_ns = now_ns + WAIT_NS * tree_levels_below(node->config.size, node->config.rank);
    while (node->goes_up.first != NULL) {
        struct handed *letter = take_first(&node->goes_up);

        if (parent != UINT32_MAX)
            node_queue(node, parent, &letter->wire, letter->payload);
        drop(letter);
    }
}

/* In their order, since each is heard only after those before it. */
static void
say_again(struct node *node, struct peer *peer, int64_t now_ns)
{
    for (struct handed *letter = peer->unheard.first; letter != NULL; letter = letter->next)
        if (now_ns - letter->said_ns >= AGAIN_NS) {
            letter->said_ns = now_ns;
            hand_on(node, &letter->wire, letter->payload);
        }
}

void
node_say_handed(struct node *node, int64_t now_ns)
{
    say_up(node, now_ns);
    if (node->unheard_count == 0 || now_ns < node->says_again_ns)
        return;
    node->says_again_ns = now_ns + AGAIN_NS;
    for (uint32_t i = 0; i < node->config.size; i++)
        if (node->peers[i] != NULL)
            say_again(node, node->peers[i], now_ns);
}
