/* scanner.c - what scanners have in common. */
#include "source/scan/scanner.h"

#include <string.h>

static const struct scanner_ops *const table[] = {
    &scanner_tfrecord, &scanner_text_line,  &scanner_fixed_length_record,
    &scanner_csv,      &scanner_webdataset,
};

const struct scanner_ops *
scanner_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

/* A length from a damaged file would otherwise become an allocation later on. */
tundish_status
scanner_too_long(uint64_t offset, uint64_t length)
{
    return tnd_fail(TUNDISH_E_DATA,
                    "the record at %llu has %llu bytes, more than the %d that a record may have",
                    (unsigned long long)offset, (unsigned long long)length, RECORD_BYTES_MAX);
}
