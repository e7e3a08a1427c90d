/* cluster.c - links opened and closed together, and their time. */
#include "unit/cluster.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/clock.h"
#include "link/link_private.h"

static const int64_t TICK_NS = 100000000; /* less than any pause between two beats */

static _Atomic int64_t stopped_ns;

void
cluster_pretend(uint32_t size)
{
    char text[16];

    snprintf(text, sizeof text, "%u", size);
    assert_int_equal(
        size > 0 ? setenv("OMPI_COMM_WORLD_SIZE", text, 1) : unsetenv("OMPI_COMM_WORLD_SIZE"), 0);
}

void
cluster_open(uint32_t size, struct link **ret_links)
{
    cluster_pretend(size);
    for (uint32_t i = 0; i < size; i++) {
        if (link_open(&(struct link_options){ .expected_nodes = size }, &ret_links[i]) !=
            TUNDISH_OK)
            fail_msg("%s", tnd_error_text());
        assert_int_equal(link_rank(ret_links[i]), i);
    }
    cluster_pretend(0);
}

static void *
leave(void *link)
{
    link_leave(link, -1);
    return NULL;
}

void
cluster_close(uint32_t size, struct link **links)
{
    pthread_t threads[CLUSTER_NODES];

    for (uint32_t i = 0; i < size; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, leave, links[i]), 0);
    for (uint32_t i = 0; i < size; i++) {
        pthread_join(threads[i], NULL);
        link_close(links[i]);
    }
}

/* Call a function of the channel's. */
static void
call(const char *name, uint32_t rank)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    void (*function)(uint32_t rank);

    assert_non_null(found);
    memcpy(&function, &found, sizeof function);
    function(rank);
}

void
cluster_cut(uint32_t rank)
{
    call("cluster_channel_cut", rank);
}

void
cluster_hold(uint32_t rank)
{
    call("cluster_channel_hold", rank);
}

void
cluster_await(uint32_t rank)
{
    call("cluster_channel_await", rank);
}

void
cluster_let_go(uint32_t rank)
{
    call("cluster_channel_let_go", rank);
}

static int64_t
stopped_now(void *unused)
{
    (void)unused;
    return stopped_ns;
}

static const struct tnd_clock stopped_clock = { .now_ns = stopped_now };

/* Long past by the machine's clock, so that a wait for a moment of this one ends at once and the
 * links look again and again. */
void
cluster_stop_clock(void)
{
    stopped_ns = 1;
    tnd_clock_install(&stopped_clock);
}

void
cluster_start_clock(void)
{
    tnd_clock_install(NULL);
}

static uint64_t
turns_of(struct link *link)
{
    uint64_t turns;

    pthread_mutex_lock(&link->lock);
    turns = link->state == LINK_JOINED ? link->turns : UINT64_MAX;
    pthread_mutex_unlock(&link->lock);
    return turns;
}

/* Two turns each: what one node sends in its first turn the others have after their second. */
static void
let_all_turn(uint32_t size, struct link *const *links)
{
    uint64_t until[CLUSTER_NODES];

    for (int i = 0; i < 2; i++) {
        for (uint32_t rank = 0; rank < size; rank++)
            until[rank] = links[rank] != NULL ? turns_of(links[rank]) + 2 : 0;
        for (uint32_t rank = 0; rank < size; rank++)
            while (links[rank] != NULL && turns_of(links[rank]) < until[rank])
                usleep(50);
    }
}

void
cluster_pass(uint32_t size, struct link *const *links, int64_t ns)
{
    for (int64_t end_ns = stopped_ns + ns; stopped_ns < end_ns;) {
        let_all_turn(size, links);
        stopped_ns += TICK_NS;
    }
    let_all_turn(size, links);
}
