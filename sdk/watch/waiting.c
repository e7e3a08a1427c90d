/* waiting.c - find out why a trainer waits: for another trainer, for the machine, or for a part of
 * the server. The cause that takes most of the time is told. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "watch/sentence.h"

static const double SHARE_MATTERS = 0.5;
static const double SHORT_OF_PROCESSORS = 0.2; /* seconds a second */
static const double SHORT_OF_MEMORY = 0.2;

static bool
is_same_group(const struct watch_set *one, const struct watch_set *other)
{
    char name[TND_STATS_VALUE_BYTES], other_name[TND_STATS_VALUE_BYTES];

    watch_label(one, "group", name, sizeof name);
    watch_label(other, "group", other_name, sizeof other_name);
    return strcmp(name, other_name) == 0;
}

/* A trainer that stops every n-th batch, and by that explains at least half of the waiting. */
static bool
say_pauses(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    const struct watch_set *pauser = observation->pauser;
    double seconds = (double)watch_value(pauser, "paused") / 1e9;
    uint64_t pauses = watch_value(pauser, "pauses"), every = watch_value(pauser, "pause_every");
    char waiting[WATCH_WAITING_BYTES], who[WATCH_NAME_BYTES];

    if (pauser == NULL || every == 0 ||
        observation->pause_share < SHARE_MATTERS * observation->wait_share)
        return false;
    watch_name_waiting(observation, waiting);
    watch_name_reader(observation, pauser, who);
    watch_name_culprit_replica(diagnosis, pauser, observation->pause_share);
    watch_say(
        diagnosis, WATCH_WAITING, WATCH_CAUSE_TRAINER,
        "If it saves its state or evaluates there, let it do so in a thread or process of its "
        "own, or let all replicas stop at the same step. More slots compensate for pauses of "
        "as many steps.",
        "%s for %s, which stops for %.1f s every %llu batches", waiting, who,
        seconds / (double)pauses, (unsigned long long)every);
    return true;
}

static bool
say_slots(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    char waiting[WATCH_WAITING_BYTES], whom[WATCH_NAME_BYTES];

    if (observation->blocker == NULL)
        return false;
    watch_name_waiting(observation, waiting);
    watch_name_reader(observation, observation->blocker, whom);
    watch_name_culprit_replica(diagnosis, observation->blocker, observation->room_wait);
    watch_say(diagnosis, WATCH_WAITING, WATCH_CAUSE_SLOTS,
              is_same_group(observation->blocker, observation->waits_most)
                  ? "That trainer is the slowest of its job. More slots compensate for short "
                    "pauses, but not for a slower device."
                  : "That job is slower, and slow_group: block makes the faster job wait. "
                    "slow_group: detach detaches it after a while; with its own session each job "
                    "runs at its own pace.",
              "%s for %s, which has not freed its slots", waiting, whom);
    return true;
}

/* Threads are ready to run but wait for a processor, longer than they run: every stage looks slow
 * then. A quota stops all threads at once, so it counts by itself. */
static double
weigh_processors(const struct watch_observation *observation)
{
    if (observation->throttled >= SHORT_OF_PROCESSORS)
        return observation->throttled;
    /* Threads that wait for room would make nothing with more processors. */
    if (observation->run_delay < SHORT_OF_PROCESSORS || observation->run_delay < observation->cpu ||
        observation->room_wait >= SHARE_MATTERS)
        return 0;
    return fmin(1, observation->run_delay) * (1 - observation->room_wait);
}

/* ", of which python3 (process 99) uses most, 0.6", if it uses enough to be the reason. */
static void
name_rival(const struct watch_observation *observation, char text[WATCH_NAME_BYTES])
{
    const struct watch_set *rival = watch_next(observation->now, "rival", NULL);
    double uses = (double)watch_value(rival, "cpu") / 1e9;
    char process[24], command[24];

    if (uses < 0.05)
        return;
    watch_label(rival, "process", process, sizeof process);
    watch_label(rival, "command", command, sizeof command);
    snprintf(text, WATCH_NAME_BYTES, ", of which %s (process %s) uses most, %.1f", command, process,
             uses);
}

