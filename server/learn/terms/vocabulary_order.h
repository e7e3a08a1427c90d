/* vocabulary_order.h - which of two terms comes first in a vocabulary. */
#ifndef LEARN_TERMS_VOCABULARY_ORDER_H
#define LEARN_TERMS_VOCABULARY_ORDER_H

#include "learn/terms/terms.h"

extern const struct term_order vocabulary_order_count;  /* more often first; equal ones by text,
                                                         * falling */
extern const struct term_order vocabulary_order_weight; /* the same by weight */
extern const struct term_order vocabulary_order_fingerprint; /* by the text's SHA-1, rising */

/* Eight bytes that are ordered as the integers are, and back. */
void vocabulary_integer_key(int64_t integer, uint8_t ret_key[8]);
int64_t vocabulary_key_integer(const uint8_t key[8]);

#endif
