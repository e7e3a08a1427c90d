/* scene.c - figures turned into shares of time. */
#include "watch/scene.h"

#include <string.h>

/* Fewer values than this say little about a share. */
static const double ENOUGH_TO_JUDGE = 100;

static double
share(const struct watch_scene *scene, const struct watch_set *set, const char *field)
{
    return scene->passed_ns > 0 ? (double)watch_growth(scene->before, set, field) / scene->passed_ns
                                : 0;
}

/* One that waits for what lies there already does not run at all: nobody keeps it waiting. */
static bool
is_stopped(const struct watch_set *reader)
{
    return watch_value(reader, "waiting") > 0 &&
           watch_value(reader, "published") > watch_value(reader, "taken");
}

static void
look_at_reader(struct watch_scene *scene, const struct watch_set *reader)
{
    double waits = is_stopped(reader) ? 0 : share(scene, reader, "wait");

    if (watch_value(reader, "attached") == 0)
        return;
    scene->attached++;
    if (scene->waits_most == NULL || waits > scene->wait_share) {
        scene->waits_most = reader;
        scene->wait_share = waits > 1 ? 1 : waits;
    }
    if (scene->slowest == NULL || waits < scene->least_share) {
        scene->slowest = reader;
        scene->least_share = waits;
    }
}

/* The reader of the lane, there or not, that has given back least, or NULL. */
static const struct watch_set *
slowest_reader(const struct watch_scene *scene, const struct watch_set *lane)
{
    const struct watch_set *set = NULL, *slowest = NULL;
    char wanted[16], replica[16];

    watch_label(lane, "replica", wanted, sizeof wanted);
    while ((set = watch_next(scene->now, "reader", set)) != NULL) {
        watch_label(set, "replica", replica, sizeof replica);
        if (watch_is_of(set, scene->session) && strcmp(replica, wanted) == 0 &&
            (slowest == NULL || watch_value(set, "released") < watch_value(slowest, "released")))
            slowest = set;
    }
    return slowest;
}

/* A full lane needs no clock: whatever the others lack, they lack it because of who reads there. */
static void
look_at_full_lane(struct watch_scene *scene, const struct watch_set *lane)
{
    const struct watch_set *reader = slowest_reader(scene, lane);

    if (reader == NULL || watch_value(reader, "attached") == 0) {
        scene->deserted = reader != NULL ? reader : lane;
    } else if (scene->waits_in_vain &&
               (scene->holder == NULL ||
                watch_value(reader, "silent") > watch_value(scene->holder, "silent"))) {
        scene->holder = reader;
        scene->holder_slots = watch_value(lane, "slots");
    }
}

static void
look_at_lanes(struct watch_scene *scene)
{
    const struct watch_set *set = NULL;

    scene->waits_in_vain =
        scene->waits_most != NULL &&
        watch_value(scene->waits_most, "published") <= watch_value(scene->waits_most, "taken");
    while ((set = watch_next(scene->now, "lane", set)) != NULL) {
        uint64_t slots = watch_value(set, "slots");

        if (watch_is_of(set, scene->session) && slots > 0 &&
            watch_value(set, "published") >= watch_value(set, "released") + slots)
            look_at_full_lane(scene, set);
    }
}

static void
look_at_processors(struct watch_scene *scene)
{
    const struct watch_set *server = watch_next(scene->now, "server", NULL);

    scene->run_delay = share(scene, server, "run_delay");
    scene->throttled = share(scene, server, "throttled");
    scene->cpu = share(scene, server, "cpu");
}

/* Work that neither runs nor is ready to run waits for storage: memory that is swapped out
 * included.
 */
static void
look_at_storage(struct watch_scene *scene)
{
    double works = scene->busy * scene->threads + scene->deal_busy;
    double waits = works - scene->cpu - scene->run_delay - scene->throttled;

    if (works > 0 && waits > 0)
        scene->off_processor = waits / works;
}

static void
look_at_threads(struct watch_scene *scene)
{
    const struct watch_set *set = NULL;
    double busy = 0, slots = 0, order = 0;

    while ((set = watch_next(scene->now, "thread", set)) != NULL) {
        char thread[32];

        watch_label(set, "thread", thread, sizeof thread);
        if (!watch_is_of(set, scene->session) || strcmp(thread, "order") == 0)
            continue;
        scene->threads++;
        busy += share(scene, set, "busy");
        slots += share(scene, set, "slot_wait");
        order += share(scene, set, "order_wait");
    }
    if (scene->threads == 0)
        return;
    scene->busy = busy / scene->threads;
    scene->slot_wait = slots / scene->threads;
    scene->order_wait = order / scene->threads;
}

