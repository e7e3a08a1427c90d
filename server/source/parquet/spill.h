/* spill.h - a row group's tuples in a file without a name, mapped: where its rows have no room in
 * memory. The kernel takes the file's pages back when it needs them. */
#ifndef SOURCE_PARQUET_SPILL_H
#define SOURCE_PARQUET_SPILL_H

#include <stdint.h>

struct parquet_member;
struct parquet_spill;
struct parquet_tuples;

/* Move tuples, and all else that columns have, to a file in a folder. Nobody reads them, though
 * some may still have words. NULL: there is no room for such a file, and nothing was moved.
 * *ret_bytes is the file's. */
struct parquet_spill *parquet_spill_open(int folder, struct parquet_tuples *tuples,
                                         const struct parquet_member *members,
                                         uint32_t member_count, uint64_t *ret_bytes);

/* The file goes with the last hold. */
void parquet_spill_hold(struct parquet_spill *spill);
void parquet_spill_release(struct parquet_spill *spill); /* accepts NULL */

#endif
