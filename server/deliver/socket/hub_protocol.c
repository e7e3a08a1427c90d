/* hub_protocol.c - the handshake, and the few things a trainer may say after it. */
#include "deliver/socket/hub_protocol.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/memory.h"
#include "core/status.h"
#include "shm/layout.h"
#include "shm/place.h"

/* Messages taken at a time, so that one connection cannot keep the others waiting. */
enum { MESSAGES_AT_A_TIME = 64, ANSWER_BYTES = 1900, LIST_BYTES = 400 };

void
protocol_open(struct protocol *protocol, struct hub *hub, int socket, int64_t hello_deadline_ns,
              void (*backed_up)(struct connection *connection))
{
    *protocol = (struct protocol){ .hub = hub, .hello_deadline_ns = hello_deadline_ns };
    connection_open(&protocol->connection, socket, backed_up);
}

void
protocol_close(struct protocol *protocol, bool died)
{
    if (protocol->member != NULL)
        feed_detach(protocol->feed, protocol->member, died);
    protocol->member = NULL;
    connection_close(&protocol->connection);
    free(protocol->place);
    protocol->place = NULL;
}

/* Logged here, too: the trainer's own error may lie on a screen that nobody looks at, and where the
 * server lacks something only its operator can help. Where it stops, trainers ask again and again.
 */
static enum protocol_result
refuse_trainer(struct protocol *protocol, tundish_status status)
{
    if (status != TUNDISH_E_SERVER_GONE)
        tnd_log(TND_LOG_WARNING, TND_LOG_TRAINER, "process %d is refused: %s",
                protocol->connection.pid, tnd_error_text());
    connection_post_text(&protocol->connection, TND_REFUSED, status, tnd_error_text());
    protocol->refused = true;
    return PROTOCOL_CONTINUES;
}

/* Names are used as C strings, and a hostile trainer may send one without an end. */
static bool
ends_in_time(const char name[TND_NAME_BYTES])
{
    return memchr(name, '\0', TND_NAME_BYTES) != NULL;
}

static tundish_status
check_versions(const struct tnd_hello *hello)
{
    if (hello->layout_major != TND_LAYOUT_MAJOR || hello->protocol_min > TND_PROTOCOL_MAX ||
        hello->protocol_max < TND_PROTOCOL_MIN)
        return tnd_fail(TUNDISH_E_LAYOUT,
                        "the trainer's library uses protocol %u to %u with layout %u, this server "
                        "protocol %d to %d with layout %d: install the same version of both",
                        hello->protocol_min, hello->protocol_max, hello->layout_major,
                        TND_PROTOCOL_MIN, TND_PROTOCOL_MAX, TND_LAYOUT_MAJOR);
    return TUNDISH_OK;
}

static tundish_status
find_feed(struct protocol *protocol, struct feed **ret_feed)
{
    const struct tnd_hello *hello = &protocol->hello;
    char list[LIST_BYTES];
    struct hub_request request = { hello->stream, hello->session, hello->group, hello->replica };
    struct feed *feed = hub_find(protocol->hub, hello->stream, hello->session);
    tundish_status status = TUNDISH_OK;

    if (feed == NULL)
        status = hub_make(protocol->hub, &request, &feed);
    if (status != TUNDISH_OK)
        return status;
    if (feed != NULL) {
        *ret_feed = feed;
        return TUNDISH_OK;
    }
    hub_describe(protocol->hub, list, sizeof list);
    if (hello->stream[0] == '\0' && hello->session[0] == '\0')
        return tnd_fail(TUNDISH_E_ARGUMENT, "name a stream (TUNDISH_STREAM): this server has %s",
                        list[0] == '\0' ? "none" : list);
    return tnd_fail(TUNDISH_E_ARGUMENT, "there is no stream \"%s\"%s%s%s here: this server has %s",
                    hello->stream, hello->session[0] == '\0' ? "" : " with session \"",
                    hello->session, hello->session[0] == '\0' ? "" : "\"",
                    list[0] == '\0' ? "none" : list);
}

