/* scanner.c - what scanners have in common. */
#include "source/scan/scanner.h"

tundish_status
scanner_too_long(uint64_t offset, uint64_t length)
{
    return tnd_fail(TUNDISH_E_DATA,
                    "the record at %llu has %llu bytes, more than the %d that a record may have",
                    (unsigned long long)offset, (unsigned long long)length, RECORD_BYTES_MAX);
}
