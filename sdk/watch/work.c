/* work.c - what the server waits for while a trainer waits for it, or the part of it that works
 * most. The reasons are tried in an order in which an earlier one explains the later ones. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/plural.h"
#include "watch/sentence.h"

static const double SHARE_MATTERS = 0.5;
static const double HELPERS_BUSY = 0.8;
static const double PYTHON_BUSY = 0.8;
static const double MANY_REFUSED = 0.05; /* of a store's requests */

/* Seconds a second that threads work. */
static double
works(const struct watch_observation *observation)
{
    return observation->busy * observation->threads + observation->deal_busy;
}

/* The dealing thread waits for rows of a program stage. */
static bool
say_program(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    char waiting[WATCH_WAITING_BYTES];

    if (observation->program_wait < SHARE_MATTERS)
        return false;
    watch_name_waiting(observation, waiting);
    watch_name_culprit(diagnosis, "program", observation->program_wait);
    watch_say(
        diagnosis, WATCH_WAITING, WATCH_CAUSE_SOURCE,
        "Make the program write faster, or cache its rows (cache) if they are the same each epoch.",
        "%s: a program writes its rows too slowly: the server waits %d%% of its time for them",
        waiting, watch_percent(observation->program_wait));
    return true;
}

/* The threads wait for rows that other nodes read, or for decisions of all nodes. The diagnosis of
 * those nodes says why they are slow. */
static bool
say_nodes(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    double worked = works(observation);
    char waiting[WATCH_WAITING_BYTES];

    /* Both sides are sums over threads, so they compare without the number of threads. */
    if (observation->node_wait <= 0 || observation->node_wait < SHARE_MATTERS * worked)
        return false;
    watch_name_waiting(observation, waiting);
    watch_name_culprit(diagnosis, "nodes", worked > 0 ? observation->node_wait / worked : 1);
    watch_say(diagnosis, WATCH_WAITING, WATCH_CAUSE_SERVER,
              "Check the diagnosis of the other nodes. One that no trainer reads stops all: start "
              "its trainers. If none waits for its storage or its stages, the network is slow.",
              "%s: its server waits for other nodes in %d%% of the time that its threads work",
              waiting, watch_percent(diagnosis->share));
    return true;
}

/* ", for s3://bucket/file for 7 s now" */
static void
name_delay(const struct watch_observation *observation, char text[WATCH_NAME_BYTES + 40])
{
    char object[TND_STATS_VALUE_BYTES];

    text[0] = '\0';
    if (observation->delay == NULL)
        return;
    watch_label(observation->delay, "object", object, sizeof object);
    snprintf(text, WATCH_NAME_BYTES + 40, ", for %s for %llu s now", object,
             (unsigned long long)(watch_value(observation->delay, "wait") / UINT64_C(1000000000)));
}

/* ", which refuses 12% of the requests for now (429, 503)", where it does so often enough to
 * matter. */
static bool
name_refusals(const struct watch_observation *observation, char text[96])
{
    double requests = (double)watch_growth(observation->before, observation->store, "requests");
    double refused =
        (double)watch_growth(observation->before, observation->store, "server_retries");

    text[0] = '\0';
    if (requests <= 0 || refused < MANY_REFUSED * requests)
        return false;
    snprintf(text, 96, ", which refuses %d%% of the requests for now (429, 503)",
             watch_percent(refused / requests));
    return true;
}

/* The threads that work wait for files at URLs, or one waits for a single object all the time.
 * Those that read ahead wait too, which is not a reason by itself. */
static bool
say_store(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    bool is_slow = observation->off_processor >= SHARE_MATTERS &&
                   observation->store_wait >= SHARE_MATTERS * works(observation);
    bool is_long =
        observation->delay != NULL && (observation->long_call != NULL || observation->deals_long);
    char waiting[WATCH_WAITING_BYTES], store[TND_STATS_VALUE_BYTES], delay[WATCH_NAME_BYTES + 40];
    char refusals[96];
    bool is_throttled;

    if (observation->store == NULL || (!is_slow && !is_long))
        return false;
    is_throttled = name_refusals(observation, refusals);
    watch_name_waiting(observation, waiting);
    watch_label(observation->store, "store", store, sizeof store);
    name_delay(observation, delay);
    watch_name_culprit(diagnosis, store, is_slow ? observation->off_processor : 1);
    watch_say(
        diagnosis, WATCH_WAITING, WATCH_CAUSE_STORE,
        is_throttled
            ? "The store throttles: ask for fewer things at once (remote.connections), for "
              "larger ones (remote.part), spread the files over several prefixes or buckets, "
              "or have its limits raised. More connections make it worse."
            : "Compare the bytes a second with the link: if it has room, raise "
              "remote.connections; otherwise use smaller files or nearer data. Retries in the "
              "metrics tell of a store that is overloaded.",
        "%s: the server waits for the store %s%s%s", waiting, store, refusals, delay);
    return true;
}

