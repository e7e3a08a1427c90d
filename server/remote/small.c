/* small.c - see small.h. */
#include "remote/small.h"

#include <stdlib.h>

static char *
address_of(const struct remote *remote, const struct remote_url *url)
{
    struct remote_site site = remote_site_of(remote);

    return remote_url_address(url, &site);
}

bool
small_read(struct remote *remote, const struct remote_url *url, const struct disk_room *room,
           struct disk_small *ret_small)
{
    char *address;
    bool is_there;

    if (remote->disk == NULL)
        return false;
    address = address_of(remote, url);
    is_there = disk_read_small(remote->disk, address, room, ret_small);
    free(address);
    if (is_there)
        store_count(&stores_find(url)->cached_bytes, ret_small->bytes.size);
    return is_there;
}

void
small_keep(struct remote *remote, const struct remote_url *url, const struct answer *answer,
           const uint8_t *bytes)
{
    struct disk_kept kept = { .identity = request_identity(answer), .bytes = answer->total };
    char *address;

    if (remote->disk == NULL || answer->total > remote->options.part_bytes)
        return;
    address = address_of(remote, url);
    kept.address = address;
    disk_put(remote->disk, &kept, bytes);
    free(address);
}
