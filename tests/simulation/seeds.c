/* seeds.c - see seeds.h. */
#include "seeds.h"

#include <stdio.h>
#include <stdlib.h>

struct seeds
seeds_begin(uint64_t count)
{
    const char *one = getenv("SEED"), *seconds = getenv("SECONDS");
    struct seeds seeds = { .first = 1, .count = count };

    if (one != NULL) {
        seeds.first = strtoull(one, NULL, 10);
        seeds.count = 1;
    } else if (seconds != NULL) {
        /* More than are played in a second, so that no later run has the same. */
        seeds.first = (uint64_t)time(NULL) << 20;
        seeds.count = 0;
        seeds.until = time(NULL) + (time_t)strtoull(seconds, NULL, 10);
    }
    seeds.next = seeds.first;
    return seeds;
}

bool
seeds_draw(struct seeds *seeds, uint64_t *ret_seed)
{
    if (seeds->count > 0 ? seeds->next - seeds->first >= seeds->count : time(NULL) >= seeds->until)
        return false;
    *ret_seed = seeds->next++;
    return true;
}

void
seeds_end(const struct seeds *seeds)
{
    printf("%llu runs from seed %llu\n", (unsigned long long)(seeds->next - seeds->first),
           (unsigned long long)seeds->first);
}
