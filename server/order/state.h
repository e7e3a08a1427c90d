/* state.h - what a stage holds, as bytes: numbers of one to ten bytes each, of which small ones are
 * short. They come back from a file, which may hold anything: a reader says so and never goes
 * beyond its end.
 */
#ifndef ORDER_STATE_H
#define ORDER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zeros: empty. */
struct order_state_writer {
    uint8_t *bytes;
    size_t count, room;
};

struct order_state_reader {
    const uint8_t *at, *end;
    bool is_bad; /* it ended within a number, or a number was not the shortest of its value */
};

void order_state_put(struct order_state_writer *writer, uint64_t number);
void order_state_put_signed(struct order_state_writer *writer, int64_t number);
void order_state_close(struct order_state_writer *writer); /* accepts zeros */

/* The next number; 0 if it is bad. */
uint64_t order_state_get(struct order_state_reader *reader);
int64_t order_state_get_signed(struct order_state_reader *reader);

/* Have all bytes been read, and were they good? */
bool order_state_is_whole(const struct order_state_reader *reader);

#endif
