/* runs.h - Parquet's hybrid of run lengths and packed bits: levels, indices of dictionaries, bools.
 */
#ifndef SOURCE_PARQUET_RUNS_H
#define SOURCE_PARQUET_RUNS_H

#include "source/parquet/bits.h"

struct parquet_runs {
    const uint8_t *at, *end; /* after the current run's head and bytes */
    unsigned width;
    const uint8_t *packed; /* of the current run; NULL: it is `value`, over and over */
    uint64_t next;         /* of the packed run */
    uint64_t left;         /* values of the current run */
    uint32_t value;
};

/* `width` is 0 to 32. PARQUET_SLACK bytes after the view are readable. */
void runs_open(struct parquet_runs *runs, struct byte_view bytes, unsigned width);

/* Read exactly `count` values. `to` has room for 8 more. False: there are fewer, or the bytes
 * are damaged. */
bool runs_read_u32(struct parquet_runs *runs, uint32_t *to, size_t count);
bool runs_read_u8(struct parquet_runs *runs, uint8_t *to, size_t count); /* of at most 8 bits */

/* Are the next `count` values all `value`, by one run? Then they are passed over. */
bool runs_pass_over(struct parquet_runs *runs, uint32_t value, uint64_t count);

#endif
