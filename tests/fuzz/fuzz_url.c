/* fuzz_url.c - hostile names of remote files: one that is taken makes an address of printable
 * ASCII, and its key comes back from its encoded form. */
#include <stdlib.h>
#include <string.h>

#include "core/must.h"
#include "remote/url.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct remote_site sites[] = { { .region = "r" },
                                         { .endpoint = "http://h:1/", .region = "r" } };
    struct remote_url url;

    if (remote_url_open((const char *)data, bytes, &url) != TUNDISH_OK)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        char *address = remote_url_address(&url, &sites[i]);

        must(strncmp(address, "http", 4) == 0);
        for (const char *at = address; *at != '\0'; at++)
            must(*at > ' ' && *at < 0x7F);
        free(address);
    }
    if (remote_url_is_of_store(&url)) {
        char *encoded = remote_url_encode(url.key, false);

        remote_url_decode(encoded);
        must(strcmp(encoded, url.key) == 0);
        free(encoded);
    }
    remote_url_close(&url);
    return 0;
}
