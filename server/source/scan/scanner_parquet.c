/* scanner_parquet.c - the rows of a Parquet file, which its footer counts: a record's offset is its
 * number. */
#include "source/files/file.h"
#include "source/parquet/file.h"

static tundish_status
parquet_contents(struct source_file *file, int descriptor, struct record_list *list)
{
    tundish_status status =
        file->is_url ? tnd_fail(TUNDISH_E_DATA, "parquet reads files of this machine only")
                     : parquet_file_open(descriptor, file->identity.size, file->format.parquet,
                                         &file->parquet);

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
