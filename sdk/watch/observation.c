/* observation.c - turn metrics into shares of time. */
#include "watch/observation.h"

#include <string.h>

/* Fewer values than this say too little about a share. */
static const double ENOUGH_TO_JUDGE = 100;

static double
share(const struct watch_observation *observation, const struct watch_set *set, const char *field)
{
    return observation->passed_ns > 0
               ? (double)watch_growth(observation->before, set, field) / observation->passed_ns
               : 0;
}

/* The share of the time in which the trainer waits for the server. One for which batches are ready
 * is not scheduled, or stopped: its present wait does not count. */
static double
waits_of(const struct watch_observation *observation, const struct watch_set *reader)
{
    double waits = share(observation, reader, "wait");

    if (waits > 0 && watch_value(reader, "published") > watch_value(reader, "taken"))
        waits -= (double)watch_value(reader, "waiting") / observation->passed_ns;
    return waits < 0 ? 0 : waits > 1 ? 1 : waits;
}

/* A reader that is not attached cannot wait. Its lane is looked at in observe_lanes. */
static void
observe_reader(struct watch_observation *observation, const struct watch_set *reader)
{
    double waits = waits_of(observation, reader);

    if (watch_value(reader, "attached") == 0)
        return;
    observation->attached++;
    if (observation->waits_most == NULL || waits > observation->wait_share) {
        observation->waits_most = reader;
        observation->wait_share = waits;
    }
    if (observation->slowest == NULL || waits < observation->least_share) {
        observation->slowest = reader;
        observation->least_share = waits;
    }
}

/* The reader of the lane, there or not, that has given back least, or NULL. */
static const struct watch_set *
slowest_reader(const struct watch_observation *observation, const struct watch_set *lane)
{
    const struct watch_set *set = NULL, *slowest = NULL;
    char wanted[16], replica[16];

    watch_label(lane, "replica", wanted, sizeof wanted);
    while ((set = watch_next(observation->now, "reader", set)) != NULL) {
        watch_label(set, "replica", replica, sizeof replica);
        if (watch_is_of(set, observation->session) && strcmp(replica, wanted) == 0 &&
            (slowest == NULL || watch_value(set, "released") < watch_value(slowest, "released")))
            slowest = set;
    }
    return slowest;
}

/* While a lane is full the server can publish no further step, since a step goes to all lanes. So
 * the reader of the full lane is the reason that the others wait, for however short a time. */
static void
observe_full_lane(struct watch_observation *observation, const struct watch_set *lane)
{
    const struct watch_set *reader = slowest_reader(observation, lane);

    /* A lane keeps what its own reader has given back until all replicas of the group have: then it
     * is full, too, and another lane has the reason. */
    if (reader != NULL && watch_value(lane, "published") <
                              watch_value(reader, "released") + watch_value(lane, "slots"))
        return;
    if (reader == NULL || watch_value(reader, "attached") == 0) {
        observation->deserted = reader != NULL ? reader : lane;
    } else if (observation->waits_in_vain &&
               (observation->holder == NULL ||
                watch_value(reader, "silent") > watch_value(observation->holder, "silent"))) {
        observation->holder = reader;
        observation->holder_slots = watch_value(lane, "slots");
    }
}

/* A queue's readers are told apart by their processes, and count what they were given. */
static bool
is_queue(const struct watch_observation *observation)
{
    char process[16] = "";

    if (observation->waits_most != NULL)
        watch_label(observation->waits_most, "process", process, sizeof process);
    return process[0] != '\0';
}

static void
observe_lanes(struct watch_observation *observation)
{
    const struct watch_set *set = NULL;

    /* A trainer waits in vain if nothing is ready for it: only then can another lane be the reason.
     */
    observation->waits_in_vain =
        observation->waits_most != NULL && watch_value(observation->waits_most, "published") <=
                                               watch_value(observation->waits_most, "taken");
    while (!is_queue(observation) && (set = watch_next(observation->now, "lane", set)) != NULL) {
        uint64_t slots = watch_value(set, "slots");

        /* Full: every slot is published and not released by the slowest reader. */
        if (watch_is_of(set, observation->session) && slots > 0 &&
            watch_value(set, "published") >= watch_value(set, "released") + slots)
            observe_full_lane(observation, set);
    }
}

/* A trainer that stops now and then holds the others up only then: its lane need not be full now.
 */
static void
observe_pauses(struct watch_observation *observation)
{
    const struct watch_set *set = NULL;

    while ((set = watch_next(observation->now, "reader", set)) != NULL) {
        double paused = share(observation, set, "paused");

        if (watch_is_of(set, observation->session) && set != observation->waits_most &&
            paused > observation->pause_share) {
            observation->pauser = set;
            observation->pause_share = paused;
        }
    }
}

