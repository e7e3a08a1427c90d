/* shuffle_seek.c - computes the contents of a shuffle's window by undoing its draws.
 *
 * Draw j finds the oldest element at the head of the ring, slot j % size. It takes the element of
 * some slot, moves the oldest there, and element size + j enters where the oldest was. Backwards:
 * the element in the drawn slot after draw j was at the head before it, and the element at the head
 * after it is the new one, size + j. Each slot is labelled with the slot where its element ends up,
 * if it stays.
 *
 * Few elements survive many draws, so all labels are resolved after about size * log(size) draws,
 * however far the position is.
 */
#include "order/shuffle/shuffle_seek.h"

#include <stdbool.h>
#include <stdlib.h>

#include "core/memory.h"
#include "order/shuffle/shuffle_draws.h"

enum { CHUNK = 4096 };

struct seek {
    uint32_t size;
    struct modulo by_size;
    uint32_t *labels; /* per slot: where its element ends up */
    uint64_t *wanted; /* one bit per slot: it has a label; few have, far back */
    struct shuffle_held *held;
    uint32_t found, left;
};

static inline bool
is_wanted(const struct seek *seek, uint64_t slot)
{
    return (seek->wanted[slot / 64] >> slot % 64 & 1) != 0;
}

static inline void
set_wanted(struct seek *seek, uint64_t slot, bool wanted)
{
    uint64_t bit = UINT64_C(1) << slot % 64;

    seek->wanted[slot / 64] = (seek->wanted[slot / 64] & ~bit) | (wanted ? bit : 0);
}

/* The element in this slot is number `number` of the input: record where it ends up. */
static inline void
take_found(struct seek *seek, uint64_t slot, uint64_t number)
{
    seek->held[seek->found++] = (struct shuffle_held){ number, seek->labels[slot] };
    seek->left--;
}

/* Undo draw `draw`, made with the head at `head`. */
static inline void
undo(struct seek *seek, uint64_t draw, uint64_t head, uint32_t word)
{
    uint64_t drawn = head + modulo(seek->by_size, word);

    if (drawn >= seek->size)
        drawn -= seek->size;
    if (is_wanted(seek, head)) {
        take_found(seek, head, seek->size + draw);
        set_wanted(seek, head, false);
    }
    if (drawn != head && is_wanted(seek, drawn)) {
        seek->labels[head] = seek->labels[drawn];
        set_wanted(seek, head, true);
        set_wanted(seek, drawn, false);
    }
}

/* Undo draws [begin, end), last first. */
static void
undo_some(struct seek *seek, uint64_t begin, uint64_t end, const uint32_t *words)
{
    uint64_t head = end % seek->size;

    for (uint64_t draw = end; draw > begin && seek->left > 0;) {
        draw--;
        head = head == 0 ? seek->size - 1 : head - 1;
        undo(seek, draw, head, words[draw - begin]);
    }
}

struct shuffle_held *
shuffle_seek(uint64_t seed, uint64_t seed2, uint32_t size, uint64_t draws)
{
    struct seek seek = {
        .size = size,
        .by_size = modulo_of(size),
        .labels = tnd_alloc(size * sizeof *seek.labels),
        .wanted = tnd_zalloc(size / 64 + 1, sizeof *seek.wanted),
        .held = tnd_alloc(size * sizeof *seek.held),
        .left = size - 1,
    };
    uint32_t words[CHUNK];

    for (uint32_t slot = 0; slot < size; slot++) {
        /* After the last draw, the slot of its head waits for the next element. */
        seek.labels[slot] = slot;
        set_wanted(&seek, slot, slot != (draws - 1) % size);
    }
    for (uint64_t end = draws; end > 0 && seek.left > 0;) {
        uint64_t begin = (end - 1) / CHUNK * CHUNK;
        struct tnd_philox philox = tnd_philox_of_seeds(seed, seed2);

        tnd_philox_skip(&philox, begin / 4);
        tnd_philox_fill(&philox, (size_t)(end - begin + 3) / 4, words);
        undo_some(&seek, begin, end, words);
        end = begin;
    }
    /* Labels left at the first draw belong to the elements that filled the window initially. */
    for (uint32_t slot = size; slot-- > 0 && seek.left > 0;)
        if (is_wanted(&seek, slot))
            take_found(&seek, slot, slot);
    free(seek.labels);
    free(seek.wanted);
    return seek.held;
}
