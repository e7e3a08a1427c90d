/* delivery.h - how a reader shares batches with others. In a lane it takes every batch, in order.
 * In a queue each batch goes to one of the readers, and only the server knows the place.
 *
 * A reader takes one of two tables when it attaches, and never asks which.
 */
#ifndef TND_CLIENT_DELIVERY_H
#define TND_CLIENT_DELIVERY_H

#include "client/reader.h"

struct delivery {
    /* It takes batches in order, so that it stands at a place: it knows what it has had, and what
     * is missing. */
    bool is_in_order;

    /* The counter of the entries, and the line that has them. */
    const _Atomic uint64_t *(*counter)(const struct attachment *attachment);
    uint32_t (*line)(const struct attachment *attachment);

    /* Before a wait: ask for a batch. Returns whether the server has to be told. NULL: batches come
     * without that. */
    bool (*ask)(struct attachment *attachment);

    /* Take the end of an epoch. */
    void (*take_end)(tundish_reader *reader, const struct held *held);

    /* With the reader's lock: does the server lack slots, of which this reader holds some? NULL: it
     * never does. */
    bool (*starves)(const struct attachment *attachment);

    /* Have the server tell the place. NULL: the reader knows it. */
    tundish_status (*ask_place)(tundish_reader *reader);
};

extern const struct delivery tnd_delivery_lane, tnd_delivery_queue;

/* Count an entry as taken. tnd_release_entry moves `released` only over entries that are. */
void tnd_delivery_pass(struct attachment *attachment);

/* Take an entry and give it back at once, without showing it to the caller. */
void tnd_delivery_skip(tundish_reader *reader, const struct held *held);

#endif
