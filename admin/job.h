/* job.h - the metrics of all nodes together, as /metrics names them: tundish_job_KIND_FIELD.
 *
 * Sets count together whose labels are alike once those are taken away that tell replicas, threads
 * and objects apart. Counters and histograms grow by what the nodes' grow, so a server that is
 * started again takes nothing away; gauges are the highest of all.
 */
#ifndef ADMIN_JOB_H
#define ADMIN_JOB_H

#include "watch/snapshot.h"

struct job_set {
    struct tnd_stats_kind_entry *kind; /* a copy */
    char labels[TND_STATS_LABEL_BYTES];
    uint64_t *values;                   /* by field */
    struct watch_histogram *histograms; /* of the fields that are histograms, in their order */
    bool is_there;                      /* a node has it now */
};

enum { JOB_SETS = 1024 };
struct job {
    struct job_set *sets[JOB_SETS]; /* those beyond are left out */
    uint32_t count;
    uint32_t last; /* found: the next is most likely the same or the one after */
};

void job_close(struct job *job); /* accepts zeros */

/* One look at all nodes: begin, then each node's snapshot with the one before (NULL: it is the
 * first, itself: nothing is new), then end. */
void job_begin(struct job *job);
void job_note(struct job *job, const struct watch_snapshot *before,
              const struct watch_snapshot *now);
void job_end(struct job *job);

#endif
