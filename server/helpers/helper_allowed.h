/* helper_allowed.h - the files that a request may name: those that the helper's pipeline file does.
 *
 * Names that sources say there, what their patterns match, and what lies beneath the folder of a
 * `directory`. Where rows hold the names of files that other stages read record by record, nothing
 * but the rows says which: these files must lie beneath folders in which the pipeline file names
 * something. Links in folders are followed: who may make them there has the machine's trust.
 */
#ifndef HELPERS_HELPER_ALLOWED_H
#define HELPERS_HELPER_ALLOWED_H

#include "plan/plan.h"

struct allowed_files;

struct allowed_files *allowed_files_open(const struct plan *plan);
void allowed_files_close(struct allowed_files *files); /* accepts NULL */

/* E_DATA: the pipeline file does not name it. Opens nothing. */
tundish_status allowed_files_check(const struct allowed_files *files, const char *name);

#endif
