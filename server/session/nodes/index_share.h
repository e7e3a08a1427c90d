/* index_share.h - each node goes through some of the files, and all get all indexes. */
#ifndef SESSION_INDEX_SHARE_H
#define SESSION_INDEX_SHARE_H

#include "link/link.h"
#include "plan/plan.h"

/* Where every node reads every file (not under FILE), files that the cache folder of some node has
 * no index of are shared out, gone through once, and their indexes kept on every node. All nodes
 * call this, for the same stream and the same files. What one cannot index is left to whoever
 * reads it, to complain about. */
tundish_status index_share(struct link *link, const struct plan *plan, uint32_t stream,
                           int64_t timeout_ns, const _Atomic int *stop);

#endif
