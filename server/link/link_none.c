/* link_none.c - the channel of a single node: nobody to send to, nothing to receive. */
#include "link/node_channel.h"

static char nothing;

static void *
none_open(uint32_t *ret_rank, uint32_t *ret_size, char ret_text[CHANNEL_TEXT_BYTES])
{
    (void)ret_text;
    *ret_rank = 0;
    *ret_size = 1;
    return &nothing;
}

static bool
none_send(void *state, uint32_t to, const void *bytes, size_t byte_count)
{
    (void)state;
    (void)to;
    (void)bytes;
    (void)byte_count;
    return true;
}

static size_t
none_receive(void *state, uint32_t *ret_from, const void **ret_bytes)
{
    (void)state;
    (void)ret_from;
    (void)ret_bytes;
    return 0;
}

static void
none_close(void *state, bool in_order)
{
    (void)state;
    (void)in_order;
}

const struct channel_ops link_none = {
    .name = "none",
    .open = none_open,
    .send = none_send,
    .receive = none_receive,
    .close = none_close,
};
