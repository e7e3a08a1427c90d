/* test_ring.c - both sides of the counters, in one process that has mapped them twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <time.h>

#include "core/clock.h"
#include "shm/ring.h"
#include "shm/segment.h"
#include "unit/test_file.h"

#define SECOND INT64_C(1000000000)

/* The server's view of a segment and the consumer's. */
struct pair {
    struct tnd_segment batches_segment, returns_segment;
    struct tnd_batches *batches;
    const struct tnd_batches *seen;
    struct tnd_returns *returns;
};

static void
open_pair(struct pair *pair)
{
    void *seen, *returns;

    assert_int_equal(tnd_segment_create(4096, true, false, &pair->batches_segment), TUNDISH_OK);
    assert_int_equal(tnd_segment_create_returns(4096, &pair->returns_segment), TUNDISH_OK);
    assert_int_equal(tnd_segment_map(pair->batches_segment.read_descriptor, 4096, false, &seen),
                     TUNDISH_OK);
    assert_int_equal(tnd_segment_map(pair->returns_segment.read_descriptor, 4096, true, &returns),
                     TUNDISH_OK);
    pair->batches = (struct tnd_batches *)(void *)pair->batches_segment.bytes;
    pair->seen = seen;
    pair->returns = returns;
}

static void
close_pair(struct pair *pair)
{
    tnd_segment_unmap((void *)(uintptr_t)pair->seen, 4096);
    tnd_segment_unmap(pair->returns, 4096);
    tnd_segment_close(&pair->batches_segment);
    tnd_segment_close(&pair->returns_segment);
}

static struct tnd_ring_wait
wait_for(const struct pair *pair, uint64_t position)
{
    return (struct tnd_ring_wait){
        .batches = pair->seen,
        .returns = pair->returns,
        .counter = &pair->seen->published,
        .position = position,
        .notice = atomic_load(&pair->seen->notice),
    };
}

static int64_t
cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * SECOND + used.tv_nsec;
}

static void
a_wait_that_is_over_returns_at_once(void **state)
{
    struct pair pair;
    struct tnd_ring_wait wait;

    (void)state;
    open_pair(&pair);
    wait = wait_for(&pair, 0);
    assert_false(tnd_ring_ready(&wait));
    assert_false(tnd_ring_spin(&wait, 1000));
    tnd_ring_publish(pair.batches, 1);
    assert_true(tnd_ring_ready(&wait));
    assert_true(tnd_ring_spin(&wait, SECOND));
    assert_true(tnd_ring_sleep(&wait, SECOND));
    assert_false(tnd_ring_is_asleep(pair.returns));
    close_pair(&pair);
}

static void
sleeping_in_vain_takes_time_but_no_processor(void **state)
{
    struct pair pair;
    struct tnd_ring_wait wait;
    int64_t began_ns, cpu_began_ns;

    (void)state;
    open_pair(&pair);
    wait = wait_for(&pair, 0);
    began_ns = tnd_clock_ns();
    cpu_began_ns = cpu_ns();
    for (int i = 0; i < 50; i++)
        assert_false(tnd_ring_sleep(&wait, SECOND / 50));
    assert_true(tnd_clock_ns() - began_ns >= SECOND);
    assert_true(cpu_ns() - cpu_began_ns < SECOND / 2);
    close_pair(&pair);
}

static void
a_notice_ends_a_wait(void **state)
{
    struct pair pair;
    struct tnd_ring_wait wait;

    (void)state;
    open_pair(&pair);
    wait = wait_for(&pair, 0);
    tnd_ring_notify(pair.batches);
    assert_true(tnd_ring_sleep(&wait, SECOND));
    close_pair(&pair);
}

static void
a_release_asks_for_the_wakeup_only_if_the_server_waits(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair);
    assert_false(tnd_ring_release(pair.returns, pair.seen, 1));
    atomic_store(&pair.batches->server_waits, 1);
    assert_true(tnd_ring_release(pair.returns, pair.seen, 2));
    assert_int_equal(atomic_load(&pair.returns->released), 2);
    close_pair(&pair);
}

enum { TURNS = 20000 };

/* One sleep; true if it went on to its end although something was there by then. */
static bool
sleep_through(const struct tnd_ring_wait *wait)
{
    int64_t began_ns = tnd_clock_ns();

    return tnd_ring_sleep(wait, SECOND) && tnd_clock_ns() - began_ns >= TND_RING_SLEEP_MAX_NS;
}

/* Returns how often it was not woken, or was so late to run that it might not have been. */
static void *
consume(void *argument)
{
    struct pair *pair = argument;
    uintptr_t late = 0;

    for (uint64_t i = 0; i < TURNS; i++) {
        struct tnd_ring_wait wait = wait_for(pair, i);

        while (!tnd_ring_spin(&wait, i % 3 == 0 ? 2000 : 0))
            late += sleep_through(&wait);
        tnd_ring_release(pair->returns, pair->seen, i + 1);
    }
    return (void *)late;
}

/* The server sleeps in no way here, it looks: what is tested is that the consumer never sleeps
 * through a publication. */
static void
no_publication_is_slept_through(void **state)
{
    struct pair pair;
    pthread_t thread;
    void *late;

    (void)state;
    open_pair(&pair);
    assert_int_equal(pthread_create(&thread, NULL, consume, &pair), 0);
    for (uint64_t i = 0; i < TURNS; i++) {
        tnd_ring_publish(pair.batches, i + 1);
        if (tnd_ring_is_asleep(pair.returns))
            tnd_ring_wake(pair.batches);
        while (atomic_load(&pair.returns->released) <= i)
            sched_yield();
    }
    pthread_join(thread, &late);
    assert_true((uintptr_t)late < TURNS / 30);
    close_pair(&pair);
}

TEST_FILE(test_ring)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_that_is_over_returns_at_once),
        cmocka_unit_test(sleeping_in_vain_takes_time_but_no_processor),
        cmocka_unit_test(a_notice_ends_a_wait),
        cmocka_unit_test(a_release_asks_for_the_wakeup_only_if_the_server_waits),
        cmocka_unit_test(no_publication_is_slept_through),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
