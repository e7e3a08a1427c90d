/* shuffle_seek.h - the contents of a shuffle's window after any number of draws, without making
 * them all.
 *
 * A draw takes an element out of the window, so the further one goes back, the fewer of the
 * elements held now were already there. Going back from the last draw, about size * log(size) draws
 * tell where each came from, however many there were before.
 */
#ifndef ORDER_SHUFFLE_SHUFFLE_SEEK_H
#define ORDER_SHUFFLE_SHUFFLE_SEEK_H

#include <stddef.h>
#include <stdint.h>

struct shuffle_held {
    uint64_t number; /* of the element in the input: 0 for the first */
    uint32_t slot;   /* of the ring, in which the first `size` elements were put from slot 0 on */
};

/* The size - 1 elements that are held after `draws` (at least 1) draws from a window of `size` that
 * was full at each; those with greater numbers come first. The slot before the ring's head, which
 * is draws % size, is the one that is free. The caller frees. */
struct shuffle_held *shuffle_seek(uint64_t seed, uint64_t seed2, uint32_t size, uint64_t draws);

#endif
