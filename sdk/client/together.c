/* together.c - where the other replicas of the reader's group stand. */
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "client/delivery.h"
#include "core/clock.h"
#include "core/status.h"

/* Between questions, while other nodes have yet to answer. */
enum { PAUSE_MIN_NS = 1000000, PAUSE_MAX_NS = 50000000 };

static void
pause_for(int64_t pause_ns, int64_t deadline_ns)
{
    int64_t left_ns = tnd_clock_left_ns(deadline_ns);

    if (left_ns >= 0 && left_ns < pause_ns)
        pause_ns = left_ns;
    nanosleep(&(struct timespec){ .tv_nsec = (long)pause_ns }, NULL);
}

/* E_TIMEOUT: the server, or some node, has not answered. */
static tundish_status
ask(tundish_reader *reader, int64_t deadline_ns)
{
    struct tnd_message_head head = { .type = TND_ASK_STANDING, .id = reader->standing_number };
    tundish_status status = tnd_reader_listen(reader);

    reader->has_standing = false;
    if (status == TUNDISH_OK)
        status = reader->attachments->is_gone
                     ? tnd_fail(TUNDISH_E_SERVER_GONE,
                                "only the server knows where a group stands, and it is gone")
                     : tnd_channel_send(reader->attachments->socket, head, NULL, NULL, 0);
    while (status == TUNDISH_OK && !reader->has_standing)
        status = tnd_reader_listen_for(reader, tnd_clock_left_ns(deadline_ns));
    return status == TUNDISH_OK ? reader->standing_status : status;
}

static tundish_status
ask_all(tundish_reader *reader, int64_t deadline_ns)
{
    int64_t pause_ns = PAUSE_MIN_NS;
    tundish_status status;

    reader->standing_number = 0;
    status = ask(reader, deadline_ns);
    while (status == TUNDISH_E_TIMEOUT && tnd_clock_left_ns(deadline_ns) != 0) {
        pause_for(pause_ns, deadline_ns);
        pause_ns = pause_ns * 2 < PAUSE_MAX_NS ? pause_ns * 2 : PAUSE_MAX_NS;
        status = ask(reader, deadline_ns);
    }
    return status;
}

static void
describe(const tundish_reader *reader, tundish_standing *ret_standing)
{
    const struct tnd_standing *standing = &reader->standing;

    ret_standing->is_known = standing->is_known != 0;
    ret_standing->lowest_epoch = standing->lowest_epoch;
    ret_standing->lowest_step = standing->lowest_step;
    ret_standing->highest_epoch = standing->highest_epoch;
    ret_standing->highest_step = standing->highest_step;
    ret_standing->is_together = ret_standing->is_known && standing->lowest_epoch == reader->epoch &&
                                standing->lowest_step == reader->step &&
                                standing->highest_epoch == reader->epoch &&
                                standing->highest_step == reader->step;
}

tundish_status
tundish_get_standing(tundish_reader *reader, int64_t timeout_ns, tundish_standing *ret_standing)
{
    int64_t deadline_ns = tnd_clock_deadline_ns(timeout_ns);
    tundish_standing standing = { .size = sizeof standing };
    tundish_status status = tnd_reader_check(reader);

    if (status != TUNDISH_OK)
        return status;
    if (ret_standing->size < sizeof standing)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "standing.size is %zu: set it to sizeof(tundish_standing)",
                        ret_standing->size);
    if (!reader->attachments->delivery->is_in_order)
        return tnd_fail(TUNDISH_E_ARGUMENT, "the readers of a queue take no steps together");
    status = tnd_reader_find_start(reader);
    if (status != TUNDISH_OK)
        return status;
    standing.epoch = reader->epoch;
    standing.step = reader->step;
    if ((reader->attachments->welcome.flags & TND_WELCOME_STANDING) != 0)
        status = ask_all(reader, deadline_ns);
    else
        status = TUNDISH_E_TIMEOUT; /* an older server does not tell */
    if (status == TUNDISH_OK)
        describe(reader, &standing);
    if (status != TUNDISH_OK && status != TUNDISH_E_TIMEOUT)
        return status;
    memcpy(ret_standing, &standing, sizeof standing);
    return TUNDISH_OK;
}
