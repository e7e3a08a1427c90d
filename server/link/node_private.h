/* node_private.h - the state of a node, for its files: node.c keeps it and looks for the lost,
 * node_send.c queues and sends, node_hear.c takes in what comes, node_tally.c makes one value of
 * all nodes', node_handed.c hands mail on through the tree.
 */
#ifndef LINK_NODE_PRIVATE_H
#define LINK_NODE_PRIVATE_H

#include "link/node.h"
#include "link/tally.h"
#include "link/tree.h"

enum { TEXT_BYTES = 512, WIRE_VERSION = 4 };
static const uint64_t POST_BYTES_MAX = UINT64_C(1) << 32;

enum wire_kind {
    WIRE_BEAT = 1,
    WIRE_ASK,      /* a beat that wants one back */
    WIRE_POST,     /* handed on to all */
    WIRE_COUNTERS, /* handed on to rank 0 */
    WIRE_MAIL,     /* to one node, without a way over others */
    WIRE_HANDED,   /* mail that is handed on through the tree (node_handed.c) */
    WIRE_HEARD,    /* it has come; handed on likewise */
    WIRE_UP,       /* a tally of the nodes below */
    WIRE_DOWN,     /* that of all */
    WIRE_LOST,     /* key.part is the rank; handed on to all */
    WIRE_LEAVE,    /* ranks; handed on to all */
    WIRE_KIND_COUNT
};

/* The head of each piece. A message of the channel holds one after the other. */
struct wire {
    uint32_t magic;
    uint16_t version, kind;
    uint32_t origin; /* POST, COUNTERS, HANDED, HEARD, LOST: the node that says it */
    uint32_t piece_bytes;
    struct link_key key;
    uint64_t total, offset;
    uint64_t number; /* POST: of its origin's; UP, DOWN: struct tally_word; HANDED, HEARD: where to,
                        and which letter */
};

/* wire.number of UP and DOWN. */
struct tally_word {
    uint32_t nodes;
    uint16_t merge, is_running;
};

enum { PIECE_BYTES = CHANNEL_MESSAGE_BYTES - sizeof(struct wire) };

/* Bytes shared by messages to several nodes. */
struct payload {
    uint32_t owners;
    uint64_t byte_count, room;
    uint8_t bytes[];
};

struct outgoing {
    struct outgoing *next;
    struct wire wire;
    struct payload *payload; /* NULL: header only */
};

/* Mail through the tree. */
struct handed {
    struct handed *next;
    int64_t said_ns; /* by its origin */
    struct wire wire;
    struct payload *payload;
};

struct handed_list {
    struct handed *first, **last; /* `last` counts if there is a first */
};

/* A node that this one talks with. */
struct peer {
    uint32_t rank;
    bool is_next;    /* in the tree */
    bool owes;       /* a sign of life, since mail went there */
    bool is_watched; /* in node->watched */
    bool is_sent_to; /* in node->sent_to */
    struct outgoing *first, *last;
    int64_t heard_ns, said_ns;
    struct handed_list unheard; /* mail through the tree to it, which it may not have yet */

    /* The message that arrives in pieces: one at a time, since pieces keep their order. */
    struct wire wire;
    int64_t began_ns;
    uint64_t had;
    uint8_t *bytes;
};

/* A node as this one knows it. */
struct link_member {
    uint32_t posts;                       /* that have come */
    uint32_t letters_sent, letters_heard; /* through the tree: to that node, from it */
    bool left, lost, gone;
    uint32_t name_at; /* in node->names */
};

/* Some of the other nodes. */
struct ranks {
    uint32_t *of;
    uint32_t count, room;
};

/* Counters on their way to rank 0: a node's latest. */
struct counters {
    struct counters *next;
    uint32_t origin;
    struct payload *payload;
};

struct node {
    struct node_config config;
    struct link_member *members; /* by rank */
    struct peer **peers;         /* by rank; NULL: it was never talked with */
    struct ranks watched; /* neighbours, and those that owe a sign of life: perhaps thousands */
    struct ranks sent_to; /* those with a queue */
    uint32_t left_count, first_left;
    uint32_t posts;
    struct kv *kv;
    struct tallies *tallies;
    uint8_t *names; /* entries of LINK_EACH */
    struct counters *counters, **last_counters;
    int64_t counters_ns;               /* when the next may go */
    struct handed_list goes_up;        /* to the parent, soon */
    uint32_t unheard_count;            /* of this node's own, to all */
    int64_t goes_up_ns, says_again_ns; /* when the next may */
    struct link_stats stats;
    int64_t stepped_ns, looks_ns; /* the last turn; when it looks after the watched next */
    bool left, has_failed;
    char failure[TEXT_BYTES];
};

/* Those that are made when they are first asked for. */
struct peer *node_peer(struct node *node, uint32_t rank);
void node_ranks_add(struct ranks *ranks, uint32_t rank);

struct payload *node_payload_make(const void *bytes, size_t byte_count);
void node_payload_release(struct payload *payload); /* accepts NULL */

void node_drop_queue(struct peer *peer);
struct outgoing *node_queue(struct node *node, uint32_t to, const struct wire *wire,
                            struct payload *payload);

/* To all neighbours but one. */
void node_say_on(struct node *node, uint32_t except, const struct wire *wire,
                 struct payload *payload);
void node_say_left(struct node *node, uint32_t to, uint32_t rank);
void node_queue_counters(struct node *node, uint32_t origin, struct payload *payload);

/* Take in mail that goes through the tree, or hand it on. False: it is malformed. ret_own: it is
 * for this node, and new. */
bool node_hear_handed(struct node *node, const struct wire *wire, struct byte_view bytes,
                      bool *ret_own);
void node_say_handed(struct node *node, int64_t now_ns);
void node_drop_handed(struct node *node);
void node_drop_unheard(struct node *node, struct peer *peer); /* nobody will hear it */

/* Send what waits. Beats are queued for the watched, where nothing was sent for a while. */
bool node_say_what_waits(struct node *node, int64_t now_ns);
void node_beat(struct node *node, int64_t now_ns);

/* Take in all that has come. */
bool node_hear(struct node *node, int64_t now_ns);

/* This node hears that another is lost, or has left. */
void node_hear_lost(struct node *node, uint32_t from, const struct wire *wire);
void node_note_left(struct node *node, uint32_t from, uint32_t rank);

/* An UP or DOWN of `from`. False: it is malformed. */
bool node_hear_tally(struct node *node, uint32_t from, const struct wire *wire,
                     struct byte_view bytes);

/* Tell parent and children of the tallies that have changed. */
void node_pass_tallies(struct node *node);

uint32_t node_parent(const struct node *node); /* UINT32_MAX: this one is the root */
uint32_t node_parent_of(const struct node *node, uint32_t rank);
void node_set_names(struct node *node, struct byte_view entries);

#endif
