/* test_session.c - a server, its session and its trainers, taken through interleavings by a seed.
 *
 * The code is the real one: hub, feed, lanes, dealing and working threads, and the library that
 * trainers use. Trainers die at any moment between two locks and are followed by others that begin
 * at the last place they saved; servers die and come back to the survivors, of whom a group may be
 * slow, or stopped for a long time; servers die when one lane shows a step and another does not;
 * groups are left by all, or are too slow and cut off; trainers save no places, and their servers
 * do, while others come too late for a server or two. What must hold: between two places a group
 * sees every batch once and in order, with the rows that it has without any trouble; nobody waits
 * for ever.
 *
 * SEED=N runs that one alone and tells what happens, SECONDS=N fresh ones for so long. What fails
 * prints its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/reader.h"
#include "core/log.h"
#include "seeds.h"
#include "spec/spec.h"
#include "world.h"

#if defined __SANITIZE_ADDRESS__
enum { SEEDS = 100 };
#else
enum { SEEDS = 600 };
#endif

enum { FIRST_TORN = 8 * 128 };

char world_folder[32] = "/tmp/tundish-simulation-XXXXXX";
char world_path[64];
uint64_t world_seed;
bool world_is_told;

static struct spec_file *
pipeline_of(const struct run *run)
{
    static const char *const delivers[STORY_COUNT] = {
        "rejoin: 10s, group_wait: 5s", /* a server may come back to one that is left */
        "rejoin: 60s",
        "rejoin: 50ms",
        "rejoin: 60s, slow_group: detach",
        "rejoin: 60s",
        "rejoin: 200s", /* longer than several stops */
        "rejoin: 60s",
        "rejoin: 1000s", /* who is waited for in vain is waited for too long */
    };
    struct spec_errors errors = { 0 };
    struct spec_file *file;
    char text[1024], distribute[128];

    if (is_queue(run))
        snprintf(distribute, sizeof distribute, "{delivery: queue}");
    else
        snprintf(distribute, sizeof distribute, "{replicas: %u, groups: %u}", run->replicas,
                 run->groups);
    snprintf(text, sizeof text,
             "seed: 5\nstreams:\n  train:\n    dataset:\n      - range: %d\n"
             "      - shuffle: {buffer_size: 16}\n      - batch: %d\n"
             "    distribute: %s\n    deliver: {epochs: %d, slots: %u, memory: memfd, %s}\n",
             ROWS, BATCH, distribute, EPOCHS, 3 + (unsigned)(run->seed % 3), delivers[run->story]);
    if (spec_open_text(text, strlen(text), "simulation.yaml", "/tmp", &errors, &file) != TUNDISH_OK)
        complain("%s", spec_errors_text(&errors));
    return file;
}

/* Seeds that are kept mean the same for good. */
static enum story
story_of(uint64_t seed)
{
    if (seed / 128 % 5 == 4)
        return STORY_STATE;
    if (seed / 128 % 10 == 3)
        return STORY_KEPT;
    if (seed / 128 % 10 == 8)
        return STORY_TORN;
    return seed / 128 % 10 == 1 ? STORY_LATE : (enum story)(seed % STORY_STATE);
}

static void
complain_of(tundish_reader *reader, void *user)
{
    (void)user;
    complain("replica %u of group %s is left to the next run", reader->replica, reader->group);
}

static void
play(uint64_t seed)
{
    struct run run = { .seed = seed, .story = story_of(seed) };

    world_seed = seed;
    world_is_told = getenv("SEED") != NULL;
    run.replicas = is_queue(&run) ? 1 : REPLICAS_MAX;
    run.groups = is_queue(&run) ? 3 : is_kept(&run) ? 1 : 2;
    run.trainer_count = run.groups * run.replicas;
    for (unsigned i = 0; i < run.trainer_count; i++)
        run.trainers[i] = (struct trainer){
            .run = &run,
            .group = i / run.replicas,
            .replica = i % run.replicas,
            .is_slow =
                (run.story == STORY_SLOW || run.story == STORY_LATE) && i / run.replicas == 1,
        };
    run.file = pipeline_of(&run);
    turns_run(seed, direct, &run);
    tnd_reader_each(complain_of, NULL);
    spec_close(run.file);
    remove_state();
}

static void
every_interleaving_brings_every_row_once(void **state)
{
    struct seeds seeds = seeds_begin(SEEDS);
    uint64_t seed;

    (void)state;
    while (seeds_draw(&seeds, &seed))
        play(seed);
    seeds_end(&seeds);
}

static void
a_server_that_dies_between_two_lanes_leaves_nobody_waiting(void **state)
{
    (void)state;
    for (uint64_t seed = FIRST_TORN; seed < FIRST_TORN + 128; seed++)
        play(seed);
}

/* What soaks have found: a survivor whose sibling had read all; a successor whose place stood
 * before an epoch's end that a survivor had passed over; an end kept in a lane that it filled; a
 * group that came back whole, when the only other one had ended; a queue's batch that an ending
 * server offered to a second trainer; survivors of several servers, of which the first knew of more
 * batches given back than those of the last had had again; a cursor that passed over a step while
 * its group was levelled. */
static void
what_once_went_wrong_does_not_again(void **state)
{
    static const uint64_t seeds[] = { 1882521938690860,  1882522405311424, 1882523146649672,
                                      1882523377337630,  1882523696104012, 1882523824033598,
                                      1882524196274826,  1882691830024934, 18827080923873706,
                                      18827081112617357, 1882733464788052 };

    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        play(seeds[i]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_once_went_wrong_does_not_again),
        cmocka_unit_test(a_server_that_dies_between_two_lanes_leaves_nobody_waiting),
        cmocka_unit_test(every_interleaving_brings_every_row_once),
    };
    int result;

    if (mkdtemp(world_folder) == NULL)
        return 1;
    snprintf(world_path, sizeof world_path, "%s/server", world_folder);
    tnd_log_set_level(TND_LOG_ERROR);
    result = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(world_folder);
    return result;
}
