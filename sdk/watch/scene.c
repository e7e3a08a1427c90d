/* scene.c - figures turned into shares of time. */
#include "watch/scene.h"

#include <string.h>

static double
share(const struct watch_scene *scene, const struct watch_set *set, const char *field)
{
    return scene->passed_ns > 0 ? (double)watch_growth(scene->before, set, field) / scene->passed_ns
                                : 0;
}

static void
look_at_reader(struct watch_scene *scene, const struct watch_set *reader)
{
    double waits = share(scene, reader, "wait");

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
    /* One that waits for what lies there already does not run at all. */
    if ((watch_value(reader, "waiting") == 0 ||
         watch_value(reader, "published") > watch_value(reader, "taken")) &&
        (scene->silent == NULL ||
         watch_value(reader, "silent") > watch_value(scene->silent, "silent")))
        scene->silent = reader;
}

static bool
has_reader(const struct watch_scene *scene, const char *replica)
{
    const struct watch_set *set = NULL;

    while ((set = watch_next(scene->now, "reader", set)) != NULL) {
        char of[16];

        watch_label(set, "replica", of, sizeof of);
        if (watch_is_of(set, scene->session) && watch_value(set, "attached") != 0 &&
            strcmp(of, replica) == 0)
            return true;
    }
    return false;
}

static void
look_at_lanes(struct watch_scene *scene)
{
    const struct watch_set *set = NULL;

    while ((set = watch_next(scene->now, "lane", set)) != NULL) {
        uint64_t published = watch_value(set, "published"), slots = watch_value(set, "slots");
        char replica[16];

        watch_label(set, "replica", replica, sizeof replica);
        if (watch_is_of(set, scene->session) && slots > 0 &&
            published >= watch_value(set, "released") + slots && !has_reader(scene, replica))
            scene->deserted = set;
    }
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
        } else if (takes > scene->stage_share) {
            scene->stage = set;
            scene->stage_share = takes;
        }
    }
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
    look_at_stages(scene);
    scene->deal_busy = share(scene, scene->session, "deal_busy");
    scene->program_wait = share(scene, scene->session, "program_wait");
}
