/* clicklog_record.h - a row of a click log as a record of a TFRecord file.
 *
 * Missing integers are left out of the Example, missing terms are empty.
 */
#ifndef CLICKLOG_RECORD_H
#define CLICKLOG_RECORD_H

#include <stddef.h>

#include "clicklog.h"

#define CLICKLOG_RECORD_MAX 4096 /* no record is longer */

/* Write the row's record to `bytes` (CLICKLOG_RECORD_MAX of them) and return its length. */
size_t clicklog_record(const struct clicklog_row *row, uint8_t *bytes);

#endif
