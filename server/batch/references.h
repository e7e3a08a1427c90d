/* references.h - the records of files that elements refer to, without making their content. */
#ifndef BATCH_REFERENCES_H
#define BATCH_REFERENCES_H

#include "plan/plan_node.h"

/* Called for each record of `count` elements of the node, rows of Parquet files among them, with
 * its two words and the number of bytes after it that are read too. Elements of other stages are
 * skipped: this is for reading ahead. */
typedef void (*references_visitor)(void *user, const uint64_t *words, uint32_t extra_bytes);
void references_visit(const struct plan_node *node, const uint64_t *words, size_t stride,
                      uint64_t count, references_visitor visit, void *user);

#endif
