/* index_share.h - each node goes through some of the files, and all get all indexes. */
#ifndef SESSION_NODES_INDEX_SHARE_H
#define SESSION_NODES_INDEX_SHARE_H

#include "link/link.h"
#include "plan/plan.h"

/* Where every node reads every file (not under FILE): share out the files that some node's cache
 * folder has no index of, read each once, and keep its index on every node. All nodes call this for
 * the same stream and files. If a file cannot be indexed, its reader reports the error. */
tundish_status index_share(struct link *link, const struct plan *plan, uint32_t stream,
                           int64_t timeout_ns, const _Atomic int *stop);

#endif
