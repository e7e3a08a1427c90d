/* tree.h - who hands on to whom: nodes form a tree, so that none talks with many.
 *
 * The parent of rank r is (r - 1) / 8. A node that is gone is passed over: its children are its
 * nearest ancestor's that is there; without one they are the root's, which is then the lowest rank
 * that is there.
 */
#ifndef LINK_TREE_H
#define LINK_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum { TREE_CHILDREN = 8 };

/* UINT32_MAX: it is the root. `is_gone` says so of a rank. */
uint32_t tree_parent(uint32_t rank, bool (*is_gone)(const void *context, uint32_t rank),
                     const void *context);

/* The nodes from this one down, where none is gone. */
uint32_t tree_nodes_below(uint32_t size, uint32_t rank);

/* From this one to the lowest of those, where none is gone. */
uint32_t tree_levels_below(uint32_t size, uint32_t rank);

/* From the root to the lowest node, at least 1. */
uint32_t tree_levels(uint32_t size);

#endif