/* "map", or "map of line 12" where the stream has another of that name. */
static void
name_stage(const struct watch_observation *observation, const struct watch_set *stage,
           char text[96])
{
    const struct watch_set *set = NULL;
    char name[64], line[16], other[64], other_line[16];
    bool is_alone = true;

    /* The line is added only where the name is ambiguous: most streams have one stage of a name. */
    watch_label(stage, "stage", name, sizeof name);
    watch_label(stage, "line", line, sizeof line);
    while ((set = watch_next(observation->now, "stage", set)) != NULL) {
        watch_label(set, "stage", other, sizeof other);
        watch_label(set, "line", other_line, sizeof other_line);
        if (watch_is_of(set, observation->session) && strcmp(name, other) == 0 &&
            strcmp(line, other_line) != 0)
            is_alone = false;
    }
    snprintf(text, 96, "%s%s%s", name, is_alone || line[0] == '\0' ? "" : " of line ",
             is_alone ? "" : line);
}

/* "the storage is slow" for threads that work without running; "" for those that run. */
static const char *
name_slow_storage(const struct watch_observation *observation, char text[96])
{
    text[0] = '\0';
    if (observation->off_processor >= SHARE_MATTERS)
        snprintf(text, 96, ", and for %d%% of that the server waits for its storage",
                 watch_percent(observation->off_processor));
    return text;
}

static const char storage_advice[] =
    "Reading files is too slow: move them to faster or nearer storage, make them smaller, or read "
    "more at once (serve --threads).";

/* ", helpers make 40% of the rows", and whether more of them would help. */
static void
name_helpers(const struct watch_observation *observation, char text[96])
{
    char lost[48] = "";

    text[0] = '\0';
    if (observation->helpers == 0)
        return;
    if (observation->helpers_lost > 0)
        snprintf(lost, sizeof lost, ", %u of %u %s lost", observation->helpers_lost,
                 observation->helpers, observation->helpers == 1 ? "is" : "are");
    snprintf(text, 96, "; helpers make %d%% of the rows%s", watch_percent(observation->helper_rows),
             lost);
}

/* Content is the limit. More helpers are of use if those that there are have no time left. */
static const char *
stage_advice(const struct watch_observation *observation)
{
    if (observation->helpers == 0)
        return "Use more threads (serve --threads) if the node has idle cores; otherwise make that "
               "stage cheaper, or use helpers (tundish-launch --helpers) or more nodes.";
    if (observation->helpers_lost > 0)
        return "Start the lost helpers again: the notes say why they were lost.";
    if (observation->helper_busy >= HELPERS_BUSY)
        return "One more helper would help (tundish-launch --helpers), or make that stage cheaper.";
    return "One more helper would not help: those that there are have time left. Look at the "
           "network "
           "to them and at this node's processors, which take in what they make.";
}

/* The stage that takes most of the threads: a source, which reads, or one that works on rows. */
static void
say_stage(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    bool reads = watch_value(observation->stage, "source") != 0;
    char waiting[WATCH_WAITING_BYTES], storage[96], stage[96] = "content", helpers[96];

    watch_name_waiting(observation, waiting);
    name_helpers(observation, helpers);
    if (observation->stage != NULL) {
        watch_label(observation->stage, "stage", stage, sizeof stage);
        watch_name_culprit(diagnosis, stage, observation->stage_share);
        name_stage(observation, observation->stage, stage);
    } else {
        watch_name_culprit(diagnosis, stage, observation->stage_share);
    }
    name_slow_storage(observation, storage);
    watch_say(diagnosis, WATCH_WAITING, reads ? WATCH_CAUSE_SOURCE : WATCH_CAUSE_STAGE,
              reads && storage[0] != '\0' ? storage_advice : stage_advice(observation),
              "%s: %s%s takes %d%% of %u thread%s that %s %d%% busy%s%s", waiting,
              reads ? "reading with " : "", stage, watch_percent(observation->stage_share),
              observation->threads, TND_PLURAL(observation->threads),
              observation->threads == 1 ? "is" : "are", watch_percent(observation->busy),
              reads ? storage : "", helpers);
}

