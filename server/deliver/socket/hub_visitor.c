/* hub_visitor.c - the handshake, and the few things a trainer may say after it. */
#include "deliver/socket/hub_visitor.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/status.h"
#include "shm/layout.h"
#include "shm/place.h"

/* Messages taken at a time, so that one visitor cannot keep the others waiting. */
enum { MESSAGES_AT_A_TIME = 64, ANSWER_BYTES = 1900, LIST_BYTES = 400 };

void
visitor_open(struct visitor *visitor, struct hub *hub, int socket, int64_t hello_deadline_ns,
             void (*backed_up)(struct client *client))
{
    *visitor = (struct visitor){ .hub = hub, .hello_deadline_ns = hello_deadline_ns };
    client_open(&visitor->client, socket, backed_up);
}

void
visitor_leave(struct visitor *visitor, bool died)
{
    if (visitor->seat != NULL)
        feed_detach(visitor->feed, visitor->seat, died);
    visitor->seat = NULL;
    client_close(&visitor->client);
    free(visitor->place);
    visitor->place = NULL;
}

static enum visitor_result
refuse(struct visitor *visitor, tundish_status status)
{
    client_post_text(&visitor->client, TND_REFUSED, status, tnd_error_text());
    visitor->refused = true;
    return VISITOR_STAYS;
}

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
                        "the trainer's library speaks protocol %u to %u with layout %u, this "
                        "server protocol %d to %d with layout %d: install the same version of both",
                        hello->protocol_min, hello->protocol_max, hello->layout_major,
                        TND_PROTOCOL_MIN, TND_PROTOCOL_MAX, TND_LAYOUT_MAJOR);
    return TUNDISH_OK;
}

static tundish_status
find_feed(struct visitor *visitor, struct feed **ret_feed)
{
    const struct tnd_hello *hello = &visitor->hello;
    char list[LIST_BYTES];
    struct hub_wish wish = { hello->stream, hello->session, hello->group, hello->replica };
    struct feed *feed = hub_find(visitor->hub, hello->stream, hello->session);
    tundish_status status = TUNDISH_OK;

    if (feed == NULL)
        status = hub_make(visitor->hub, &wish, &feed);
    if (status != TUNDISH_OK)
        return status;
    if (feed != NULL) {
        *ret_feed = feed;
        return TUNDISH_OK;
    }
    hub_describe(visitor->hub, list, sizeof list);
    if (hello->stream[0] == '\0' && hello->session[0] == '\0')
        return tnd_fail(TUNDISH_E_ARGUMENT, "name a stream (TUNDISH_STREAM): this server has %s",
                        list[0] == '\0' ? "none" : list);
    return tnd_fail(TUNDISH_E_ARGUMENT, "there is no stream \"%s\"%s%s%s here: this server has %s",
                    hello->stream, hello->session[0] == '\0' ? "" : " with session \"",
                    hello->session, hello->session[0] == '\0' ? "" : "\"",
                    list[0] == '\0' ? "none" : list);
}

/* It begins no later than with what it wants next, and where the place's header is true. */
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
}

