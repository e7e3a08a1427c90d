/* compress_choose.c - savings against costs. */
#include "session/compress_choose.h"

#include <stddef.h>

const struct offer *
compress_offers_best(const struct offer *offers, uint32_t count, const uint64_t *saved)
{
    const struct offer *best = NULL;
    double best_gain = 0;

    for (uint32_t i = 0; i < count; i++) {
        double gain =
            (double)(offers[i].saved - saved[offers[i].column]) / (double)offers[i].cost_ns;

        if (offers[i].saved > saved[offers[i].column] && gain > best_gain) {
            best = &offers[i];
            best_gain = gain;
        }
    }
    return best;
}

static double
gain_of(const struct offer *offer, const struct saving *saving)
{
    return offer == NULL ? 0 : saving->byte_ns * (double)offer->saved - (double)offer->cost_ns;
}

/* Taking any offer ends filling in place, which costs begun_ns once. So the columns pay together or
 * not at all. */
bool
compress_offers_paying(const struct offer *offers, uint32_t count, const struct saving *saving,
                       uint32_t column_count, const struct offer **ret_taken)
{
    double gain = -saving->begun_ns;

    for (uint32_t c = 0; c < column_count; c++)
        ret_taken[c] = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct offer **taken = &ret_taken[offers[i].column];

        if (gain_of(&offers[i], saving) > gain_of(*taken, saving))
            *taken = &offers[i];
    }
    for (uint32_t c = 0; c < column_count; c++)
        gain += gain_of(ret_taken[c], saving);
    for (uint32_t c = 0; c < column_count && gain <= 0; c++)
        ret_taken[c] = NULL;
    return gain > 0;
}
