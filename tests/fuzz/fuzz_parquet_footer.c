/* fuzz_parquet_footer.c - footers of Parquet files: what is read of them lies in the file, and
 * their rows add up. */
#include <stdlib.h>
#include <string.h>

#include "core/must.h"
#include "source/parquet/footer.h"

/* Every leaf that can be read. */
struct chosen {
    uint32_t *leaves;
    uint32_t count;
};

static tundish_status
choose_all(void *context, const struct parquet_schema *schema, const uint32_t **ret_leaves,
           uint32_t *ret_count)
{
    struct chosen *chosen = context;

    free(chosen->leaves);
    chosen->leaves = calloc(schema->count + 1U, sizeof *chosen->leaves);
    chosen->count = 0;
    for (uint32_t i = 0; i < schema->count; i++) {
        must(schema->leaves[i].name != NULL);
        must(parquet_schema_find(schema, schema->leaves[i].name, i) == i);
        if (schema->leaves[i].obstacle == NULL)
            chosen->leaves[chosen->count++] = i;
    }
    *ret_leaves = chosen->leaves;
    *ret_count = chosen->count;
    return TUNDISH_OK;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct chosen chosen = { 0 };
    const struct parquet_choice choice = { .choose = choose_all, .context = &chosen };
    const uint64_t file_bytes = 1 << 16;
    struct parquet_footer footer;
    uint32_t metadata_bytes;

    if (bytes >= PARQUET_TAIL_BYTES &&
        parquet_tail_read(data, file_bytes, &metadata_bytes) == TUNDISH_OK)
        must(metadata_bytes <= file_bytes - PARQUET_TAIL_BYTES);
    if (parquet_footer_read(data, bytes, file_bytes, &choice, &footer) == TUNDISH_OK) {
        uint64_t rows = 0;

        for (uint32_t i = 0; i < footer.group_count; i++) {
            must(footer.groups[i].first_row == rows);
            rows += footer.groups[i].row_count;
        }
        must(rows == footer.row_count && footer.wanted_count == chosen.count);
        for (size_t i = 0; i < (size_t)footer.group_count * footer.wanted_count; i++)
            must(footer.chunks[i].offset + footer.chunks[i].bytes <= file_bytes);
        parquet_footer_close(&footer);
    }
    free(chosen.leaves);
    return 0;
}
