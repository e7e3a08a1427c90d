/* clicklog_example.h - a row of a click log as a tf.Example.
 *
 * Missing integers are left out, missing terms are empty.
 */
#ifndef CLICKLOG_EXAMPLE_H
#define CLICKLOG_EXAMPLE_H

#include <stddef.h>

#include "clicklog.h"

#define CLICKLOG_EXAMPLE_MAX 4096 /* no Example is longer */

/* Write the row's Example to `bytes` (CLICKLOG_EXAMPLE_MAX of them) and return its length. */
size_t clicklog_example(const struct clicklog_row *row, uint8_t *bytes);

#endif
