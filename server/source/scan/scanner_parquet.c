/* scanner_parquet.c - the rows of a Parquet file, which its footer counts: a record's offset is its
 * number. */
#include "source/files/file.h"
#include "source/parquet/file.h"

static tundish_status
read_url(void *context, void *to, size_t bytes, uint64_t offset)
{
    return file_read_range(context, to, bytes, offset);
}

static tundish_status
parquet_contents(struct source_file *file, int descriptor, struct record_list *list)
{
    const struct parquet_input here = { parquet_read_descriptor, &descriptor, file->identity.size };
    const struct parquet_input there = { read_url, file, file->identity.size };
    tundish_status status =
        parquet_file_open(file->is_url ? &there : &here, file->format.parquet, &file->parquet);

    if (status != TUNDISH_OK)
        return status;
    list->stride = 1;
    list->count = file->parquet->footer.row_count;
    return TUNDISH_OK;
}

const struct scanner_ops scanner_parquet = {
    .name = "parquet",
    .contents = parquet_contents,
};