static bool
say_processors(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    char waiting[WATCH_WAITING_BYTES], who[WATCH_NAME_BYTES] = "";

    if (weigh_processors(observation) <= 0)
        return false;
    watch_name_waiting(observation, waiting);
    if (observation->throttled >= SHORT_OF_PROCESSORS) {
        watch_name_culprit(diagnosis, "quota", observation->throttled);
        watch_say(diagnosis, WATCH_WAITING, WATCH_CAUSE_PROCESSORS,
                  "Raise the quota of processor time of its cgroup (cpu.max; limits.cpu in "
                  "Kubernetes), or "
                  "start the server with fewer --threads.",
                  "%s: the quota of its cgroup stops the server %d%% of the time", waiting,
                  watch_percent(observation->throttled));
        return true;
    }
    name_rival(observation, who);
    watch_name_culprit(diagnosis, "processors",
                       observation->run_delay / (observation->run_delay + observation->cpu));
    watch_say(
        diagnosis, WATCH_WAITING, WATCH_CAUSE_PROCESSORS,
        "Leave the server processors of its own (taskset, cpusets), or move the other processes.",
        "%s: the server is short of processors%s: of the time its threads wanted to run, they had "
        "none for %d%%",
        waiting, who, watch_percent(diagnosis->share));
    return true;
}

/* Pages are made free, or read again, while threads wait for them. Storage and every stage look
 * slow then. */
static bool
say_memory(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    const struct watch_set *server = watch_next(observation->now, "server", NULL);
    char waiting[WATCH_WAITING_BYTES];

    if (observation->memory_stalled < SHORT_OF_MEMORY)
        return false;
    watch_name_waiting(observation, waiting);
    watch_name_culprit(diagnosis, "memory", observation->memory_stalled);
    watch_say(
        diagnosis, WATCH_WAITING, WATCH_CAUSE_MEMORY,
        "Raise the memory limit of its cgroup (memory.max; limits.memory in Kubernetes), move "
        "other programs away, or need less: deliver.slots, deliver.memory_limit, smaller "
        "shuffle buffers.",
        "%s: memory is short on node %.63s: programs waited for it %d%% of the time, and the "
        "server read %llu pages again",
        waiting, watch_node(observation->now), watch_percent(observation->memory_stalled),
        (unsigned long long)watch_growth(observation->before, server, "major_faults"));
    return true;
}

static double
weigh_trainers(const struct watch_observation *observation)
{
    double pauses = observation->pause_share / observation->wait_share;

    /* A lane that is full now explains all: nothing else could give the next step room. */
    if (observation->blocker != NULL && observation->blocker == observation->holder)
        return 1;
    return fmax(pauses, observation->blocker != NULL ? observation->room_wait : 0);
}

static bool
say_trainers(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    return say_pauses(observation, diagnosis) || say_slots(observation, diagnosis);
}

static double
weigh_memory(const struct watch_observation *observation)
{
    return observation->memory_stalled;
}

/* Where memory is short, threads wait for files and pages because of that; under a quota every call
 * is long. */
static double
weigh_work(const struct watch_observation *observation)
{
    return observation->memory_stalled >= SHORT_OF_MEMORY ||
                   observation->throttled >= SHORT_OF_PROCESSORS
               ? 0
               : watch_weigh_work(observation);
}

static bool
say_work(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    watch_say_work(observation, diagnosis);
    return true;
}

/* The reasons that can hold up a trainer, and the share of its time that each explains at most. The
 * first of equal ones is told: it explains the later ones. The last is told if none explains
 * anything. */
static const struct reason {
    double (*weigh)(const struct watch_observation *observation);
    bool (*say)(const struct watch_observation *observation, struct watch_diagnosis *diagnosis);
} reasons[] = {
    { weigh_trainers, say_trainers },
    { weigh_memory, say_memory },
    { weigh_processors, say_processors },
    { weigh_work, say_work },
};
enum { REASONS = sizeof reasons / sizeof *reasons };

void
watch_say_waiting(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    double weights[REASONS];
    bool said = false;

    for (int i = 0; i < REASONS; i++)
        weights[i] = fmin(1, reasons[i].weigh(observation));
    while (!said) {
        int most = REASONS - 1;

        for (int i = most; i >= 0; i--)
            if (weights[i] > 0 && weights[i] >= weights[most])
                most = i;
        said = reasons[most].say(observation, diagnosis);
        weights[most] = -1;
    }
}
