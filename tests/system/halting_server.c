/* halting_server.c - the server, which stops itself (SIGSTOP) as soon as the first of its lanes
 * shows so many positions as TUNDISH_TEST_HALT says: the other lanes do not yet show the last of
 * them.
 */
#include <signal.h>
#include <stdlib.h>

#include "shm/ring.h"

void __real_tnd_ring_publish(struct tnd_batches *batches, uint64_t published);
void __wrap_tnd_ring_publish(struct tnd_batches *batches, uint64_t published);

void
__wrap_tnd_ring_publish(struct tnd_batches *batches, uint64_t published)
{
    static _Atomic bool has_halted;
    const char *halt = getenv("TUNDISH_TEST_HALT");

    __real_tnd_ring_publish(batches, published);
    if (halt != NULL && published >= strtoull(halt, NULL, 10) &&
        !atomic_exchange(&has_halted, true))
        raise(SIGSTOP);
}
