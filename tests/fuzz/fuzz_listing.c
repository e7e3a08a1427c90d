/* fuzz_listing.c - hostile pages of keys, and hostile bodies of errors. */
#include <string.h>

#include "core/must.h"
#include "remote/listing.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct listing_page page;
    struct answer_error error;

    if (listing_page_open((const char *)data, bytes, &page) == TUNDISH_OK) {
        for (size_t i = 0; i < page.count; i++)
            must(page.objects[i].key != NULL && strlen(page.objects[i].tag) < ANSWER_TAG_BYTES);
        listing_page_close(&page);
    }
    answer_read_error((const char *)data, bytes, &error);
    must(strlen(error.code) < sizeof error.code && strlen(error.message) < sizeof error.message);
    return 0;
}
