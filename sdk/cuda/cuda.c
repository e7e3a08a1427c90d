/* cuda.c - tundish_cuda.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/status.h"
#include "cuda/ahead.h"

enum { DEPTH = 2, DEPTH_MAX = 64 };

struct tundish_cuda {
    pid_t process;
    struct device device;
    struct ahead ahead;
    const tundish_spec *spec;
    uint32_t depth;
    _Atomic uint32_t held;
    _Atomic uint32_t users; /* the caller until it closes this, and batches that are kept */
    pthread_mutex_t lock;   /* of what batches say of their use, and of is_closed */
    bool is_closed;
    struct region *last; /* of next_into: to be given back by the next call */
    char *token;         /* the place after what was returned last */
    size_t token_capacity;
};

/* A child shares the device's handles with its parent, but the driver does not work in it. */
static tundish_status
check(const tundish_cuda *cuda)
{
    if (cuda == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "the tundish_cuda is NULL");
    if (cuda->process != getpid())
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "a device's batches belong to the process that opened them: open a reader "
                        "in this one");
    return TUNDISH_OK;
}

/* The reader stands where the thread reads, which is ahead of the caller. So each region carries
 * the place after it, and the caller's is that of the last one it was given. */
static tundish_status
keep_token(tundish_cuda *cuda, const char *token)
{
    size_t bytes = strlen(token) + 1;

    if (bytes > cuda->token_capacity) {
        char *grown = realloc(cuda->token, bytes);

        if (grown == NULL)
            return tnd_fail(TUNDISH_E_MEMORY, "no memory for a place of %zu bytes", bytes);
        cuda->token = grown;
        cuda->token_capacity = bytes;
    }
    memcpy(cuda->token, token, bytes);
    return TUNDISH_OK;
}

/* Before anything is read ahead the place is the reader's own. */
static tundish_status
keep_first_place(tundish_cuda *cuda, tundish_reader *reader)
{
    size_t bytes = 0;
    char *token;
    tundish_status status;

    if (tundish_place_token(reader, NULL, 0, &bytes) != TUNDISH_E_ARGUMENT || bytes == 0)
        return keep_token(cuda, ""); /* it has none */
    token = malloc(bytes);
    if (token == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for a place of %zu bytes", bytes);
    if (tundish_place_token(reader, token, bytes, &bytes) != TUNDISH_OK)
        token[0] = '\0';
    status = keep_token(cuda, token);
    free(token);
    return status;
}

static tundish_status
take_options(const tundish_cuda_options *from, tundish_cuda_options *ret_options)
{
    *ret_options = (tundish_cuda_options)TUNDISH_CUDA_OPTIONS_INIT;
    if (from != NULL && from->size < offsetof(tundish_cuda_options, device))
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "options.size is %zu: begin with TUNDISH_CUDA_OPTIONS_INIT", from->size);
    if (from != NULL)
        memcpy(ret_options, from,
               from->size < sizeof *ret_options ? from->size : sizeof *ret_options);
    if (ret_options->depth == 0)
        ret_options->depth = DEPTH;
    if (ret_options->depth > DEPTH_MAX)
        return tnd_fail(TUNDISH_E_ARGUMENT, "depth is %u, but may be at most %d",
                        ret_options->depth, DEPTH_MAX);
    if (ret_options->mode < TUNDISH_CUDA_AUTO || ret_options->mode > TUNDISH_CUDA_PIN)
        return tnd_fail(TUNDISH_E_ARGUMENT, "mode is %d, not TUNDISH_CUDA_AUTO, COPY or PIN",
                        (int)ret_options->mode);
    return TUNDISH_OK;
}

/* Whatever fails here leaves the reader as it was: nothing was read of it yet. */
static tundish_status
open_parts(tundish_cuda *cuda, tundish_reader *reader, const tundish_cuda_options *options)
{
    tundish_status status = tundish_element_spec(reader, &cuda->spec);

    if (status != TUNDISH_OK)
        return tnd_fail(status, "%s", tundish_last_error());
    status = keep_first_place(cuda, reader);
    if (status == TUNDISH_OK)
        status = device_open(options, cuda->spec, &cuda->device);
    if (status == TUNDISH_OK)
        status = device_enter(&cuda->device);
    if (status != TUNDISH_OK)
        return status;
    status = ahead_open(&cuda->ahead, &cuda->device, reader, options);
    device_leave(&cuda->device);
    return status == TUNDISH_OK ? ahead_start(&cuda->ahead) : status;
}

