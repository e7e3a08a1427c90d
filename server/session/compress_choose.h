/* compress_choose.h - which columns to store smaller, once it is measured what each would cost and
 * save. Pure: times come from outside.
 */
#ifndef SESSION_COMPRESS_CHOOSE_H
#define SESSION_COMPRESS_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/codec.h"

/* The gain and the cost of a codec for a column of a slice. */
struct offer {
    uint32_t column;
    struct tnd_codec codec;
    uint64_t saved;  /* bytes */
    int64_t cost_ns; /* to encode and decode */
};

/* The worth of a saved byte where memory is tight. */
struct saving {
    double byte_ns;  /* of each byte that is not written and not read */
    double begun_ns; /* what it costs that there is any offer taken */
};

/* Among the offers that save more than their column does already (saved[column]), the one that
 * saves most for its time; or NULL. */
const struct offer *compress_offers_best(const struct offer *offers, uint32_t count,
                                         const uint64_t *saved);

/* For each column the offer whose saving is worth most above its cost, or NULL: into
 * ret_taken[column]. False, and all NULL: together they are not worth their cost. */
bool compress_offers_paying(const struct offer *offers, uint32_t count, const struct saving *saving,
                            uint32_t column_count, const struct offer **ret_taken);

#endif
