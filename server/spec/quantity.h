/* quantity.h - values with a unit: 30s, 64MiB. */
#ifndef SPEC_QUANTITY_H
#define SPEC_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/spec.h"

/* A number and ns, us, ms, s, m or h. False: it is none, or does not fit. ret_ns may be NULL. */
bool quantity_duration_ns(const struct spec_value *value, int64_t *ret_ns);

/* A number of bytes, or a number and KiB, MiB, GiB, TiB, kB, MB, GB or TB. False: it is none, or
 * does not fit. ret_bytes may be NULL. */
bool quantity_bytes(const struct spec_value *value, uint64_t *ret_bytes);

#endif
