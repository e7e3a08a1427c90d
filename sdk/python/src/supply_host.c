/* supply_host.c - batches in shared memory: tundish.h as it is. */
#include "supply.h"

static tundish_status
host_next(void *from, int64_t timeout_ns, struct lent *ret_lent)
{
    const tundish_batch *batch;
    tundish_status status = tundish_next(from, timeout_ns, &batch);

    if (status == TUNDISH_OK)
        *ret_lent = (struct lent){ .lent = batch, .facts = *batch };
    return status;
}

static tundish_status
host_tensor(const void *lent, uint32_t index, tundish_tensor *ret_tensor)
{
    const tundish_tensor *tensor;
    tundish_status status = tundish_tensor_at(lent, index, &tensor);

    if (status == TUNDISH_OK)
        *ret_tensor = *tensor;
    return status;
}

static tundish_status
host_keep(void *from, const void *lent)
{
    return tundish_keep(from, lent);
}

static void
host_release(void *from, const void *lent)
{
    tundish_release(from, lent);
}

static tundish_status
host_restart(void *from)
{
    return tundish_restart(from);
}

static tundish_status
host_place(void *from, char *token, size_t capacity, size_t *ret_bytes)
{
    return tundish_place_token(from, token, capacity, ret_bytes);
}

/* The SDK lends one more, and the server does not need a slot of ours for the next but one. */
static bool
host_has_room(void *from, uint32_t held)
{
    tundish_info info = { .size = sizeof info };

    (void)held;
    return tundish_get_info(from, &info) != TUNDISH_OK ||
           (info.ahead_count >= 2 && info.held_count + 2 < info.slot_count);
}

static void
host_close(void *from)
{
    tundish_close(from);
}

/* The SDK frees a reader with its last batch. */
static void
host_free(void *from)
{
    (void)from;
}

const struct supply supply_host = {
    .next = host_next,
    .tensor = host_tensor,
    .keep = host_keep,
    .release = host_release,
    .restart = host_restart,
    .place = host_place,
    .has_room = host_has_room,
    .close = host_close,
    .free = host_free,
    .last_error = tundish_last_error,
};
