/* region.c - a batch on its way. Order on the device: the copy waits for the last use of the
 * memory, the kernel for the copy, `ready` for the kernel. */
#include "cuda/region.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/status.h"

tundish_status
region_open(const struct device *device, const tundish_spec *spec, struct region *ret_region)
{
    const struct cuda_driver *driver = device->driver;
    cu_result result;
    tundish_status status = pack_open(spec, device->numbers, &ret_region->pack);

    if (status != TUNDISH_OK)
        return status;
    result = driver->event_create(&ret_region->begun, CU_EVENT_DEFAULT);
    if (result == CU_SUCCESS)
        result = driver->event_create(&ret_region->copied, CU_EVENT_DEFAULT);
    if (result == CU_SUCCESS)
        result = driver->event_create(&ret_region->ready, CU_EVENT_DEFAULT);
    for (uint32_t i = 0; i < REGION_STREAMS && result == CU_SUCCESS; i++)
        result = driver->event_create(&ret_region->done[i], CU_EVENT_DISABLE_TIMING);
    return cuda_check(driver, result, "make an event");
}

/* Freed together, and forgotten: a region without memory gets some with its next batch. */
static void
free_memory(const struct device *device, struct region *region)
{
    if (region->memory != 0)
        device->driver->memory_free(region->memory);
    if (region->host != NULL)
        device->driver->host_free(region->host);
    region->memory = 0;
    region->host = NULL;
    region->device_bytes = region->host_bytes = 0;
}

void
region_close(const struct device *device, struct region *region)
{
    const struct cuda_driver *driver = device->driver;

    free_memory(device, region);
    if (region->begun != NULL)
        driver->event_destroy(region->begun);
    if (region->copied != NULL)
        driver->event_destroy(region->copied);
    if (region->ready != NULL)
        driver->event_destroy(region->ready);
    for (uint32_t i = 0; i < REGION_STREAMS; i++)
        if (region->done[i] != NULL)
            driver->event_destroy(region->done[i]);
    pack_close(&region->pack);
    free(region->token);
    *region = (struct region){ 0 };
}

/* Both events are over. A failure to tell costs a figure, no more. */
static uint64_t
elapsed_ns(const struct device *device, cu_event from, cu_event to)
{
    float passed_ms = 0;

    if (device->driver->event_elapsed(&passed_ms, from, to) != CU_SUCCESS || !(passed_ms > 0))
        return 0;
    return (uint64_t)((double)passed_ms * 1e6);
}

static void
count_times(struct way *way, const struct region *region)
{
    way->copy_ns += elapsed_ns(way->device, region->begun, region->copied);
    way->kernel_ns += elapsed_ns(way->device, region->copied, region->ready);
}

/* The host's copy is free once the device has read it. The device's is free in the order of its
 * streams. */
static tundish_status
await_reuse(struct way *way, struct region *region)
{
    const struct device *device = way->device;
    const struct cuda_driver *driver = device->driver;
    cu_result result = CU_SUCCESS;

    if (region->was_filled)
        result = driver->event_synchronize(region->ready);
    if (region->was_filled && result == CU_SUCCESS)
        count_times(way, region);
    if (result == CU_SUCCESS && region->must_synchronize)
        result = driver->context_synchronize();
    for (uint32_t i = 0; i < region->user_count && result == CU_SUCCESS; i++)
        result = driver->stream_wait_event(device->stream, region->done[i], 0);
    region->must_synchronize = region->was_in_capture = region->was_filled = false;
    region->user_count = 0;
    return cuda_check(driver, result, "wait for the last use of a batch's memory");
}

/* A quarter more than is needed now, since batches differ. */
static uint64_t
with_reserve(uint64_t bytes, uint64_t limit)
{
    uint64_t more = bytes + bytes / 4;

    return limit != 0 && more > limit ? limit : more;
}

/* Sizes settle after some batches. From then on nothing is allocated or freed, for which a driver
 * makes the device wait. */
static tundish_status
make_room(const struct device *device, struct region *region, uint64_t limit)
{
    const struct cuda_driver *driver = device->driver;
    const struct pack *pack = &region->pack;
    void *host = NULL;
    cu_result result = CU_SUCCESS;

    if (limit != 0 && pack->device_bytes > limit)
        return tnd_fail(TUNDISH_E_MEMORY,
                        "a batch needs %" PRIu64 " bytes on the device, but batch_bytes is %" PRIu64
                        ": raise it, or use smaller batches",
                        pack->device_bytes, limit);
    if (region->host_bytes >= pack->copied_bytes && region->device_bytes >= pack->device_bytes)
        return TUNDISH_OK;
    /* Freeing waits for the device, so nothing there uses the old memory any more. */
    free_memory(device, region);
    region->host_bytes = with_reserve(pack->copied_bytes, limit);
    region->device_bytes = with_reserve(pack->device_bytes, limit);
    result = driver->host_alloc(&host, region->host_bytes, CU_HOST_ALLOC_PORTABLE);
    region->host = host;
    if (result == CU_SUCCESS)
        result = driver->memory_alloc(&region->memory, region->device_bytes);
    if (result != CU_SUCCESS)
        free_memory(device, region);
    return cuda_check(driver, result, "get memory for a batch");
}

