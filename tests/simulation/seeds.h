/* seeds.h - the seeds that a simulation plays: SEED= alone, new ones for SECONDS=, or the first
 * ones.
 */
#ifndef SIMULATION_SEEDS_H
#define SIMULATION_SEEDS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct seeds {
    uint64_t first, next;
    uint64_t count; /* 0: until then */
    time_t until;
};

/* `count` of them, if neither is asked for. */
struct seeds seeds_begin(uint64_t count);
bool seeds_draw(struct seeds *seeds, uint64_t *ret_seed);

/* Print how many were played, for scripts/soak. */
void seeds_end(const struct seeds *seeds);

#endif