tundish_status
tundish_cuda_open(tundish_reader *reader, const tundish_cuda_options *options,
                  tundish_cuda **ret_cuda)
{
    tundish_cuda_options taken;
    tundish_cuda *cuda;
    tundish_status status = take_options(options, &taken);

    if (status != TUNDISH_OK)
        return status;
    cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for a tundish_cuda");
    pthread_mutex_init(&cuda->lock, NULL);
    cuda->users = 1;
    cuda->process = getpid();
    cuda->depth = taken.depth;
    status = open_parts(cuda, reader, &taken);
    if (status != TUNDISH_OK) {
        tundish_cuda_close(cuda);
        return status;
    }
    *ret_cuda = cuda;
    return TUNDISH_OK;
}

/* On a device that is lost every call fails, but what the host has goes all the same. */
static void
close_regions(tundish_cuda *cuda)
{
    bool is_entered = device_enter(&cuda->device) == TUNDISH_OK;

    cuda->device.driver->context_synchronize();
    ahead_close(&cuda->ahead);
    if (is_entered)
        device_leave(&cuda->device);
}

static void
drop_user(tundish_cuda *cuda)
{
    if (cuda->users-- > 1)
        return;
    if (cuda->process == getpid())
        device_close(&cuda->device);
    pthread_mutex_destroy(&cuda->lock);
    free(cuda->token);
    free(cuda);
}

void
tundish_cuda_close(tundish_cuda *cuda)
{
    if (cuda == NULL)
        return;
    /* A child has neither the thread nor the device. */
    if (cuda->process == getpid()) {
        ahead_stop(&cuda->ahead);
        /* With the lock: a kept batch comes back before this or after it. */
        pthread_mutex_lock(&cuda->lock);
        if (cuda->device.context != NULL)
            close_regions(cuda);
        cuda->is_closed = true;
        pthread_mutex_unlock(&cuda->lock);
    }
    drop_user(cuda);
}

/* One region is away for long, or for good: have another. */
static tundish_status
replace(tundish_cuda *cuda)
{
    tundish_status status = device_enter(&cuda->device);

    if (status != TUNDISH_OK)
        return status;
    status = ahead_replace(&cuda->ahead);
    device_leave(&cuda->device);
    return status;
}

/* A region that came back while a stream was being captured could be used again only after a wait
 * for the whole device, which breaks a capture. Nobody says when that is over, so the region rests
 * until the close. */
static void
give(tundish_cuda *cuda, struct region *region)
{
    if (!region->was_in_capture || replace(cuda) != TUNDISH_OK)
        ahead_give(&cuda->ahead, region);
}

/* The caller of next_into may look at its source until here. */
static void
give_last(tundish_cuda *cuda)
{
    if (cuda->last != NULL)
        give(cuda, cuda->last);
    cuda->last = NULL;
}

/* The region that is ready first. Other outcomes than a batch are told, and taken. */
static tundish_status
peek(tundish_cuda *cuda, int64_t timeout_ns, struct region **ret_region)
{
    tundish_status status = check(cuda), told;
    struct region *region = NULL;

    if (status != TUNDISH_OK)
        return status;
    give_last(cuda);
    status = ahead_peek(&cuda->ahead, timeout_ns, &region);
    if (status != TUNDISH_OK)
        return status;
    *ret_region = region;
    told = region->status;
    if (told == TUNDISH_OK)
        return TUNDISH_OK;
    status = keep_token(cuda, region->token != NULL ? region->token : "");
    if (told < TUNDISH_OK)
        tnd_fail(told, "%s", region->text);
    if (ahead_take(&cuda->ahead))
        ahead_give(&cuda->ahead, region);
    return status == TUNDISH_OK ? told : status;
}

tundish_status
tundish_cuda_next(tundish_cuda *cuda, int64_t timeout_ns, const tundish_cuda_batch **ret_batch)
{
    struct region *region = NULL;
    tundish_status status = check(cuda);

    if (status == TUNDISH_OK && cuda->held >= cuda->depth)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "%u batch%s held: release one first, or raise options.depth", cuda->held,
                        cuda->held == 1 ? " is" : "es are");
    if (status == TUNDISH_OK)
        status = peek(cuda, timeout_ns, &region);
    if (status == TUNDISH_OK)
        status = keep_token(cuda, region->token != NULL ? region->token : "");
    if (status != TUNDISH_OK)
        return status;
    (void)ahead_take(&cuda->ahead);
    cuda->held++;
    *ret_batch = &region->batch;
    return TUNDISH_OK;
}

