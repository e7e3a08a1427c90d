/* place_words.h - which stage differs from those that a place was saved with.
 *
 * A place carries a hash of its stages (place_fingerprint). Each server keeps their words under it
 * in the cache folder, so that a later one can say more than that they differ.
 */
#ifndef SESSION_CHECKPOINT_PLACE_WORDS_H
#define SESSION_CHECKPOINT_PLACE_WORDS_H

#include "plan/plan.h"

/* Keep the words of this plan. Where that fails, less can be said later. */
void place_words_keep(const struct plan *plan, uint64_t fingerprint);

/* "batch (line 19): batch_size 32 then, 16 now", of the first difference; "" if it is not known. */
void place_words_compare(const struct plan *plan, uint64_t then, char *text, size_t text_bytes);

#endif
