/* catalogue_share.h - all nodes' files, for streams with distribute.files: local or remote.fetch:
 * once. */
#ifndef SESSION_NODES_CATALOGUE_SHARE_H
#define SESSION_NODES_CATALOGUE_SHARE_H

#include "link/link.h"
#include "plan/plan.h"
#include "source/files/catalogue.h"

/* All nodes call this with the plans of the same streams (NULL: not served). Each tells which files
 * it has and their hashes. After that the catalogue is the same everywhere. It stays unmade if no
 * stream asks for one. E_ARGUMENT, on every node: two have different files of one name. */
tundish_status catalogue_share(struct link *link, struct plan *const *plans, uint32_t count,
                               int64_t timeout_ns, const _Atomic int *stop,
                               struct catalogue *catalogue);

#endif