static void
observe_processors(struct watch_observation *observation)
{
    const struct watch_set *server = watch_next(observation->now, "server", NULL);

    /* These are sums over all threads, so they count processors and may exceed 1. */
    observation->run_delay = share(observation, server, "run_delay");
    observation->throttled = share(observation, server, "throttled");
    observation->cpu = share(observation, server, "cpu");
    observation->memory_stalled = share(observation, server, "memory_stalled");
}

/* Threads count as busy while they read files. Busy time that is neither on a processor nor waiting
 * for one is time spent waiting for storage, swapped memory included. */
static void
observe_storage(struct watch_observation *observation)
{
    double works = observation->busy * observation->threads + observation->deal_busy;
    double waits = works - observation->cpu - observation->run_delay - observation->throttled -
                   observation->python_wait;

    if (works > 0 && waits > 0)
        observation->off_processor = waits / works;
}

/* Waits are counted when they end, so the shares of a thread need not add up to 1: the share for
 * want of room is that of all the time that was counted. A lane that was full for most of the time
 * may have room at the moment of the snapshot: its reader is then the one that waits far less. */
static void
observe_room(struct watch_observation *observation)
{
    double counted = observation->busy + observation->slot_wait + observation->order_wait;

    if (counted > 0)
        observation->room_wait = observation->slot_wait / counted;
    observation->blocker = observation->holder != NULL ? observation->holder
                           : observation->least_share < observation->wait_share / 2
                               ? observation->slowest
                               : NULL;
    if (observation->blocker == observation->waits_most)
        observation->blocker = NULL;
}

static void
observe_threads(struct watch_observation *observation)
{
    const struct watch_set *set = NULL;
    double busy = 0, slots = 0, order = 0;

    while ((set = watch_next(observation->now, "thread", set)) != NULL) {
        char thread[32];

        watch_label(set, "thread", thread, sizeof thread);
        /* The dealing thread has a set too, but makes no content; observe_dealing looks at it. */
        if (!watch_is_of(set, observation->session) || strcmp(thread, "order") == 0)
            continue;
        observation->threads++;
        busy += share(observation, set, "busy");
        slots += share(observation, set, "slot_wait");
        order += share(observation, set, "order_wait");
    }
    if (observation->threads == 0)
        return;
    observation->busy = busy / observation->threads;
    observation->slot_wait = slots / observation->threads;
    observation->order_wait = order / observation->threads;
}

/* The order's own stages: their time is one thread's. */
static void
observe_order(struct watch_observation *observation, const struct watch_set *set)
{
    double takes = share(observation, set, "busy");
    uint64_t held = watch_value(set, "queued"), room = watch_value(set, "room");

    if (takes > observation->order_share) {
        observation->order = set;
        observation->order_share = takes;
    }
    /* Elements went in and none came out: the buffer of a shuffle fills for the first time. */
    if (held > 0 && held < room && watch_value(set, "rows") == 0)
        observation->filling = set;
}

/* A call is counted when it ends, but its elements are queued from its start. So a stage with
 * elements and without a call in all that time is in one long call. */
static bool
is_in_long_call(const struct watch_observation *observation, const struct watch_set *stage)
{
    const struct watch_set *then = watch_find(observation->before, "stage", stage->labels);

    return watch_value(stage, "queued") > 0 && watch_value(then, "queued") > 0 &&
           watch_growth(observation->before, stage, "calls") == 0;
}

static void
observe_stages(struct watch_observation *observation)
{
    const struct watch_set *set = NULL;

    while ((set = watch_next(observation->now, "stage", set)) != NULL) {
        double takes =
            share(observation, set, "busy") / (observation->threads > 0 ? observation->threads : 1);
        char part[16];

        if (!watch_is_of(set, observation->session))
            continue;
        watch_label(set, "part", part, sizeof part);
        if (strcmp(part, "order") == 0) {
            observe_order(observation, set);
            continue;
        }
        if (takes > observation->stage_share) {
            observation->stage = set;
            observation->stage_share = takes;
        }
        if (is_in_long_call(observation, set))
            observation->long_call = set;
    }
}

/* The dealing thread has been at one step for all of that time if it has neither worked on a
 * finished step nor waited: its times are counted when a step ends. */
static void
observe_dealing(struct watch_observation *observation)
{
    observation->deal_busy = share(observation, observation->session, "deal_busy");
    observation->program_wait = share(observation, observation->session, "program_wait");
    if (watch_next(observation->now, "link", NULL) != NULL)
        observation->node_wait =
            share(observation, watch_next(observation->now, "link", NULL), "wait");
    observation->deals_long = observation->deal_busy <= 0 && observation->program_wait <= 0 &&
                              share(observation, observation->session, "deal_wait") <= 0 &&
                              watch_value(observation->session, "ready_steps") == 0;
}

