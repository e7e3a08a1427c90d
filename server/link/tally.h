/* tally.h - one value made of those of all nodes, on one node of the tree: what it has said itself,
 * what its children have, and what the root has concluded.
 */
#ifndef LINK_TALLY_H
#define LINK_TALLY_H

#include "core/bytes.h"
#include "link/link.h"

/* The values of some nodes, made one. */
struct tally_value {
    uint32_t nodes; /* whose; 0: there is none */
    uint8_t *bytes; /* owned */
    size_t byte_count;
};

struct tally_part {
    uint32_t rank; /* a child */
    struct tally_value value;
};

struct tally {
    struct tally *next;
    struct link_key key;
    enum link_merge merge;
    bool is_running, has_changed;
    bool is_given; /* this node has given its value since it was told */
    uint32_t part_count;
    struct tally_part *parts;
    struct tally_value own, told, total; /* told: to the parent */
};

struct tallies;

struct tallies *tallies_open(void);
void tallies_close(struct tallies *tallies);

/* NULL: there is none. */
struct tally *tallies_find(const struct tallies *tallies, const struct link_key *key);

/* The one there is, or a new one. NULL: the one there is of another kind. */
struct tally *tallies_make(struct tallies *tallies, const struct link_key *key,
                           enum link_merge merge, bool is_running);
void tallies_forget(struct tallies *tallies, const struct link_key *key);

/* One that has changed since it was asked last; NULL: none. */
struct tally *tallies_take_changed(struct tallies *tallies);
void tallies_note_change(struct tallies *tallies, struct tally *tally);

/* A copy of some bytes, as the value of one node. */
void tally_set(struct tally_value *value, enum link_merge merge, uint32_t rank,
               struct byte_view bytes);

/* Take a child's value, which moves here and replaces its last one. False: the bytes cannot be such
 * a value. */
bool tally_hear(struct tally *tally, uint32_t rank, struct tally_value *value);

/* How many have spoken, of this node and those below. */
uint32_t tally_nodes(const struct tally *tally);

/* The merged value of this node and its children; the caller frees its bytes. */
struct tally_value tally_merged(const struct tally *tally);

bool tally_same_bytes(const struct tally_value *a, const struct tally_value *b);
void tally_move(struct tally_value *to, struct tally_value *from);

#endif