/* One launch for all columns: a launch costs as much as expanding a small one. */
tundish_status
region_expand(const struct device *device, const struct region *region)
{
    cu_address jobs = region->memory;
    uint32_t job_count = region->pack.job_count;
    void *arguments[] = { &jobs, &job_count };

    if (region->pack.blocks == 0)
        return TUNDISH_OK;
    if (region->pack.blocks > INT32_MAX)
        return tnd_fail(TUNDISH_E_ARGUMENT, "a batch has too many values for one kernel");
    return cuda_check(device->driver,
                      device->driver->launch(device->expand, (unsigned)region->pack.blocks, 1, 1,
                                             EXPAND_THREADS, 1, 1, 0, device->stream, arguments,
                                             NULL),
                      "start the kernel");
}

/* Below this many bytes a copy of its own takes longer than copying them on the host. */
enum { PINNED_BYTES = 64 << 10 };

/* Parts that the device can read where they are. Columns that were decoded lie elsewhere. */
static void
find_pinned(const struct pin *pin, struct region *region)
{
    struct pack *pack = &region->pack;

    region->reads_slot = false;
    for (uint32_t i = 0; i < pack->part_count; i++) {
        struct pack_part *part = &pack->parts[i];

        part->pinned = part->bytes >= PINNED_BYTES ? pin_find(pin, part->from, part->bytes) : NULL;
        region->reads_slot |= part->pinned != NULL;
    }
}

/* Empty where two pinned parts are neighbours, and drivers refuse copies of nothing. */
static cu_result
copy(const struct device *device, const struct region *region, uint64_t begin, uint64_t end)
{
    if (begin == end)
        return CU_SUCCESS;
    return device->driver->copy_to_device(region->memory + begin, region->host + begin, end - begin,
                                          device->stream);
}

/* Bytes that are packed between two pinned parts are copied at once. The table is the kernel's. */
static cu_result
copy_all(const struct device *device, const struct region *region)
{
    const struct pack *pack = &region->pack;
    cu_result result = CU_SUCCESS;
    uint64_t begin = pack->blocks > 0 ? 0 : pack->table_bytes;

    for (uint32_t i = 0; i < pack->part_count && result == CU_SUCCESS; i++) {
        const struct pack_part *part = &pack->parts[i];

        if (part->pinned == NULL)
            continue;
        result = copy(device, region, begin, part->offset);
        if (result == CU_SUCCESS)
            result = device->driver->copy_to_device(region->memory + part->offset, part->pinned,
                                                    part->bytes, device->stream);
        begin = i + 1 < pack->part_count ? pack->parts[i + 1].offset : pack->copied_bytes;
    }
    return result == CU_SUCCESS ? copy(device, region, begin, pack->copied_bytes) : result;
}

/* In one stream, so that the kernel needs no event to come after the copies. */
static tundish_status
send(const struct device *device, struct region *region)
{
    const struct cuda_driver *driver = device->driver;
    cu_result result = driver->event_record(region->begun, device->stream);
    tundish_status status;

    if (result == CU_SUCCESS)
        result = copy_all(device, region);
    if (result == CU_SUCCESS)
        result = driver->event_record(region->copied, device->stream);
    status = cuda_check(driver, result, "copy a batch to the device");
    if (status == TUNDISH_OK)
        status = region_expand(device, region);
    if (status == TUNDISH_OK)
        status = cuda_check(driver, driver->event_record(region->ready, device->stream),
                            "record an event");
    region->was_filled = status == TUNDISH_OK;
    /* Nothing may still read the host's copy, or the slot, when it is used again. */
    if (status != TUNDISH_OK && driver->stream_synchronize(device->stream) != CU_SUCCESS)
        driver->context_synchronize();
    return status;
}

tundish_status
region_fill(struct way *way, struct region *region, const tundish_batch *batch)
{
    const struct device *device = way->device;
    tundish_status status = await_reuse(way, region);

    if (status == TUNDISH_OK)
        status = pack_plan(&region->pack, batch);
    if (status == TUNDISH_OK)
        status = make_room(device, region, way->limit);
    if (status != TUNDISH_OK)
        return status;
    find_pinned(&way->pin, region);
    pack_place(&region->pack, region->memory);
    pack_write(&region->pack, region->host);
    region->batch = (tundish_cuda_batch){
        .sequence = batch->sequence,
        .epoch = batch->epoch,
        .step = batch->step,
        .tensor_count = batch->tensor_count,
        .flags = batch->flags,
        .shard = batch->shard,
        .visits = batch->visits,
    };
    status = send(device, region);
    way->copied_bytes += status == TUNDISH_OK ? region->pack.copied_bytes : 0;
    return status;
}

/* On a device that is lost the event never comes, and nothing is copied any more. */
void
region_await_copy(const struct device *device, const struct region *region)
{
    if (device->driver->event_synchronize(region->copied) != CU_SUCCESS)
        device->driver->context_synchronize();
}

/* The event of this stream; NULL: all are taken by others. */
static cu_event
event_of(struct region *region, cu_stream stream)
{
    uint32_t i = 0;

    while (i < region->user_count && region->users[i] != stream)
        i++;
    if (i == REGION_STREAMS)
        return NULL;
    region->users[i] = stream;
    region->user_count = i < region->user_count ? region->user_count : i + 1;
    return region->done[i];
}

void
region_end_use(const struct device *device, struct region *region, cu_stream stream)
{
    cu_event done = stream == TUNDISH_CUDA_ANY_STREAM ? NULL : event_of(region, stream);
    bool is_recorded = false;

    if (done == NULL || device_enter(device) != TUNDISH_OK) {
        region->must_synchronize = true;
        return;
    }
    /* An event of a graph is none that another stream can wait for. */
    if (device_is_capturing(device, stream))
        region->was_in_capture = true;
    else
        is_recorded = device->driver->event_record(done, stream) == CU_SUCCESS;
    region->must_synchronize = region->must_synchronize || !is_recorded;
    device_leave(device);
}
