/* fuzz_protocol.c - the server against a trainer that says anything at all, and writes anything at
 * all into its page.
 *
 * The input is cut into messages: a type, a length, the bytes behind the head. A type of 255 writes
 * the bytes into the page of returns instead, if there is one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/must.h"
#include "deliver/feed_private.h"
#include "deliver/lane_private.h"
#include "deliver/socket/hub_protocol.h"
#include "shm/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

static struct hub *hub;
static struct feed *feed;

static tundish_status
admit(void *user, struct feed *of, const char *group, uint32_t replica,
      const struct feed_start *start)
{
    uint64_t sum = 0;

    (void)user, (void)replica;
    must(strlen(group) < TND_NAME_BYTES);
    for (uint64_t i = 0; i < start->place_bytes; i++)
        sum += ((const uint8_t *)start->place)[i];
    for (uint64_t i = 0; i < start->bit_count / 8; i++)
        sum += start->bits[i];
    if (sum % 2 == 0)
        feed_rewind(of);
    return TUNDISH_OK;
}

static void
joined(void *user, struct feed *of, const char *group, uint32_t replica, uint32_t present,
       uint32_t full_group_count)
{
    (void)user, (void)of, (void)group, (void)replica, (void)present, (void)full_group_count;
}

static void
left(void *user, struct feed *of, const char *group, uint32_t replica,
     const struct departure *departure)
{
    (void)user, (void)of, (void)group, (void)replica, (void)departure;
}

static void
refused(void *user, struct feed *of)
{
    (void)user, (void)of;
}

static void
group_ended(void *user, struct feed *of, const char *group, bool lost)
{
    (void)lost, (void)user, (void)of, (void)group;
}

static void
restart(void *user, struct feed *of, uint64_t epoch)
{
    (void)user, (void)of, (void)epoch;
}

static int64_t
tick(void *user, struct feed *of, int64_t now_ns)
{
    (void)user, (void)of, (void)now_ns;
    return INT64_MAX;
}

static bool
find_standing(void *user, struct feed *of, const char *group, uint64_t *number,
              struct feed_standing *ret_standing)
{
    (void)user, (void)number;
    feed_find_standing(of, group, ret_standing);
    return true;
}

static const struct feed_ops ops = {
    .admit = admit,
    .joined = joined,
    .left = left,
    .refused = refused,
    .group_ended = group_ended,
    .restart = restart,
    .tick = tick,
    .find_standing = find_standing,
};

/* The hub's thread does not run: this one plays it. */
static void
set_up(void)
{
    static const tundish_column_spec column = {
        .name = "x", .dtype = TUNDISH_INT8, .kind = TUNDISH_DENSE, .rank = 1, .shape = { -1 }
    };
    static const tundish_spec spec = { 1, sizeof column, &column };
    char path[64];
    struct hub_config at = { .socket_path = path };
    struct feed_config config = { .stream = "s",
                                  .session = "s",
                                  .replica_count = 2,
                                  .total_replica_count = 2,
                                  .rejoin_ns = 0,
                                  .ops = &ops };

    config.lane = (struct lane_config){
        .slots = 4, .arena_bytes = 4096, .memory = LANE_MEMFD, .spec = &spec
    };
    snprintf(path, sizeof path, "/tmp/tundish-fuzz-%ld/server", (long)getpid());
    must(feed_open(&config, &feed) == TUNDISH_OK);
    must(hub_open(&at, &hub) == TUNDISH_OK && hub_add(hub, feed) == TUNDISH_OK);
}

static void
scribble(struct protocol *protocol, const uint8_t *bytes, size_t byte_count)
{
    const struct tnd_segment *page;
    struct lane_stats stats;
    uint32_t replica;

    if (protocol->member == NULL || byte_count < 1)
        return;
    page = &protocol->member->reader->returns;
    replica = protocol->member->replica;
    if (byte_count <= page->segment_bytes - TND_LINE)
        memcpy(page->bytes + TND_LINE, bytes, byte_count);
    lane_stats(feed_lane(feed, replica), &stats);
    must(stats.released <= stats.published && stats.taken <= stats.published);
    lane_publish_end(feed_lane(feed, replica), stats.published, TND_SLOT_END, 0, 0, TUNDISH_OK,
                     NULL);
}

static bool
say(int socket, struct protocol *protocol, uint8_t type, const uint8_t *bytes, size_t byte_count)
{
    struct tnd_message_head head = { .type = type, .bytes = (uint32_t)byte_count };
    enum protocol_result result;

    if (type == 255) {
        scribble(protocol, bytes, byte_count);
        return true;
    }
    if (byte_count >= 8)
        memcpy(&head.id, bytes, 8);
    if (tnd_channel_send(socket, head, bytes, NULL, 0) != TUNDISH_OK)
        return false;
    result = protocol_read(protocol);
    return result == PROTOCOL_CONTINUES || result == PROTOCOL_JOINED;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    struct protocol protocol;
    int pair[2];
    bool stays = true;

    if (hub == NULL)
        set_up();
    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    protocol_open(&protocol, hub, pair[0], 0, NULL);
    while (stays && data_bytes >= 3) {
        size_t count = (size_t)(data[1] << 8 | data[2]);

        if (count > data_bytes - 3)
            count = data_bytes - 3;
        stays = say(pair[1], &protocol, data[0], data + 3, count);
        data += 3 + count;
        data_bytes -= 3 + count;
    }
    protocol_close(&protocol, !stays);
    close(pair[1]);
    feed_tick(feed, INT64_MAX);
    return 0;
}
