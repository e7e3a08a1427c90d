/* agreement.h - the agreement of a job's servers before they open a session. */
#ifndef SESSION_NODES_AGREEMENT_H
#define SESSION_NODES_AGREEMENT_H

#include "link/link.h"
#include "plan/plan.h"

struct agreement_options {
    const struct spec_file *file;
    const char *stream; /* the only one that is served; NULL: all */
    const struct plan_options *plan;
    struct catalogue *catalogue; /* plan->catalogue, which is made here where files are local */
    uint64_t given_seed;         /* on the command line; 0: none */
    bool keeps_places;           /* --state */
    int64_t timeout_ns;
    const _Atomic int *stop;
};

/* Compare version, streams, seeds and files with those of all nodes, and share the building of
 * indexes out. One node has nothing to settle. E_ARGUMENT names what differs, and where. */
tundish_status agreement_reach(struct link *link, const struct agreement_options *options,
                               struct spec_errors *errors);

#endif
