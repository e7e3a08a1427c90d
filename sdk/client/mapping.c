/* mapping.c - where the server's segments are mapped. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/reader.h"
#include "core/status.h"
#include "shm/segment.h"

static struct mapping *
add_mapping(struct attachment *attachment, uint32_t id, uint64_t segment_bytes)
{
    static _Atomic uint64_t count;
    struct mapping *mapping = calloc(1, sizeof *mapping);

    if (mapping == NULL)
        return NULL;
    mapping->id = id;
    mapping->users = 1;
    mapping->descriptor = -1;
    mapping->number = ++count;
    mapping->segment_bytes = segment_bytes;
    mapping->next = attachment->mappings;
    attachment->mappings = mapping;
    return mapping;
}

static tundish_status
no_memory(void)
{
    return tnd_fail(TUNDISH_E_MEMORY, "no memory for a segment's record");
}

tundish_status
tnd_mapping_open(struct attachment *attachment, uint32_t id, int descriptor, uint64_t segment_bytes)
{
    struct mapping *mapping;
    void *bytes;
    tundish_status status = tnd_segment_map(descriptor, segment_bytes, false, &bytes);

    if (status != TUNDISH_OK)
        return status;
    /* Under the lock: tundish_release in another thread drops mappings. */
    pthread_mutex_lock(&attachment->reader->lock);
    mapping = add_mapping(attachment, id, segment_bytes);
    if (mapping != NULL)
        mapping->bytes = bytes;
    /* Without it batches go to a device by a copy on the host. */
    if (mapping != NULL && id == TND_SEGMENT_LANE)
        mapping->descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&attachment->reader->lock);
    if (mapping != NULL)
        return TUNDISH_OK;
    tnd_segment_unmap(bytes, segment_bytes);
    return no_memory();
}

struct mapping *
tnd_mapping_find(const struct attachment *attachment, uint32_t id)
{
    for (struct mapping *mapping = attachment->mappings; mapping != NULL; mapping = mapping->next)
        if (mapping->id == id)
            return mapping;
    return NULL;
}

void
tnd_mapping_retire(struct attachment *attachment, struct mapping *mapping)
{
    struct mapping **link = &attachment->mappings;

    while (*link != mapping)
        link = &(*link)->next;
    *link = mapping->next;
    tnd_mapping_drop(mapping);
}

tundish_status
tnd_mapping_renew(struct attachment *attachment, struct mapping *mapping)
{
    struct mapping *fresh;
    /* An old size of 0 maps the pages of a shared mapping once more. */
    void *bytes = mremap(mapping->bytes, 0, mapping->segment_bytes, MREMAP_MAYMOVE);

    if (bytes == MAP_FAILED)
        return tnd_fail_errno(errno, "cannot remap a segment of %llu bytes",
                              (unsigned long long)mapping->segment_bytes);
    fresh = add_mapping(attachment, mapping->id, mapping->segment_bytes);
    if (fresh == NULL) {
        tnd_segment_unmap(bytes, mapping->segment_bytes);
        return no_memory();
    }
    fresh->bytes = bytes;
    fresh->descriptor = mapping->descriptor;
    mapping->descriptor = -1;
    tnd_mapping_retire(attachment, mapping);
    return TUNDISH_OK;
}

void
tnd_mapping_drop(struct mapping *mapping)
{
    if (mapping == NULL || --mapping->users > 0)
        return;
    tnd_segment_unmap(mapping->bytes, mapping->segment_bytes);
    if (mapping->descriptor >= 0)
        close(mapping->descriptor);
    free(mapping);
}