/* The order's own stages: their time is one thread's. */
static void
look_at_order(struct watch_scene *scene, const struct watch_set *set)
{
    double takes = share(scene, set, "busy");
    uint64_t held = watch_value(set, "queued"), room = watch_value(set, "room");

    if (takes > scene->order_share) {
        scene->order = set;
        scene->order_share = takes;
    }
    if (held > 0 && held < room && watch_value(set, "rows") == 0)
        scene->filling = set;
}

/* A run is counted when it ends, but what it is of is there before. */
static bool
is_in_long_run(const struct watch_scene *scene, const struct watch_set *stage)
{
    const struct watch_set *then = watch_find(scene->before, "stage", stage->labels);

    return watch_value(stage, "queued") > 0 && watch_value(then, "queued") > 0 &&
           watch_growth(scene->before, stage, "calls") == 0;
}

static void
look_at_stages(struct watch_scene *scene)
{
    const struct watch_set *set = NULL;

    while ((set = watch_next(scene->now, "stage", set)) != NULL) {
        double takes = share(scene, set, "busy") / (scene->threads > 0 ? scene->threads : 1);
        char part[16];

        if (!watch_is_of(set, scene->session))
            continue;
        watch_label(set, "part", part, sizeof part);
        if (strcmp(part, "order") == 0) {
            look_at_order(scene, set);
            continue;
        }
        if (takes > scene->stage_share) {
            scene->stage = set;
            scene->stage_share = takes;
        }
        if (is_in_long_run(scene, set))
            scene->long_run = set;
    }
}

/* It waits neither for room, since no step is under way, nor has it dealt one. */
static void
look_at_dealing(struct watch_scene *scene)
{
    scene->deal_busy = share(scene, scene->session, "deal_busy");
    scene->program_wait = share(scene, scene->session, "program_wait");
    if (watch_next(scene->now, "link", NULL) != NULL)
        scene->node_wait = share(scene, watch_next(scene->now, "link", NULL), "wait");
    scene->deals_long = scene->deal_busy <= 0 && scene->program_wait <= 0 &&
                        share(scene, scene->session, "deal_wait") <= 0 &&
                        watch_value(scene->session, "ready_steps") == 0;
}

static void
look_at_rows(struct watch_scene *scene)
{
    double skipped = (double)watch_growth(scene->before, scene->session, "rows_skipped");
    double rows = (double)watch_growth(scene->before, scene->session, "rows") + skipped;

    if (rows >= ENOUGH_TO_JUDGE)
        scene->skipped_share = skipped / rows;
}

/* Of what was looked up of late, so much more is unknown than of all before. */
static void
look_at_vocabulary(struct watch_scene *scene, const struct watch_set *set)
{
    double unknown = (double)watch_growth(scene->before, set, "out_of_vocabulary");
    double lookups = (double)watch_growth(scene->before, set, "lookups");
    double unknown_before = (double)watch_value(set, "out_of_vocabulary") - unknown;
    double lookups_before = (double)watch_value(set, "lookups") - lookups;
    double now, before;

    if (lookups < ENOUGH_TO_JUDGE || lookups_before < ENOUGH_TO_JUDGE)
        return;
    now = unknown / lookups;
    before = unknown_before / lookups_before;
    if (now > 0.1 + 2 * before && now > scene->unknown_share) {
        scene->unknown = set;
        scene->unknown_share = now;
        scene->unknown_before = before;
    }
}

static void
look_at_data(struct watch_scene *scene)
{
    const struct watch_set *set = NULL;

    look_at_rows(scene);
    while ((set = watch_next(scene->now, "vocabulary", set)) != NULL)
        if (watch_is_of(set, scene->session))
            look_at_vocabulary(scene, set);
}

void
watch_scene_look(struct watch_scene *scene)
{
    const struct watch_set *set = NULL;

    while ((set = watch_next(scene->now, "reader", set)) != NULL)
        if (watch_is_of(set, scene->session))
            look_at_reader(scene, set);
    look_at_lanes(scene);
    look_at_threads(scene);
    look_at_processors(scene);
    look_at_stages(scene);
    look_at_dealing(scene);
    look_at_storage(scene);
    look_at_data(scene);
}
