/* halting_server.c - the server, which stands still at the worst moment that TUNDISH_TEST_HALT
 * names.
 *
 * A number: it stops itself (SIGSTOP) as soon as the first of its lanes shows so many positions;
 * the other lanes do not yet show the last of them. "begin": the thread that deals sleeps for good
 * once trainers can be told where the lanes begin. "welcome": the thread that lets trainers in
 * sleeps for two seconds after each.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deliver/feed.h"
#include "deliver/lane_reader.h"
#include "shm/ring.h"

void __real_tnd_ring_publish(struct tnd_batches *batches, uint64_t published);
void __wrap_tnd_ring_publish(struct tnd_batches *batches, uint64_t published);
void __real_feed_tell_begin(struct feed *feed, uint64_t epoch, uint64_t step);
void __wrap_feed_tell_begin(struct feed *feed, uint64_t epoch, uint64_t step);
tundish_status __real_lane_reader_attach(struct lane_reader *reader, struct connection *connection,
                                         struct tnd_welcome *welcome);
tundish_status __wrap_lane_reader_attach(struct lane_reader *reader, struct connection *connection,
                                         struct tnd_welcome *welcome);

static const char *
halts_at(void)
{
    const char *halt = getenv("TUNDISH_TEST_HALT");

    return halt == NULL ? "" : halt;
}

void
__wrap_tnd_ring_publish(struct tnd_batches *batches, uint64_t published)
{
    static _Atomic bool has_halted;
    uint64_t halts_after = strtoull(halts_at(), NULL, 10);

    __real_tnd_ring_publish(batches, published);
    if (halts_after > 0 && published >= halts_after && !atomic_exchange(&has_halted, true))
        raise(SIGSTOP);
}

void
__wrap_feed_tell_begin(struct feed *feed, uint64_t epoch, uint64_t step)
{
    __real_feed_tell_begin(feed, epoch, step);
    while (strcmp(halts_at(), "begin") == 0)
        pause();
}

tundish_status
__wrap_lane_reader_attach(struct lane_reader *reader, struct connection *connection,
                          struct tnd_welcome *welcome)
{
    tundish_status status = __real_lane_reader_attach(reader, connection, welcome);

    if (strcmp(halts_at(), "welcome") == 0)
        sleep(2);
    return status;
}
