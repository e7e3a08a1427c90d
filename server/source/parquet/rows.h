/* rows.h - rows of Parquet files, out of decoded row groups. */
#ifndef SOURCE_PARQUET_ROWS_H
#define SOURCE_PARQUET_ROWS_H

#include "source/parquet/file.h"
#include "source/source.h"

/* Fill the output's columns, which are those wanted of the files. */
tundish_status parquet_rows_read(const struct source_read *read);

#endif
