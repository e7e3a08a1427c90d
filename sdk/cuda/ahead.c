/* ahead.c - one region after the other: wait for a free one, read, pack, send. */
#include "cuda/ahead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/status.h"

#define LOOK_UP_NS INT64_C(100000000) /* how long a read may go without a look at `stops` */

/* After these tundish_next says nothing else. */
static bool
is_final(tundish_status status)
{
    return status != TUNDISH_OK && status != TUNDISH_END && status != TUNDISH_E_SERVER_GONE &&
           status != TUNDISH_E_PEER_LOST;
}

/* A read that waits for a server must end when the library is closed, so it looks here in between.
 */
static bool
is_stopping(struct ahead *ahead)
{
    bool stops;

    pthread_mutex_lock(&ahead->lock);
    stops = ahead->stops;
    pthread_mutex_unlock(&ahead->lock);
    return stops;
}

/* NULL: the thread is to end. */
static struct region *
take_free(struct ahead *ahead)
{
    struct region *region = NULL;

    pthread_mutex_lock(&ahead->lock);
    while (ahead->free == NULL && !ahead->stops)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    if (!ahead->stops) {
        region = ahead->free;
        ahead->free = region->next;
    }
    pthread_mutex_unlock(&ahead->lock);
    return region;
}

/* Other outcomes than batches go through the same queue: they must come in their order. */
static void
publish(struct ahead *ahead, struct region *region)
{
    pthread_mutex_lock(&ahead->lock);
    region->next = NULL;
    *ahead->tail = region;
    ahead->tail = &region->next;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

/* Some streams have no places (an evaluation); that is not a failure of reading. */
static void
keep_place(tundish_reader *reader, struct region *region)
{
    size_t bytes = 0;
    tundish_status status =
        tundish_place_token(reader, region->token, region->token_capacity, &bytes);

    if (status == TUNDISH_E_ARGUMENT && bytes > region->token_capacity) {
        char *grown = realloc(region->token, bytes);

        if (grown == NULL)
            return;
        region->token = grown;
        region->token_capacity = bytes;
        status = tundish_place_token(reader, region->token, region->token_capacity, &bytes);
    }
    if (status != TUNDISH_OK && region->token_capacity > 0)
        region->token[0] = '\0';
}

/* The server may fill the slot again only when the device has read it. */
static void
settle(struct ahead *ahead, struct copying *copying)
{
    if (copying->batch == NULL)
        return;
    region_await_copy(ahead->way.device, copying->region);
    tundish_release(ahead->reader, copying->batch);
    *copying = (struct copying){ 0 };
}

/* A batch that is being copied is held meanwhile, but not while the server has nothing else. */
static tundish_status
read_next(struct ahead *ahead, const tundish_batch **ret_batch)
{
    tundish_status status;

    if (!ahead->may_hold)
        settle(ahead, &ahead->now);
    do {
        int64_t patience_ns = ahead->now.batch != NULL ? 0 : LOOK_UP_NS;

        status = tundish_next(ahead->reader, patience_ns, ret_batch);
        if (status == TUNDISH_E_TIMEOUT)
            settle(ahead, &ahead->now);
    } while (status == TUNDISH_E_TIMEOUT && !is_stopping(ahead));
    if (status < TUNDISH_OK)
        tnd_fail(status, "%s", tundish_last_error());
    return status;
}

/* The sentence belongs to this thread, so the caller's gets a copy. */
static void
set_outcome(struct region *region, tundish_status status)
{
    region->status = status;
    region->text[0] = '\0';
    if (status < TUNDISH_OK)
        strncpy(region->text, tnd_error_text(), sizeof region->text - 1);
}

/* Here, because only the thread that uses the reader may call it. The server keeps no history: it
 * gets totals. */
static void
tell(struct ahead *ahead)
{
    const struct way *way = &ahead->way;
    tundish_device_figures figures = {
        .size = sizeof figures,
        .mode = pin_mode(&way->pin),
        .why = way->pin.why,
        .copied_bytes = way->copied_bytes,
        .copy_ns = way->copy_ns,
        .kernel_ns = way->kernel_ns,
        .waited_ns = ahead->waited_ns,
    };

    (void)tundish_tell_device(ahead->reader, &figures);
}

/* Its slot goes back at once, or, where the device reads it, after the next batch is on its way. */
static tundish_status
bring(struct ahead *ahead, struct region *region, const tundish_batch *batch)
{
    tundish_status status;

    if (ahead->now.region == region)
        settle(ahead, &ahead->now);
    pin_follow(&ahead->way.pin, ahead->reader);
    status = region_fill(&ahead->way, region, batch);
    ahead->before = ahead->now;
    ahead->now = (struct copying){ 0 };
    if (status == TUNDISH_OK && region->reads_slot)
        ahead->now = (struct copying){ .batch = batch, .region = region };
    else
        tundish_release(ahead->reader, batch);
    return status;
}

/* Read a batch, or another outcome, into a region. E_TIMEOUT: the thread is to end. */
static tundish_status
fill(struct ahead *ahead, struct region *region)
{
    const tundish_batch *batch = NULL;
    tundish_status status = read_next(ahead, &batch);

    if (status == TUNDISH_E_TIMEOUT)
        return status;
    if (status == TUNDISH_OK)
        status = bring(ahead, region, batch);
    set_outcome(region, status);
    keep_place(ahead->reader, region);
    return status;
}

static void
read_all(struct ahead *ahead)
{
    struct region *region;
    tundish_status status = TUNDISH_OK;

    pin_follow(&ahead->way.pin, ahead->reader);
    tell(ahead);
    while (!is_final(status) && (region = take_free(ahead)) != NULL) {
        status = fill(ahead, region);
        if (status == TUNDISH_E_TIMEOUT)
            ahead_give(ahead, region);
        else
            publish(ahead, region);
        tell(ahead);
        settle(ahead, &ahead->before);
    }
    settle(ahead, &ahead->now);
}

static void *
run(void *user)
{
    struct ahead *ahead = user;
    struct region *region;
    tundish_status status;
    int mode = CU_CAPTURE_RELAXED;

    /* This thread's calls must not spoil a graph that another thread is capturing. */
    ahead->way.device->driver->exchange_capture_mode(&mode);
    status = device_enter(ahead->way.device);
    if (status == TUNDISH_OK) {
        read_all(ahead);
        device_leave(ahead->way.device);
    } else if ((region = take_free(ahead)) != NULL) {
        set_outcome(region, status);
        publish(ahead, region);
    }
    return NULL;
}

tundish_status
ahead_start(struct ahead *ahead)
{
    int error;

    /* Nothing else runs now, so this needs no lock. */
    ahead->stops = false;
    error = pthread_create(&ahead->thread, NULL, run, ahead);
    if (error != 0)
        return tnd_fail_errno(error, "cannot start a thread");
    ahead->is_running = true;
    return TUNDISH_OK;
}

/* A batch that the thread is bringing is still brought: the reader has taken it, and it would be
 * lost to a restart otherwise. */
void
ahead_stop(struct ahead *ahead)
{
    if (!ahead->is_running)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->stops = true;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    pthread_join(ahead->thread, NULL);
    ahead->is_running = false;
}

/* One region more. */
static tundish_status
add_region(struct ahead *ahead)
{
    const tundish_spec *spec;
    struct region *region;
    tundish_status status = tundish_element_spec(ahead->reader, &spec);

    if (status != TUNDISH_OK)
        return tnd_fail(status, "%s", tundish_last_error());
    region = calloc(1, sizeof *region);
    if (region == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for a batch");
    status = region_open(ahead->way.device, spec, region);
    if (status != TUNDISH_OK) {
        region_close(ahead->way.device, region);
        free(region);
        return status;
    }
    pthread_mutex_lock(&ahead->lock);
    region->sibling = ahead->regions;
    ahead->regions = region;
    pthread_mutex_unlock(&ahead->lock);
    ahead_give(ahead, region);
    return TUNDISH_OK;
}

tundish_status
ahead_open(struct ahead *ahead, const struct device *device, tundish_reader *reader,
           const tundish_cuda_options *options)
{
    /* As many are held, as many are ready, and one is next_into's. */
    uint32_t region_count = 2 * options->depth + 1;
    tundish_info info = { .size = sizeof info };
    tundish_status status = tundish_get_info(reader, &info);

    if (status != TUNDISH_OK)
        return tnd_fail(status, "%s", tundish_last_error());
    *ahead = (struct ahead){ .reader = reader };
    ahead->way.device = device;
    ahead->way.limit = options->batch_bytes;
    /* All but two slots may be held, and one more is asked for meanwhile. */
    ahead->may_hold = info.slot_count > 3;
    pin_open(&ahead->way.pin, device, options->mode);
    ahead->tail = &ahead->head;
    pthread_mutex_init(&ahead->lock, NULL);
    tnd_condition_open(&ahead->changed);
    for (uint32_t i = 0; i < region_count && status == TUNDISH_OK; i++)
        status = add_region(ahead);
    return status;
}

void
ahead_close(struct ahead *ahead)
{
    if (ahead->tail == NULL)
        return; /* never opened */
    ahead_stop(ahead);
    /* After the thread has waited for its last copies out of that memory. */
    pin_close(&ahead->way.pin);
    while (ahead->regions != NULL) {
        struct region *region = ahead->regions;

        ahead->regions = region->sibling;
        if (region->is_kept)
            continue;
        region_close(ahead->way.device, region);
        free(region);
    }
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    *ahead = (struct ahead){ 0 };
}

tundish_status
ahead_peek(struct ahead *ahead, int64_t timeout_ns, struct region **ret_region)
{
    int64_t began_ns = tnd_clock_ns(), deadline = tnd_clock_deadline_ns(timeout_ns);
    struct timespec until = { .tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000 };
    int error = 0;

    pthread_mutex_lock(&ahead->lock);
    while (ahead->head == NULL && error != ETIMEDOUT) {
        if (deadline == TND_CLOCK_NEVER)
            pthread_cond_wait(&ahead->changed, &ahead->lock);
        else
            error = pthread_cond_timedwait(&ahead->changed, &ahead->lock, &until);
    }
    *ret_region = ahead->head;
    pthread_mutex_unlock(&ahead->lock);
    ahead->waited_ns += (uint64_t)(tnd_clock_ns() - began_ns);
    return *ret_region != NULL ? TUNDISH_OK
                               : tnd_fail(TUNDISH_E_TIMEOUT, "no batch is ready on the device yet");
}

/* The lock is held. */
static struct region *
unlink_head(struct ahead *ahead)
{
    struct region *region = ahead->head;

    ahead->head = region->next;
    if (ahead->head == NULL)
        ahead->tail = &ahead->head;
    return region;
}

bool
ahead_take(struct ahead *ahead)
{
    bool comes_more;

    pthread_mutex_lock(&ahead->lock);
    comes_more = !is_final(ahead->head->status);
    if (comes_more)
        unlink_head(ahead);
    pthread_mutex_unlock(&ahead->lock);
    return comes_more;
}

void
ahead_give(struct ahead *ahead, struct region *region)
{
    pthread_mutex_lock(&ahead->lock);
    region->next = ahead->free;
    ahead->free = region;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

tundish_status
ahead_replace(struct ahead *ahead)
{
    struct region *spare;

    pthread_mutex_lock(&ahead->lock);
    spare = ahead->spare;
    if (spare != NULL)
        ahead->spare = spare->next;
    pthread_mutex_unlock(&ahead->lock);
    if (spare == NULL)
        return add_region(ahead);
    ahead_give(ahead, spare);
    return TUNDISH_OK;
}

void
ahead_spare(struct ahead *ahead, struct region *region)
{
    pthread_mutex_lock(&ahead->lock);
    region->next = ahead->spare;
    ahead->spare = region;
    pthread_mutex_unlock(&ahead->lock);
}

bool
ahead_drop_epoch(struct ahead *ahead)
{
    bool is_next = false;

    while (ahead->head != NULL && !is_next && !is_final(ahead->head->status)) {
        struct region *region = ahead->head;

        if (region->status == TUNDISH_OK && region->batch.step == 0)
            return true;
        is_next = region->status == TUNDISH_END;
        pthread_mutex_lock(&ahead->lock);
        unlink_head(ahead);
        pthread_mutex_unlock(&ahead->lock);
        ahead_give(ahead, region);
    }
    return is_next || ahead->head != NULL;
}
