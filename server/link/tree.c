/* tree.c - the arithmetic of the tree. */
#include "link/tree.h"

uint32_t
tree_parent(uint32_t rank, bool (*is_gone)(const void *context, uint32_t rank), const void *context)
{
    uint32_t root = 0;

    for (uint32_t at = rank; at > 0;) {
        at = (at - 1) / TREE_CHILDREN;
        if (!is_gone(context, at))
            return at;
    }
    while (root < rank && is_gone(context, root))
        root++;
    return root < rank ? root : UINT32_MAX;
}

uint32_t
tree_nodes_below(uint32_t size, uint32_t rank)
{
    uint64_t first = rank, last = rank;
    uint32_t count = 0;

    while (first < size) {
        count += (uint32_t)((last < size ? last : size - 1) - first + 1);
        first = first * TREE_CHILDREN + 1;
        last = last * TREE_CHILDREN + TREE_CHILDREN;
    }
    return count;
}

uint32_t
tree_levels_below(uint32_t size, uint32_t rank)
{
    uint32_t levels = 0;

    for (uint64_t first = rank; first * TREE_CHILDREN + 1 < size; first = first * TREE_CHILDREN + 1)
        levels++;
    return levels;
}

uint32_t
tree_levels(uint32_t size)
{
    uint32_t levels = tree_levels_below(size, 0);

    return levels > 0 ? levels : 1;
}
