/* fuzz_learned_table.c - tables of learned numbers that somebody else wrote. */
#include <stdlib.h>
#include <string.h>

#include "content/learned/learned.h"
#include "core/must.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct learned_table table;
    char *copy = calloc(bytes + 64, 1);

    if (bytes > 0)
        memcpy(copy, data, bytes);
    if (learned_table_parse(copy, bytes, &table) == TUNDISH_OK) {
        int64_t product = 1;

        for (int i = 0; i < table.rank; i++)
            product *= table.shape[i];
        must(product == table.value_count);
        must(!table.has_keys || table.key_count == table.shape[0]);
        learned_table_close(&table);
    }
    free(copy);
    return 0;
}
