/* decimal.h - integers as decimal text. */
#ifndef TND_CORE_DECIMAL_H
#define TND_CORE_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

#define TND_DECIMAL_BYTES 20 /* of the longest: -9223372036854775808 */

/* Write the number in decimal, '-' before negatives, without a NUL; return the bytes written. */
size_t tnd_decimal(int64_t number, char ret_text[TND_DECIMAL_BYTES]);

#endif