static tundish_status
read_start(const struct visitor *visitor, struct feed_start *start)
{
    const struct tnd_hello *hello = &visitor->hello;
    struct tnd_place place;
    tundish_status status;

    *start = (struct feed_start){ 0 };
    if ((hello->flags & TND_HELLO_PLACE) == 0)
        return TUNDISH_OK;
    status = tnd_place_read(visitor->place, visitor->place_bytes, &place);
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

static enum visitor_result
ask_for_seat(struct visitor *visitor)
{
    struct feed_request request = { .replica = visitor->hello.replica };
    struct feed *feed = NULL;
    /* First, since finding a feed may make one. */
    tundish_status status = read_start(visitor, &request.start);

    request.group = visitor->hello.group[0] != '\0' ? visitor->hello.group : "default";
    if (status == TUNDISH_OK)
        status = find_feed(visitor, &feed);
    if (status == TUNDISH_OK)
        status = feed_attach(feed, &request, &visitor->client, &visitor->seat);
    if (status != TUNDISH_OK)
        return refuse(visitor, status);
    visitor->feed = feed;
    free(visitor->place);
    visitor->place = NULL;
    return VISITOR_SAT_DOWN;
}

static enum visitor_result
take_hello(struct visitor *visitor, const struct tnd_message *message)
{
    struct tnd_hello *hello = &visitor->hello;
    tundish_status status;

    if (message->head.bytes < offsetof(struct tnd_hello, groups_present) || visitor->has_hello)
        return VISITOR_DIED;
    memcpy(hello, message->bytes,
           message->head.bytes < sizeof *hello ? message->head.bytes : sizeof *hello);
    visitor->has_hello = true;
    status = check_versions(hello);
    if (status != TUNDISH_OK)
        return refuse(visitor, status);
    if (!ends_in_time(hello->stream) || !ends_in_time(hello->session) ||
        !ends_in_time(hello->group))
        return VISITOR_DIED;
    if ((hello->flags & TND_HELLO_PLACE) == 0)
        return ask_for_seat(visitor);
    if (hello->place_bytes == 0 || hello->place_bytes > TND_PLACE_BYTES_MAX)
        return refuse(visitor, tnd_fail(TUNDISH_E_PLACE, "%llu bytes are not a place",
                                        (unsigned long long)hello->place_bytes));
    return VISITOR_STAYS;
}

/* Grows with what has come, not with what was announced. */
static enum visitor_result
take_place(struct visitor *visitor, const struct tnd_message *message)
{
    uint64_t have = visitor->place_bytes, more = message->head.bytes;

    if (!visitor->has_hello || (visitor->hello.flags & TND_HELLO_PLACE) == 0 || more == 0 ||
        message->head.offset != have || more > visitor->hello.place_bytes - have)
        return VISITOR_DIED;
    visitor->place = tnd_realloc(visitor->place, have + more, 1);
    memcpy(visitor->place + have, message->bytes, more);
    visitor->place_bytes += more;
    return visitor->place_bytes == visitor->hello.place_bytes ? ask_for_seat(visitor)
                                                              : VISITOR_STAYS;
}

/* An operator's question, not a trainer's. Whoever may open the socket may ask. */
static enum visitor_result
take_control(struct visitor *visitor, const struct tnd_message *message)
{
    char text[ANSWER_BYTES] = "";
    tundish_status status =
        hub_control(visitor->hub, (enum tnd_control)message->head.id, text, sizeof text);

    client_post_text(&visitor->client, TND_ANSWER, status, text);
    visitor->refused = true; /* that was all: it is to hang up */
    return VISITOR_STAYS;
}

static enum visitor_result
take_message(struct visitor *visitor, const struct tnd_message *message)
{
    if (visitor->refused)
        return VISITOR_STAYS;
    if (visitor->seat == NULL) {
        switch (message->head.type) {
        case TND_HELLO:
            return take_hello(visitor, message);
        case TND_PLACE:
            return take_place(visitor, message);
        case TND_CONTROL:
            return take_control(visitor, message);
        case TND_BYE:
            return VISITOR_LEFT;
        default:
            return VISITOR_DIED;
        }
    }
    switch (message->head.type) {
    case TND_RESTART:
        feed_vote_restart(visitor->feed, visitor->seat, message->head.id);
        return VISITOR_STAYS;
    case TND_ASK_QUEUE:
        feed_answer_queue(visitor->feed, visitor->seat);
        return VISITOR_STAYS;
    case TND_BYE:
        return VISITOR_LEFT;
    default:
        return VISITOR_DIED;
    }
}

enum visitor_result
visitor_read(struct visitor *visitor)
{
    bool sat_down = false;

    for (int i = 0; i < MESSAGES_AT_A_TIME; i++) {
        struct tnd_message message;
        enum visitor_result result;
        tundish_status status = tnd_channel_receive(visitor->client.socket, &message, NULL);

        if (status == TUNDISH_E_TIMEOUT)
            break;
        if (status != TUNDISH_OK)
            return VISITOR_DIED;
        result = take_message(visitor, &message);
        if (result == VISITOR_LEFT || result == VISITOR_DIED)
            return result;
        sat_down |= result == VISITOR_SAT_DOWN;
    }
    return sat_down ? VISITOR_SAT_DOWN : VISITOR_STAYS;
}