/* Accept `kept` only if it is at or before the step that the trainer wants next, and if the place's
 * header holds there. Otherwise ignore it. */
static void
read_kept(const struct tnd_hello *hello, struct feed_start *start)
{
    bool is_later = hello->kept_epoch > start->epoch ||
                    (hello->kept_epoch == start->epoch && hello->kept_step > start->step);

    start->survivor = (hello->flags & TND_HELLO_SURVIVOR) != 0;
    start->kept_end = (hello->flags & TND_HELLO_KEPT_END) != 0;
    start->has_kept = start->survivor && (hello->flags & TND_HELLO_KEPT) != 0 && !is_later &&
                      hello->kept_epoch + start->kept_end >= start->place_epoch &&
                      hello->groups_present > 0;
    start->kept_epoch = hello->kept_epoch;
    start->kept_step = hello->kept_step;
    start->groups_present = hello->groups_present;
    start->groups_gone = hello->groups_gone;
    start->kept_generation = hello->kept_generation;
}

static tundish_status
read_start(const struct protocol *protocol, struct feed_start *start)
{
    const struct tnd_hello *hello = &protocol->hello;
    struct tnd_place place;
    tundish_status status;

    *start = (struct feed_start){ 0 };
    if ((hello->flags & TND_HELLO_PLACE) == 0)
        return TUNDISH_OK;
    status = tnd_place_read(protocol->place, protocol->place_bytes, &place);
    if (status != TUNDISH_OK)
        return status;
    start->has_place = true;
    start->place = place.header;
    start->place_bytes = place.header_bytes;
    start->place_epoch = place.header_epoch;
    start->epoch = place.epoch;
    start->step = place.step;
    start->bit_count = place.bit_count;
    start->bits = place.bits;
    read_kept(hello, start);
    return TUNDISH_OK;
}

static enum protocol_result
join_group(struct protocol *protocol)
{
    struct feed_request request = { .replica = protocol->hello.replica };
    struct feed *feed = NULL;
    /* Read the place first: a bad one must not cause find_feed to make a session. */
    tundish_status status = read_start(protocol, &request.start);

    request.knows_from = (protocol->hello.flags & TND_HELLO_FROM) != 0;
    request.group = protocol->hello.group[0] != '\0' ? protocol->hello.group : "default";
    if (status == TUNDISH_OK)
        status = find_feed(protocol, &feed);
    if (status == TUNDISH_OK)
        status = feed_attach(feed, &request, &protocol->connection, &protocol->member);
    if (status != TUNDISH_OK)
        return refuse_trainer(protocol, status);
    protocol->feed = feed;
    free(protocol->place);
    protocol->place = NULL;
    return PROTOCOL_JOINED;
}

static enum protocol_result
take_hello(struct protocol *protocol, const struct tnd_message *message)
{
    struct tnd_hello *hello = &protocol->hello;
    tundish_status status;

    if (message->head.bytes < offsetof(struct tnd_hello, groups_present) || protocol->has_hello)
        return PROTOCOL_BROKEN;
    /* An older trainer sends a shorter message: the missing fields stay 0. A newer one sends more,
     * which is ignored. */
    memcpy(hello, message->bytes,
           message->head.bytes < sizeof *hello ? message->head.bytes : sizeof *hello);
    protocol->has_hello = true;
    status = check_versions(hello);
    if (status != TUNDISH_OK)
        return refuse_trainer(protocol, status);
    if (!ends_in_time(hello->stream) || !ends_in_time(hello->session) ||
        !ends_in_time(hello->group))
        return PROTOCOL_BROKEN;
    if ((hello->flags & TND_HELLO_PLACE) == 0)
        return join_group(protocol);
    if (hello->place_bytes == 0 || hello->place_bytes > TND_PLACE_BYTES_MAX)
        return refuse_trainer(protocol, tnd_fail(TUNDISH_E_PLACE, "%llu bytes are not a place",
                                                 (unsigned long long)hello->place_bytes));
    return PROTOCOL_CONTINUES;
}

