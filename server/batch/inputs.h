/* inputs.h - checks before the first step that a stream has what it reads, and room to keep it. */
#ifndef BATCH_INPUTS_H
#define BATCH_INPUTS_H

#include "plan/plan.h"
#include "source/files/files.h"

/* See that every file whose name is known before a row is read can be opened, that patterns match
 * some, that there is a file for each worker or shard where files are dealt, and that the cache
 * folder is fit for use if something must be kept there. Reads no row, and keeps no result. `stop`
 * (may be NULL): when not 0, it ends early. Fails naming the first that is wrong. */
tundish_status inputs_check(const struct plan *plan, const struct source_files_options *options,
                            const _Atomic int *stop);

/* Is a file or a pattern of a source a URL? */
bool inputs_name_urls(const struct plan_graph *graph);

#endif