/* Most of the threads' time is that of Python. More threads would only wait, too. */
static bool
say_python(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    char waiting[WATCH_WAITING_BYTES], call[TND_STATS_VALUE_BYTES], each[48] = "";
    unsigned long long limit;
    double rows;

    if (observation->python == NULL ||
        observation->python_wait < SHARE_MATTERS * works(observation))
        return false;
    limit = watch_value(observation->python, "limit");
    rows = (double)watch_growth(observation->before, observation->python, "rows");
    watch_name_waiting(observation, waiting);
    watch_label(observation->python, "call", call, sizeof call);
    watch_name_culprit(diagnosis, call, observation->python_share);
    if (rows > 0)
        snprintf(each, sizeof each, ", %.2g ms a row",
                 (double)watch_growth(observation->before, observation->python, "busy") / rows /
                     1e6);
    watch_say(diagnosis, WATCH_WAITING, WATCH_CAUSE_STAGE,
              observation->python_share >= PYTHON_BUSY
                  ? "Raise workers of that stage if the node has idle cores; otherwise make the "
                    "function cheaper (rows: many calls it once for many rows), or use a native "
                    "stage for a part of it, or more nodes."
                  : "Its interpreters have time left: more threads (serve --threads) or larger "
                    "batches ask more of them at once.",
              "%s: python %s takes %d%% of %llu worker%s%s", waiting, call,
              watch_percent(observation->python_share), limit, TND_PLURAL(limit), each);
    return true;
}

/* One call takes all of the time, and is not counted before it ends. */
static bool
say_long_call(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    bool reads = watch_value(observation->long_call, "source") != 0;
    char waiting[WATCH_WAITING_BYTES], stage[96];

    if (observation->long_call == NULL)
        return false;
    watch_name_waiting(observation, waiting);
    watch_label(observation->long_call, "stage", stage, sizeof stage);
    watch_name_culprit(diagnosis, stage, 1);
    name_stage(observation, observation->long_call, stage);
    watch_say(diagnosis, WATCH_WAITING, reads ? WATCH_CAUSE_SOURCE : WATCH_CAUSE_STAGE,
              reads ? "The storage does not respond, or takes seconds: check its mount and the "
                      "notes, and the other nodes if they read rows for this one."
                    : "Check the rows of that batch: they may be far larger than others.",
              "%s: one call of %s%s has not ended in all of the last %.1f s", waiting,
              reads ? "reading with " : "", stage, observation->passed_ns / 1e9);
    return true;
}

/* As say_long_call, for the dealing thread, whose times are counted step by step. */
static bool
say_long_deal(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    char waiting[WATCH_WAITING_BYTES];

    if (!observation->deals_long)
        return false;
    watch_name_waiting(observation, waiting);
    watch_name_culprit(diagnosis, "order", 1);
    watch_say(
        diagnosis, WATCH_WAITING, WATCH_CAUSE_ORDER,
        "The storage does not respond, or takes seconds: check its mount and the notes.",
        "%s: the order (one thread, which finds records and decides their order) has been at one "
        "step for all of the last %.1f s",
        waiting, observation->passed_ns / 1e9);
    return true;
}

