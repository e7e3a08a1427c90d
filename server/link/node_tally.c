/* node_tally.c - values go up the tree, merged on the way, and the root's comes down.
 *
 * A tally that waits for all is told to the parent once, when all nodes below have spoken, and
 * comes down once. A running one is told whenever it has changed, at most once a step of the node.
 *
 * Nodes forget a tally at different times, and may give their values again after that: a session
 * that goes back does. So a value that is given again is told again, and a node that knows the
 * total answers with it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"
#include "link/node_private.h"

static uint64_t
word_of(const struct tally *tally, const struct tally_value *value)
{
    struct tally_word word = { .nodes = value->nodes,
                               .merge = (uint16_t)tally->merge,
                               .is_running = tally->is_running };
    uint64_t number;

    memcpy(&number, &word, sizeof number);
    return number;
}

static void
tell(struct node *node, uint32_t to, enum wire_kind kind, const struct tally *tally,
     const struct tally_value *value)
{
    struct wire wire = { .kind = (uint16_t)kind,
                         .origin = node->config.rank,
                         .key = tally->key,
                         .number = word_of(tally, value) };
    struct payload *payload = node_payload_make(value->bytes, value->byte_count);

    if (to != UINT32_MAX)
        node_queue(node, to, &wire, payload);
    else
        node_say_on(node, node_parent(node), &wire, payload);
    node_payload_release(payload);
}

/* The total is known here: the children are told, and the link. */
static void
conclude(struct node *node, struct tally *tally, struct tally_value *total)
{
    struct link_key key = tally->key;
    struct byte_view bytes;

    if (total->nodes == tally->total.nodes && tally_same_bytes(total, &tally->total))
        return;
    tally_move(&tally->total, total);
    tell(node, UINT32_MAX, WIRE_DOWN, tally, &tally->total);
    bytes = (struct byte_view){ tally->total.bytes, tally->total.byte_count };
    if (key.topic == LINK_HOST)
        node_set_names(node, bytes);
    else if (node->config.arrived != NULL && node->config.size > 1)
        node->config.arrived(node->config.user, 0, &key, bytes);
}

/* Until all have spoken, who has is not news of itself. */
static bool
is_news(const struct tally_value *merged, const struct tally_value *before, uint32_t below)
{
    bool are_all = merged->nodes == below && before->nodes < below;

    return are_all || before->nodes == 0 || !tally_same_bytes(merged, before);
}

static void
pass(struct node *node, struct tally *tally)
{
    uint32_t below = tree_nodes_below(node->config.size, node->config.rank);
    uint32_t parent = node_parent(node);
    struct tally_value merged;

    if (!tally->is_running && tally_nodes(tally) < below)
        return;
    merged = tally_merged(tally);
    if (parent == UINT32_MAX && is_news(&merged, &tally->total, below) &&
        (tally->is_running || tally->total.nodes == 0)) {
        conclude(node, tally, &merged);
    } else if (parent != UINT32_MAX && (tally->is_given || is_news(&merged, &tally->told, below))) {
        tell(node, parent, WIRE_UP, tally, &merged);
        tally_move(&tally->told, &merged);
    }
    tally->is_given = false;
    free(merged.bytes);
}

void
node_pass_tallies(struct node *node)
{
    struct tally *tally;

    while ((tally = tallies_take_changed(node->tallies)) != NULL)
        pass(node, tally);
}

void
node_tally(struct node *node, const struct link_key *key, const struct link_tally *own)
{
    struct tally *tally = tallies_make(node->tallies, key, own->merge, own->is_running);

    must(own->byte_count <= UINT32_MAX / 2);
    /* Another node has begun it, and takes it for one of another kind. */
    if (tally == NULL) {
        node_fail(node, "another node counts otherwise than this version of Tundish: install the "
                        "same version on every node");
        return;
    }
    tally_set(&tally->own, own->merge, node->config.rank,
              (struct byte_view){ own->bytes, own->byte_count });
    tally->is_given = !own->is_running;
    tallies_note_change(node->tallies, tally);
    /* Alone, a node has concluded. */
    if (node->config.size == 1)
        node_pass_tallies(node);
}

bool
node_find_total(const struct node *node, const struct link_key *key, struct link_total *ret_total)
{
    const struct tally *tally = tallies_find(node->tallies, key);

    if (tally == NULL || tally->total.nodes == 0)
        return false;
    *ret_total = (struct link_total){ .nodes = tally->total.nodes,
                                      .bytes = tally->total.bytes,
                                      .byte_count = tally->total.byte_count };
    return true;
}

/* Children are those of the whole tree: a tally needs every node. */
static bool
hear_up(struct node *node, uint32_t from, struct tally *tally, struct tally_value *value)
{
    if (from == 0 || (from - 1) / TREE_CHILDREN != node->config.rank)
        return true;
    if (!tally->is_running && tally->total.nodes > 0) {
        tell(node, from, WIRE_DOWN, tally, &tally->total);
        return true;
    }
    tallies_note_change(node->tallies, tally);
    return tally_hear(tally, from, value);
}

bool
node_hear_tally(struct node *node, uint32_t from, const struct wire *wire, struct byte_view bytes)
{
    struct tally_value value = { .byte_count = bytes.size };
    struct tally_word word;
    struct tally *tally;
    bool is_good = true;

    memcpy(&word, &wire->number, sizeof word);
    if (word.nodes == 0 || word.nodes > node->config.size || word.merge >= LINK_MERGE_COUNT ||
        bytes.size > UINT32_MAX)
        return false;
    value.nodes = word.nodes;
    tally =
        tallies_make(node->tallies, &wire->key, (enum link_merge)word.merge, word.is_running != 0);
    if (tally == NULL)
        return false;
    value.bytes = tnd_alloc(bytes.size + 1);
    if (bytes.size > 0)
        memcpy(value.bytes, bytes.data, bytes.size);
    if (wire->kind == WIRE_UP)
        is_good = hear_up(node, from, tally, &value);
    else if (from == node_parent(node))
        conclude(node, tally, &value);
    free(value.bytes);
    return is_good;
}
