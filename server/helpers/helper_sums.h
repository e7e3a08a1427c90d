/* helper_sums.h - the content sums of a stream's files, as a server and a helper each make them at
 * leisure, to compare them (source/files/content_sum.h).
 *
 * A file that is read in no time is summed by the thread that wants it; others by a thread of their
 * own, which gives way to all others.
 */
#ifndef HELPERS_HELPER_SUMS_H
#define HELPERS_HELPER_SUMS_H

#include "source/files/content_sum.h"

struct helper_sums;

/* No thread runs until it has something to do. */
struct helper_sums *helper_sums_open(void);
void helper_sums_close(struct helper_sums *sums); /* accepts NULL; before the files are closed */

/* The file's sum; 0: it is made later, if it can be. The file was opened once, and stays. */
uint64_t helper_sums_want(struct helper_sums *sums, struct source_file *file);

/* The sum of a file that rows name (content/records/file_notes.h), made again where stat shows that
 * the file was changed. 0: it cannot be read. */
uint64_t helper_sums_of_path(struct helper_sums *sums, const char *path);

/* The version of an object that was last noted; 0: none, or it was forgotten. */
uint64_t helper_sums_known(struct helper_sums *sums, const char *url);
void helper_sums_note(struct helper_sums *sums, const char *url, uint64_t version);

/* The files whose sums were made later, in that order: as many as are told by helper_sums_count,
 * which does not lock. */
uint64_t helper_sums_count(const struct helper_sums *sums);
struct source_file *helper_sums_at(struct helper_sums *sums, uint64_t index);

#endif
