/* stopping.c - what a server that drains has still to deliver, and to whom. */
#include "watch/sentence.h"

#include <stdio.h>
#include <string.h>

/* Trainers named, those with most left first; the others are counted. */
enum { NAMED = 3 };

struct left {
    const struct watch_set *reader;
    uint64_t batches; /* published, and not taken or not returned */
};

struct left_list {
    struct left named[NAMED + 1]; /* with room for one that is then too many */
    uint32_t count;               /* of trainers with something left, named or not */
};

static uint64_t
left_of(const struct watch_set *reader)
{
    uint64_t published = watch_value(reader, "published");
    uint64_t released = watch_value(reader, "released");

    return published > released ? published - released : 0;
}

static void
add_left(struct left_list *list, struct left left)
{
    uint32_t at = list->count < NAMED ? list->count : NAMED;

    for (; at > 0 && list->named[at - 1].batches < left.batches; at--)
        list->named[at] = list->named[at - 1];
    list->named[at] = left;
    list->count++;
}

/* The server waits for none that is gone. */
static void
find_left(const struct watch_observation *observation, struct left_list *list)
{
    const struct watch_set *set = NULL;

    while ((set = watch_next(observation->now, "reader", set)) != NULL)
        if (watch_is_of(set, observation->session) && watch_value(set, "attached") != 0 &&
            left_of(set) > 0)
            add_left(list, (struct left){ .reader = set, .batches = left_of(set) });
}

/* "8 by replica 1, 3 by replica 0 of group b and others by 2 trainers" */
static void
name_left(const struct left_list *list, char *text, size_t room)
{
    size_t used = 0;

    for (uint32_t i = 0; i < list->count && i < NAMED && used < room; i++) {
        char replica[16], group[64];
        unsigned long long process = watch_value(list->named[i].reader, "process");
        bool is_default;

        watch_label(list->named[i].reader, "replica", replica, sizeof replica);
        watch_label(list->named[i].reader, "group", group, sizeof group);
        is_default = group[0] == '\0' || strcmp(group, "default") == 0;
        used +=
            (size_t)snprintf(text + used, room - used, "%s%llu by replica %s%s%s (process %llu)",
                             i > 0 ? ", " : "", (unsigned long long)list->named[i].batches, replica,
                             is_default ? "" : " of group ", is_default ? "" : group, process);
    }
    if (list->count > NAMED && used < room)
        snprintf(text + used, room - used, ", and more by %u other%s", list->count - NAMED,
                 list->count == NAMED + 1 ? "" : "s");
}

void
watch_say_stopping(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    struct left_list list = { 0 };
    char who[400];

    find_left(observation, &list);
    if (list.count == 0) {
        watch_say(diagnosis, WATCH_STOPPING, WATCH_CAUSE_SERVER, "",
                  "the server on node %.63s is stopping: no trainer holds batches of stream '%s'",
                  watch_node(observation->now), observation->stream);
        return;
    }
    name_left(&list, who, sizeof who);
    watch_name_culprit_replica(diagnosis, list.named[0].reader, 0);
    watch_say(diagnosis, WATCH_STOPPING, WATCH_CAUSE_TRAINER,
              "The last of each says that the server stops, and counts as one. If a trainer hangs, "
              "end it; `tundish stop` again, or another SIGTERM, ends the server at once.",
              "the server on node %.63s is stopping: batches of stream '%s' are still to be taken "
              "or returned, %s",
              watch_node(observation->now), observation->stream, who);
}