/* The buffer grows with the bytes that arrive, not with the announced length: a trainer cannot
 * reserve memory by a number. */
static enum protocol_result
take_place(struct protocol *protocol, const struct tnd_message *message)
{
    uint64_t have = protocol->place_bytes, more = message->head.bytes;

    if (!protocol->has_hello || (protocol->hello.flags & TND_HELLO_PLACE) == 0 || more == 0 ||
        message->head.offset != have || more > protocol->hello.place_bytes - have)
        return PROTOCOL_BROKEN;
    protocol->place = tnd_realloc(protocol->place, have + more, 1);
    memcpy(protocol->place + have, message->bytes, more);
    protocol->place_bytes += more;
    return protocol->place_bytes == protocol->hello.place_bytes ? join_group(protocol)
                                                                : PROTOCOL_CONTINUES;
}

/* A request of an operator, not of a trainer: a trainer of another user must not stop its
 * neighbours. */
static enum protocol_result
take_control(struct protocol *protocol, const struct tnd_message *message)
{
    char text[ANSWER_BYTES] = "";
    tundish_status status = TUNDISH_E_ARGUMENT;

    if (protocol->may_control)
        status = hub_control(protocol->hub, (enum tnd_control)message->head.id, text, sizeof text);
    else
        snprintf(text, sizeof text, "only the server's own user and root may control it");
    connection_post_text(&protocol->connection, TND_ANSWER, status, text);
    protocol->refused = true; /* that was all: the connection is to be closed */
    return PROTOCOL_CONTINUES;
}

static enum protocol_result
take_message(struct protocol *protocol, const struct tnd_message *message)
{
    if (protocol->refused)
        return PROTOCOL_CONTINUES;
    if (protocol->member == NULL) {
        switch (message->head.type) {
        case TND_HELLO:
            return take_hello(protocol, message);
        case TND_PLACE:
            return take_place(protocol, message);
        case TND_CONTROL:
            return take_control(protocol, message);
        case TND_BYE:
            return PROTOCOL_LEFT;
        default:
            return PROTOCOL_BROKEN;
        }
    }
    switch (message->head.type) {
    case TND_RESTART:
        feed_vote_restart(protocol->feed, protocol->member, message->head.id);
        return PROTOCOL_CONTINUES;
    case TND_ASK_QUEUE:
        feed_answer_queue(protocol->feed, protocol->member);
        return PROTOCOL_CONTINUES;
    case TND_ASK_STANDING:
        feed_answer_standing(protocol->feed, protocol->member, message->head.id);
        return PROTOCOL_CONTINUES;
    case TND_KEPT:
        feed_pass_kept(protocol->feed, protocol->member, message->head.id, message->head.offset);
        return PROTOCOL_CONTINUES;
    case TND_BYE:
        return PROTOCOL_LEFT;
    default:
        return PROTOCOL_BROKEN;
    }
}

enum protocol_result
protocol_read(struct protocol *protocol)
{
    bool joined = false;

    for (int i = 0; i < MESSAGES_AT_A_TIME; i++) {
        struct tnd_message message;
        enum protocol_result result;
        tundish_status status = tnd_channel_receive(protocol->connection.socket, &message, NULL);

        if (status == TUNDISH_E_TIMEOUT)
            break;
        if (status != TUNDISH_OK)
            return PROTOCOL_BROKEN;
        result = take_message(protocol, &message);
        if (result == PROTOCOL_LEFT || result == PROTOCOL_BROKEN)
            return result;
        joined |= result == PROTOCOL_JOINED;
    }
    return joined ? PROTOCOL_JOINED : PROTOCOL_CONTINUES;
}