/* The order is one thread, so more threads do not help: the advice is to give it less work. */
static void
say_order(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    char waiting[WATCH_WAITING_BYTES], storage[96], stage[96] = "", named[96], most[160] = "";

    watch_name_waiting(observation, waiting);
    watch_name_culprit(diagnosis, "order", observation->deal_busy);
    if (observation->order != NULL &&
        observation->order_share >= SHARE_MATTERS * observation->deal_busy) {
        watch_label(observation->order, "stage", stage, sizeof stage);
        name_stage(observation, observation->order, named);
        snprintf(most, sizeof most, ", %d%% of its time in %s",
                 watch_percent(observation->order_share / observation->deal_busy), named);
    }
    name_slow_storage(observation, storage);
    watch_say(
        diagnosis, WATCH_WAITING, WATCH_CAUSE_ORDER,
        storage[0] != '\0' ? storage_advice
        : strcmp(stage, "shuffle") == 0
            ? "Use a smaller buffer_size of shuffle that fits the processor's cache, or shuffle "
              "files and use a smaller buffer of rows, or use more nodes."
            : "Index the files once (tundish index), or move stages whose order depends on content "
              "(filter, bucketing) after cheaper stages.",
        "%s: the order (one thread, which finds records and decides their order) is %d%% busy%s%s",
        waiting, watch_percent(observation->deal_busy), most, storage);
}

/* A shuffle delivers no element before its buffer is full. */
static bool
say_filling(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    char waiting[WATCH_WAITING_BYTES], left[64] = "";
    uint64_t held, room;
    double grown;

    if (observation->filling == NULL)
        return false;
    held = watch_value(observation->filling, "queued");
    room = watch_value(observation->filling, "room");
    grown = (double)held -
            (double)watch_value(
                watch_find(observation->before, "stage", observation->filling->labels), "queued");
    /* The rate is that of the last seconds, so the estimate follows a change of the storage. */
    if (grown > 0 && observation->passed_ns > 0)
        snprintf(left, sizeof left, ", another %.0f s at this rate",
                 (double)(room - held) / grown * observation->passed_ns / 1e9 + 0.5);
    watch_name_waiting(observation, waiting);
    watch_name_culprit(diagnosis, "shuffle", (double)held / (double)room);
    watch_say(diagnosis, WATCH_WAITING, WATCH_CAUSE_ORDER,
              "This happens once after each start of the stream. A smaller buffer_size or indexed "
              "files (tundish index) start sooner.",
              "%s: shuffle fills its buffer, which is %d%% full (%llu of %llu elements)%s", waiting,
              (int)(100 * held / room), (unsigned long long)held, (unsigned long long)room, left);
    return true;
}

static void
say_unknown(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    char waiting[WATCH_WAITING_BYTES];

    watch_name_waiting(observation, waiting);
    watch_say(
        diagnosis, WATCH_WAITING, WATCH_CAUSE_NONE,
        "With more slots the server works further ahead; larger batches cost less per row.",
        "%s, though the server's threads are %d%% busy and its order %d%%: it has little work at a "
        "time",
        waiting, watch_percent(observation->busy), watch_percent(observation->deal_busy));
}

static bool
threads_work(const struct watch_observation *observation)
{
    return observation->busy >= SHARE_MATTERS || observation->busy > observation->deal_busy;
}

static bool
is_in_long_call(const struct watch_observation *observation)
{
    return (observation->long_call != NULL || observation->deals_long) &&
           !threads_work(observation) && observation->deal_busy < SHARE_MATTERS;
}

/* A call that has not ended takes all of the time. */
double
watch_weigh_work(const struct watch_observation *observation)
{
    double worked = works(observation), lacked = observation->run_delay + observation->throttled;
    double busiest = fmax(observation->busy, observation->deal_busy);

    if (is_in_long_call(observation))
        return 1;
    return fmax(observation->program_wait, worked > lacked ? busiest * (1 - lacked / worked) : 0);
}

/* The event that the server waits for, or the part of it that works most. A single call or step
 * that takes all of the time is not counted before it ends, so these two are tried when threads
 * seem idle. */
void
watch_say_work(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    if (say_program(observation, diagnosis) || say_nodes(observation, diagnosis) ||
        say_store(observation, diagnosis) || say_python(observation, diagnosis) ||
        say_filling(observation, diagnosis))
        return;
    if (observation->room_wait >= SHARE_MATTERS)
        say_unknown(observation, diagnosis);
    else if (threads_work(observation))
        say_stage(observation, diagnosis);
    else if (observation->deal_busy >= SHARE_MATTERS)
        say_order(observation, diagnosis);
    else if (!say_long_call(observation, diagnosis) && !say_long_deal(observation, diagnosis))
        say_unknown(observation, diagnosis);
}
