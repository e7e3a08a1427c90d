/* lookup_counters.h - the counts of a vocabulary: how many values a part looked up, and how many
 * were absent. */
#ifndef CONTENT_TERMS_LOOKUP_COUNTERS_H
#define CONTENT_TERMS_LOOKUP_COUNTERS_H

#include "column/frame.h"
#include "shm/stats.h"

/* `which` of the stage's vocabularies, in the order in which it says them. */
static inline void
lookup_count(const struct frame *output, uint32_t which, uint64_t lookups, uint64_t absent)
{
    if (output->vocabularies == NULL)
        return;
    tnd_stats_add(&output->vocabularies[which]->lookups, lookups);
    tnd_stats_add(&output->vocabularies[which]->out_of_vocabulary, absent);
}

#endif
