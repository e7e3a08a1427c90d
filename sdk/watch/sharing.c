/* sharing.c - a trainer waits for what other readers have: a queue's slots, an evaluation's shards.
 */
#include <string.h>

#include "watch/sentence.h"

static uint64_t
held_of(const struct watch_set *reader)
{
    uint64_t taken = watch_value(reader, "taken"), released = watch_value(reader, "released");

    return taken > released ? taken - released : 0;
}

/* Each reader of an evaluation is in a session of its own. */
static bool
is_of_stream(const struct watch_observation *observation, const struct watch_set *reader)
{
    char stream[TND_STATS_VALUE_BYTES];

    watch_label(reader, "stream", stream, sizeof stream);
    return strcmp(stream, observation->stream) == 0;
}

static bool
waits_in_vain(const struct watch_set *reader)
{
    return watch_value(reader, "waiting") > 0 &&
           watch_value(reader, "published") <= watch_value(reader, "taken");
}

/* The trainer that has been silent for longest, among those that do not wait themselves, or else
 * among all; one that holds batches comes first. */
static const struct watch_set *
find_owner(const struct watch_observation *observation)
{
    const struct watch_set *set = NULL, *found = NULL;

    while ((set = watch_next(observation->now, "reader", set)) != NULL) {
        bool is_better = found == NULL;

        if (!is_of_stream(observation, set) || watch_value(set, "attached") == 0 ||
            (set == observation->waits_most && held_of(set) == 0))
            continue;
        if (!is_better && waits_in_vain(set) != waits_in_vain(found))
            is_better = waits_in_vain(found);
        else if (!is_better && (held_of(set) > 0) != (held_of(found) > 0))
            is_better = held_of(set) > 0;
        else if (!is_better)
            is_better = watch_value(set, "silent") > watch_value(found, "silent");
        if (is_better)
            found = set;
    }
    return found;
}

bool
watch_say_sharing(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    const struct watch_set *owner;
    char waiting[WATCH_WAITING_BYTES];

    if (watch_value(observation->session, "awaits_readers") == 0 ||
        observation->wait_share < WATCH_WAIT_FINE)
        return false;
    owner = find_owner(observation);
    if (owner == NULL)
        return false;
    watch_name_waiting(observation, waiting);
    watch_name_culprit_replica(diagnosis, owner, 0);
    watch_say(
        diagnosis, watch_is_stuck(owner) ? WATCH_STUCK : WATCH_WAITING, WATCH_CAUSE_TRAINER,
        "It must return batches (tundish_release) or read on. If it hangs, end it: others "
        "then get what it has. More deliver.slots let a queue's readers hold more.",
        "%s for what other readers have: process %llu holds %llu batch%s and has not taken or "
        "returned any for %llu s",
        waiting, (unsigned long long)watch_value(owner, "process"),
        (unsigned long long)held_of(owner), held_of(owner) == 1 ? "" : "es",
        (unsigned long long)(watch_value(owner, "silent") / UINT64_C(1000000000)));
    return true;
}