static void
observe_stores(struct watch_observation *observation)
{
    const struct watch_set *set = NULL;
    double most = 0;

    while ((set = watch_next(observation->now, "store", set)) != NULL) {
        double waits = share(observation, set, "wait");

        observation->store_wait += waits;
        if (waits > most) {
            most = waits;
            observation->store = set;
        }
    }
    while ((set = watch_next(observation->now, "delay", set)) != NULL)
        if (watch_value(set, "wait") > watch_value(observation->delay, "wait"))
            observation->delay = set;
}

/* Threads wait while interpreters work, and while none is free. */
static void
observe_python(struct watch_observation *observation)
{
    const struct watch_set *set = NULL;
    double most = 0;

    while ((set = watch_next(observation->now, "python", set)) != NULL) {
        double busy = share(observation, set, "busy");
        double limit = (double)watch_value(set, "limit");

        observation->python_wait += busy + share(observation, set, "wait");
        if (busy > most && limit > 0) {
            most = busy;
            observation->python = set;
            observation->python_share = busy < limit ? busy / limit : 1;
        }
    }
}

static void
observe_rows(struct watch_observation *observation)
{
    double skipped =
        (double)watch_growth(observation->before, observation->session, "rows_skipped");
    double rows = (double)watch_growth(observation->before, observation->session, "rows") + skipped;

    /* Rows that are skipped are not delivered, so `rows` alone would be the wrong total. */
    if (rows >= ENOUGH_TO_JUDGE)
        observation->skipped_share = skipped / rows;
}

static void
observe_helpers(struct watch_observation *observation)
{
    const struct watch_set *set = NULL;
    double rows = (double)watch_growth(observation->before, observation->session, "rows");
    double made = 0, busy = 0, threads = 0;

    while ((set = watch_next(observation->now, "helper", set)) != NULL) {
        if (!watch_is_of(set, observation->session))
            continue;
        observation->helpers++;
        observation->helpers_lost += watch_value(set, "connections") == 0;
        made += (double)watch_growth(observation->before, set, "rows");
        if (watch_value(set, "connections") == 0)
            continue;
        busy += share(observation, set, "busy");
        threads += (double)watch_value(set, "threads");
    }
    if (rows > 0)
        observation->helper_rows = made < rows ? made / rows : 1;
    if (threads > 0)
        observation->helper_busy = busy < threads ? busy / threads : 1;
}

#define LOOK_AT_ROWS "tundish explain --step names the file and the record of each row of a batch."

static const struct watch_worse worse_kinds[] = {
    { "vocabulary", "lookups", "out_of_vocabulary", "looked up in vocabulary", "not in it",
      "Check the files that the notes name: they have changed, or the vocabulary was made from "
      "other data." },
    { "column", "values", "nan", "in column", "NaN", LOOK_AT_ROWS },
    { "column", "values", "infinite", "in column", "infinite", LOOK_AT_ROWS },
};

/* Find the share of such values that has grown most against all earlier ones. */
static void
observe_share(struct watch_observation *observation, const struct watch_worse *kind,
              const struct watch_set *set)
{
    double such = (double)watch_growth(observation->before, set, kind->such);
    double all = (double)watch_growth(observation->before, set, kind->all);
    double such_before = (double)watch_value(set, kind->such) - such;
    double all_before = (double)watch_value(set, kind->all) - all;
    double now, before;

    if (all < ENOUGH_TO_JUDGE || all_before < ENOUGH_TO_JUDGE)
        return;
    now = such / all;
    before = such_before / all_before;
    /* A share that was always high belongs to the data. One that has more than doubled is news. */
    if (now > 0.1 + 2 * before && now > observation->worse_share) {
        observation->worse = kind;
        observation->worse_set = set;
        observation->worse_share = now;
        observation->worse_before = before;
    }
}

static void
observe_data(struct watch_observation *observation)
{
    observe_rows(observation);
    for (size_t i = 0; i < sizeof worse_kinds / sizeof *worse_kinds; i++) {
        const struct watch_set *set = NULL;

        while ((set = watch_next(observation->now, worse_kinds[i].kind, set)) != NULL)
            if (watch_is_of(set, observation->session))
                observe_share(observation, &worse_kinds[i], set);
    }
}

void
watch_observation_make(struct watch_observation *observation)
{
    const struct watch_set *set = NULL;

    while ((set = watch_next(observation->now, "reader", set)) != NULL)
        if (watch_is_of(set, observation->session))
            observe_reader(observation, set);
    /* Lanes need waits_most; storage needs the times of threads and of the dealing thread. */
    observe_lanes(observation);
    observe_pauses(observation);
    observe_threads(observation);
    observe_room(observation);
    observe_processors(observation);
    observe_stages(observation);
    observe_dealing(observation);
    observe_stores(observation);
    observe_python(observation);
    observe_storage(observation);
    observe_helpers(observation);
    observe_data(observation);
}
