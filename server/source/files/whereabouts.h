/* whereabouts.h - where an element of a source comes from: file, bytes, number. */
#ifndef SOURCE_FILES_WHEREABOUTS_H
#define SOURCE_FILES_WHEREABOUTS_H

#include "source/source.h"

enum { WHEREABOUTS_TEXT_BYTES = 32 };

/* Reads no record, but scans its file for its number, which an index spares. */
void whereabouts_of(const struct plan_node *source, struct source_files *files,
                    const uint64_t *words, struct whereabouts *ret_where);

/* The file, and the bytes in it, that two words refer to (scan.h). */
void whereabouts_of_reference(struct source_files *files, const uint64_t *words,
                              struct whereabouts *ret_where);

/* Where that is in the file, for people: "line 7" of a text file of this machine, unless
 * `is_quick`; else "at byte 90". Reads what is before it. */
void whereabouts_say(const struct source_files *files, const uint64_t *words, bool is_quick,
                     char text[WHEREABOUTS_TEXT_BYTES]);

/* The bytes of a record as they lie in the file (of what it unpacks to), which the caller frees. */
tundish_status whereabouts_read(struct source_files *files, const uint64_t *words,
                                uint8_t **ret_bytes);

#endif