/* The default stream is that of the current context, which is ours. */
static tundish_status
check_stream(const tundish_cuda *cuda, cu_stream stream)
{
    cu_context context = NULL;
    cu_result result = CU_SUCCESS;

    if (stream != NULL)
        result = cuda->device.driver->stream_context(stream, &context);
    if (result != CU_SUCCESS || (stream != NULL && context != cuda->device.context))
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "the stream is not of the primary context of this reader's device");
    if (device_is_capturing(&cuda->device, stream))
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "the stream is being captured: each launch of the graph would read where "
                        "this batch was. Capture reads of fixed addresses, and call "
                        "tundish_cuda_next_into before each launch");
    return TUNDISH_OK;
}

/* The batch is the region's first member, so that a caller's pointer needs no table to be looked up
 * in. Const is only for the caller. */
static struct region *
region_of(const tundish_cuda_batch *batch)
{
    return (struct region *)(uintptr_t)batch;
}

static tundish_status
wait_for(tundish_cuda *cuda, const struct region *region, cu_stream stream)
{
    tundish_status status = check_stream(cuda, stream);

    if (status != TUNDISH_OK)
        return status;
    return cuda_check(cuda->device.driver,
                      cuda->device.driver->stream_wait_event(stream, region->ready, 0),
                      "let a stream wait for a batch");
}

tundish_status
tundish_cuda_wait(tundish_cuda *cuda, const tundish_cuda_batch *batch, tundish_cuda_stream stream)
{
    tundish_status status = check(cuda);

    if (status == TUNDISH_OK && batch == NULL)
        status = tnd_fail(TUNDISH_E_ARGUMENT, "the batch is NULL");
    if (status == TUNDISH_OK)
        status = device_enter(&cuda->device);
    if (status != TUNDISH_OK)
        return status;
    status = wait_for(cuda, region_of(batch), stream);
    device_leave(&cuda->device);
    return status;
}

void
tundish_cuda_used(tundish_cuda *cuda, const tundish_cuda_batch *batch, tundish_cuda_stream stream)
{
    if (batch == NULL || stream == TUNDISH_CUDA_NO_STREAM || check(cuda) != TUNDISH_OK)
        return;
    pthread_mutex_lock(&cuda->lock);
    region_end_use(&cuda->device, region_of(batch), stream);
    pthread_mutex_unlock(&cuda->lock);
}

tundish_status
tundish_cuda_keep(tundish_cuda *cuda, const tundish_cuda_batch *batch)
{
    tundish_status status = check(cuda);

    if (status == TUNDISH_OK && batch == NULL)
        status = tnd_fail(TUNDISH_E_ARGUMENT, "the batch is NULL");
    if (status != TUNDISH_OK || region_of(batch)->is_kept)
        return status;
    status = replace(cuda);
    if (status != TUNDISH_OK)
        return status;
    region_of(batch)->is_kept = true;
    cuda->users++;
    cuda->held--;
    return TUNDISH_OK;
}

/* The memory of a kept batch serves for the next one; after the close it is freed. */
static void
give_kept(tundish_cuda *cuda, struct region *region)
{
    bool is_entered;

    pthread_mutex_lock(&cuda->lock);
    region->is_kept = false;
    if (!cuda->is_closed) {
        if (!region->was_in_capture)
            ahead_spare(&cuda->ahead, region);
        region = NULL;
    }
    pthread_mutex_unlock(&cuda->lock);
    if (region != NULL) {
        is_entered = device_enter(&cuda->device) == TUNDISH_OK;
        cuda->device.driver->context_synchronize();
        region_close(&cuda->device, region);
        free(region);
        if (is_entered)
            device_leave(&cuda->device);
    }
    drop_user(cuda);
}

void
tundish_cuda_release(tundish_cuda *cuda, const tundish_cuda_batch *batch,
                     tundish_cuda_stream stream)
{
    struct region *region = region_of(batch);

    if (batch == NULL || check(cuda) != TUNDISH_OK)
        return;
    tundish_cuda_used(cuda, batch, stream);
    if (region->is_kept) {
        give_kept(cuda, region);
        return;
    }
    cuda->held--;
    give(cuda, region);
}

