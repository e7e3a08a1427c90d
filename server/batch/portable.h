/* portable.h - elements as bytes, for another process that has the same plan.
 *
 * Content is pure, so a process with the plan can make it of an element's words. Most words mean
 * the same there. Runs are addresses, and are written out; files and paths have numbers that only
 * this process knows, and are visited, so that both sides can agree on them.
 */
#ifndef BATCH_PORTABLE_H
#define BATCH_PORTABLE_H

#include "core/bytes.h"
#include "plan/plan.h"

/* Why this plan's elements mean nothing elsewhere: a sentence's end, which the caller frees. NULL:
 * they do. */
char *portable_obstacle(const struct plan *plan);

/* Bytes that grow. */
struct portable_bytes {
    uint8_t *bytes;
    size_t used, room;
};
void portable_add(struct portable_bytes *to, const void *bytes, size_t byte_count);
bool portable_take(struct byte_view *from, void *to, size_t byte_count);

/* Write `count` elements of `width` words. */
struct portable_elements {
    const uint64_t *words;
    uint64_t count;
    uint32_t width;
    uint64_t run_words;
};
void portable_write(const struct portable_elements *elements, struct portable_bytes *to);

/* Read `count` elements of this shape, as portable_write wrote them. The caller releases the runs
 * in `ret_words` (run_words_release), unless it fails. E_CORRUPT: they are something else. */
tundish_status portable_read(struct byte_view *from, uint64_t count, uint32_t width,
                             uint64_t run_words, uint64_t *ret_words);

/* Visit the words of every source's rows in some elements of `node`, which are to be written to
 * only by their owner. E_CORRUPT: these are not elements of the node. */
typedef tundish_status (*portable_visitor)(void *user, const struct plan_node *source,
                                           uint64_t *words);
struct portable_visit {
    portable_visitor visit;
    void *user;
};
tundish_status portable_visit(const struct portable_visit *visit, const struct plan_node *node,
                              const uint64_t *words, size_t stride, uint64_t count);

#endif
