/* device.c - what a library for devices needs of a reader. */
#include <stddef.h>
#include <string.h>

#include "client/reader.h"
#include "core/status.h"
#include "tundish/tundish_device.h"

static void
put(_Atomic uint64_t *field, uint64_t value)
{
    /* Relaxed: figures order nothing. */
    atomic_store_explicit(field, value, memory_order_relaxed);
}

tundish_status
tundish_tell_device(tundish_reader *reader, const tundish_device_figures *figures)
{
    tundish_status status = tnd_reader_check(reader);
    struct tnd_returns *page;

    if (status != TUNDISH_OK)
        return status;
    if (figures->size < sizeof *figures)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "figures.size is %zu: set it to sizeof(tundish_device_figures)",
                        figures->size);
    page = reader->attachments->returns;
    put(&page->device_copied_bytes, figures->copied_bytes);
    put(&page->device_copy_ns, figures->copy_ns);
    put(&page->device_kernel_ns, figures->kernel_ns);
    put(&page->device_waited_ns, figures->waited_ns);
    atomic_store_explicit(&page->device_why, (uint32_t)figures->why, memory_order_relaxed);
    atomic_store_explicit(&page->device_mode, (uint32_t)figures->mode, memory_order_relaxed);
    return TUNDISH_OK;
}

tundish_status
tundish_get_mapping(tundish_reader *reader, tundish_mapping *ret_mapping)
{
    tundish_status status = tnd_reader_check(reader);
    const struct mapping *mapping;

    if (status != TUNDISH_OK)
        return status;
    if (ret_mapping->size < offsetof(tundish_mapping, descriptor))
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "mapping.size is %zu: set it to sizeof(tundish_mapping)",
                        ret_mapping->size);
    pthread_mutex_lock(&reader->lock);
    mapping = tnd_mapping_find(reader->attachments, TND_SEGMENT_LANE);
    if (mapping != NULL) {
        ret_mapping->bytes = mapping->bytes;
        ret_mapping->byte_count = mapping->segment_bytes;
        ret_mapping->number = mapping->number;
        if (ret_mapping->size >= sizeof *ret_mapping)
            ret_mapping->descriptor = mapping->descriptor;
    }
    pthread_mutex_unlock(&reader->lock);
    return mapping != NULL ? TUNDISH_OK
                           : tnd_fail(TUNDISH_E_CORRUPT, "the reader has no memory of the server");
}