/* Before anything is put into the stream: a batch that does not fit stays the next one. */
static tundish_status
check_capacities(const struct region *region, const tundish_cuda_address *columns,
                 const uint64_t *capacities)
{
    for (uint32_t i = 0; i < region->batch.tensor_count; i++) {
        const tundish_cuda_tensor *tensor = &region->pack.columns[i].tensor;

        if (columns[i] != 0 && tensor->data_bytes > capacities[i])
            return tnd_fail(TUNDISH_E_ARGUMENT,
                            "column %s has %llu bytes, but its capacity is %llu", tensor->name,
                            (unsigned long long)tensor->data_bytes,
                            (unsigned long long)capacities[i]);
    }
    return TUNDISH_OK;
}

static tundish_status
copy_columns(tundish_cuda *cuda, const struct region *region, const tundish_cuda_address *columns,
             cu_stream stream)
{
    cu_result result = CU_SUCCESS;

    for (uint32_t i = 0; i < region->batch.tensor_count && result == CU_SUCCESS; i++) {
        const tundish_cuda_tensor *tensor = &region->pack.columns[i].tensor;

        if (columns[i] != 0 && tensor->data_bytes > 0)
            result = cuda->device.driver->copy_on_device(columns[i], tensor->data,
                                                         tensor->data_bytes, stream);
    }
    return cuda_check(cuda->device.driver, result, "copy a column");
}

tundish_status
tundish_cuda_next_into(tundish_cuda *cuda, int64_t timeout_ns, const tundish_cuda_address *columns,
                       const uint64_t *capacities, tundish_cuda_stream stream,
                       const tundish_cuda_batch **ret_batch)
{
    struct region *region = NULL;
    tundish_status status = peek(cuda, timeout_ns, &region);

    if (status == TUNDISH_OK)
        status = check_capacities(region, columns, capacities);
    if (status == TUNDISH_OK)
        status = device_enter(&cuda->device);
    if (status != TUNDISH_OK)
        return status;
    status = wait_for(cuda, region, stream);
    if (status == TUNDISH_OK)
        status = copy_columns(cuda, region, columns, stream);
    device_leave(&cuda->device);
    if (status == TUNDISH_OK)
        status = keep_token(cuda, region->token != NULL ? region->token : "");
    if (status != TUNDISH_OK)
        return status;
    region_end_use(&cuda->device, region, stream);
    (void)ahead_take(&cuda->ahead);
    cuda->last = region;
    *ret_batch = &region->batch;
    return TUNDISH_OK;
}

tundish_status
tundish_cuda_tensor_at(const tundish_cuda_batch *batch, uint32_t index,
                       const tundish_cuda_tensor **ret_tensor)
{
    if (batch == NULL || index >= batch->tensor_count)
        return tnd_fail(TUNDISH_E_ARGUMENT, "there is no column %u", index);
    *ret_tensor = &region_of(batch)->pack.columns[index].tensor;
    return TUNDISH_OK;
}

tundish_status
tundish_cuda_tensor_named(const tundish_cuda_batch *batch, const char *name,
                          const tundish_cuda_tensor **ret_tensor)
{
    for (uint32_t i = 0; batch != NULL && name != NULL && i < batch->tensor_count; i++)
        if (strcmp(region_of(batch)->pack.columns[i].tensor.name, name) == 0)
            return tundish_cuda_tensor_at(batch, i, ret_tensor);
    return tnd_fail(TUNDISH_E_ARGUMENT, "the stream has no column \"%.100s\"",
                    name != NULL ? name : "");
}

tundish_status
tundish_cuda_restart(tundish_cuda *cuda)
{
    tundish_status status = check(cuda);

    if (status != TUNDISH_OK)
        return status;
    give_last(cuda);
    ahead_stop(&cuda->ahead);
    if (!ahead_drop_epoch(&cuda->ahead) &&
        (status = tundish_restart(cuda->ahead.reader)) != TUNDISH_OK)
        return tnd_fail(status, "%s", tundish_last_error());
    return ahead_start(&cuda->ahead);
}

tundish_status
tundish_cuda_place_token(tundish_cuda *cuda, char *token, size_t capacity, size_t *ret_bytes)
{
    tundish_status status = check(cuda);

    if (status != TUNDISH_OK)
        return status;
    if (cuda->token[0] == '\0')
        return tnd_fail(TUNDISH_E_ARGUMENT, "this stream has no places");
    *ret_bytes = strlen(cuda->token) + 1;
    if (*ret_bytes > capacity)
        return tnd_fail(TUNDISH_E_ARGUMENT, "the place needs %zu bytes, but capacity is %zu",
                        *ret_bytes, capacity);
    memcpy(token, cuda->token, *ret_bytes);
    return TUNDISH_OK;
}

const char *
tundish_cuda_last_error(void)
{
    return tnd_error_text();
}
