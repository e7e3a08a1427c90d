/* scanner_parquet.c - the rows of a Parquet file, which its footer counts: a record's offset is its
 * number. */
#include "source/files/file_remote.h"
#include "source/parquet/file.h"

/* From a URL, and from a file that another node has. */
static tundish_status
read_far(void *context, void *to, size_t bytes, uint64_t offset)
{
    return file_read_range(context, to, bytes, offset);
}

static tundish_status
parquet_contents(struct source_file *file, int descriptor, struct record_list *list)
{
    const struct parquet_input here = { parquet_read_descriptor, &descriptor, file->identity.size };
    const struct parquet_input there = { read_far, file, file->identity.size };
    tundish_status status =
        parquet_file_open(descriptor < 0 ? &there : &here, file->format.parquet, &file->parquet);

    file_remote_forget_tail(file);
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
