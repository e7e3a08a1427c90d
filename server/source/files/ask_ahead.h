/* ask_ahead.h - the rows of a step that other nodes or servers have are asked for when the step is
 * dealt, so that they are there when its content is made. Readers find them by themselves.
 *
 * Where every node has all files on its disks, nothing is ever asked for.
 */
#ifndef SOURCE_FILES_ASK_AHEAD_H
#define SOURCE_FILES_ASK_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

struct source_files;
struct ask_ahead;

/* NULL: there is nobody to ask. */
struct ask_ahead *ask_ahead_begin(struct source_files *files);

/* A row of the step: its reference, and the bytes after the record that are read with it.
 * `asking` is a struct ask_ahead. */
void ask_ahead_add(void *asking, const uint64_t *words, uint32_t extra_bytes);

/* Request the rows that other nodes own; returns at once. Replies are kept until the step is
 * forgotten. */
void ask_ahead_end(struct ask_ahead *asking, uint64_t epoch, uint64_t step);
void ask_ahead_forget(struct source_files *files, uint64_t epoch, uint64_t step);

/* Are there files of which rows of dealt steps are kept, where room is short? Is there room for
 * those of more steps? */
bool ask_ahead_keeps_rows(const struct source_files *files);
bool ask_ahead_wants_rows(const struct source_files *files);

/* The bytes of all rows asked for and not forgotten. */
uint64_t ask_ahead_bytes(const struct source_files *files);

#endif
