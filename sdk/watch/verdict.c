/* verdict.c - who waits for whom. */
#include "watch/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "watch/scene.h"

/* A trainer that waits less than this is fed well enough. */
static const double WAIT_SHARE_FINE = 0.05;
static const double SHARE_MATTERS = 0.5;
static const double MANY_SKIPPED = 0.05;
static const double SHORT_OF_PROCESSORS = 0.2; /* seconds a second */

/* A trainer is stuck when it has done nothing for much longer than its steps take, and for long
 * enough to be seen; before its first step, when it may compile, for longer. */
static const uint64_t SILENT_NS = UINT64_C(10000000000);
static const uint64_t SILENT_AT_FIRST_NS = UINT64_C(60000000000);
enum { SILENT_STEPS = 3 };

static const uint64_t HUNG_NS = UINT64_C(5000000000);

const char *
watch_level_name(enum watch_level level)
{
    static const char *const names[] = { "idle",  "fine",   "warning", "waiting",
                                         "stuck", "failed", "gone" };

    return names[level];
}

const char *
watch_cause_name(enum watch_cause cause)
{
    static const char *const names[] = { "none",  "trainer", "source", "stage", "order",
                                         "slots", "disk",    "error",  "server",
                                         "processors", "data" };

    return names[cause];
}

/* --- what is said -------------------------------------------------------------------------------
 */

enum { NAME_BYTES = 200 };

static int
percent(double of_one)
{
    return (int)(of_one * 100 + 0.5) > 100 ? 100 : (int)(of_one * 100 + 0.5);
}

static const char *
node_of(const struct watch_snapshot *snapshot)
{
    return snapshot->copy.header->node;
}

/* "replica 2 on node b". */
static void
name_reader(const struct watch_scene *scene, const struct watch_set *reader, char text[NAME_BYTES])
{
    char replica[16], group[64];
    bool is_default;

    watch_label(reader, "replica", replica, sizeof replica);
    watch_label(reader, "group", group, sizeof group);
    is_default = group[0] == '\0' || strcmp(group, "default") == 0;
    snprintf(text, NAME_BYTES, "replica %s%s%s on node %.63s", replica,
             is_default ? "" : " of group ", is_default ? "" : group, node_of(scene->now));
}

/* "replica 2 on node b waits 38% of its time", with which every sentence about waiting begins. */
static void
name_waiting(const struct watch_scene *scene, char text[NAME_BYTES + 40])
{
    char who[NAME_BYTES];

    name_reader(scene, scene->waits_most, who);
    snprintf(text, NAME_BYTES + 40, "%s waits %d%% of its time", who, percent(scene->wait_share));
}

static void __attribute__((format(printf, 5, 6)))
say(struct watch_verdict *verdict, enum watch_level level, enum watch_cause cause,
    const char *advice, const char *format, ...)
{
    va_list arguments;

    verdict->level = level;
    verdict->cause = cause;
    va_start(arguments, format);
    vsnprintf(verdict->sentence, sizeof verdict->sentence, format, arguments);
    va_end(arguments);
    snprintf(verdict->advice, sizeof verdict->advice, "%s", advice);
}

/* How busy it is that others wait for. */
static void
blame(struct watch_verdict *verdict, const char *culprit, double share_of_time)
{
    snprintf(verdict->culprit, sizeof verdict->culprit, "%s", culprit);
    verdict->share = share_of_time;
}

static void
blame_replica(struct watch_verdict *verdict, const struct watch_set *reader, double share_of_time)
{
    char replica[16];

    watch_label(reader, "replica", replica, sizeof replica);
    blame(verdict, replica, share_of_time);
}

/* As the kernel words it, in the language of programs; servers choose no other. */
static bool
tells_of_full_disk(const char *text)
{
    return strstr(text, "No space left on device") != NULL ||
           strstr(text, "Disk quota exceeded") != NULL;
}

/* The last error of the stream, without what names the stream again. */
static void
find_error(const struct watch_scene *scene, char text[TND_STATS_NOTE_BYTES])
{
    struct watch_note found[TND_STATS_NOTES];
    uint32_t count = watch_notes(scene->now, 0, found, TND_STATS_NOTES);
    char begin[96];
    size_t begin_bytes;

    snprintf(text, TND_STATS_NOTE_BYTES, "see the log");
    begin_bytes = (size_t)snprintf(begin, sizeof begin, "stream: %.63s: ", scene->stream);
    for (uint32_t i = 0; i < count; i++)
        if (found[i].level == 0)
            snprintf(text, TND_STATS_NOTE_BYTES, "%s",
                     found[i].text +
                         (strncmp(found[i].text, begin, begin_bytes) == 0 ? begin_bytes : 0));
}

static void
say_failed(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    char text[TND_STATS_NOTE_BYTES];

    find_error(scene, text);
    if (tells_of_full_disk(text)) {
        blame(verdict, "disk", 1);
        say(verdict, WATCH_FAILED, WATCH_CAUSE_DISK,
            "Make room, or set TUNDISH_CACHE to a folder on a larger disk, and start again from "
            "the last place.",
            "stream '%s' has failed: a disk of node %.63s is full: %.440s", scene->stream,
            node_of(scene->now), text);
        return;
    }
    say(verdict, WATCH_FAILED, WATCH_CAUSE_ERROR,
        "Mend what the error names and start again from the last place; on_error: skip leaves bad "
        "rows out.",
        "stream '%s' on node %.63s has failed: %.440s", scene->stream, node_of(scene->now), text);
}

static bool
is_stuck(const struct watch_set *reader)
{
    uint64_t usual_ns = watch_value(reader, "usual_step");
    uint64_t limit_ns = usual_ns == 0                     ? SILENT_AT_FIRST_NS
                        : usual_ns < SILENT_NS / SILENT_STEPS ? SILENT_NS
                                                              : SILENT_STEPS * usual_ns;

    return watch_value(reader, "silent") >= limit_ns &&
           watch_value(reader, "released") < watch_value(reader, "published");
}

static bool
say_stuck(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    char who[NAME_BYTES];

    if (scene->holder == NULL || scene->wait_share < WAIT_SHARE_FINE || !is_stuck(scene->holder))
        return false;
    name_reader(scene, scene->holder, who);
    blame_replica(verdict, scene->holder, 0);
    say(verdict, WATCH_STUCK, WATCH_CAUSE_TRAINER,
        "Look at that process: a debugger's backtrace says where it stands. If it will not come "
        "back, end it; its group resumes at the last place.",
        "%s (process %llu) has not taken or returned a batch for %llu s; the others wait for it",
        who, (unsigned long long)watch_value(scene->holder, "process"),
        (unsigned long long)(watch_value(scene->holder, "silent") / UINT64_C(1000000000)));
    return true;
}

/* It has as many batches as a trainer may hold, so it cannot go on: it waits for itself. */
static bool
say_holding(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    char who[NAME_BYTES];
    uint64_t held;

    if (scene->holder == NULL || scene->wait_share < WAIT_SHARE_FINE || scene->holder_slots < 4)
        return false;
    held = watch_value(scene->holder, "taken") - watch_value(scene->holder, "released");
    if (held + 2 < scene->holder_slots)
        return false;
    name_reader(scene, scene->holder, who);
    blame_replica(verdict, scene->holder, 0);
    say(verdict, is_stuck(scene->holder) ? WATCH_STUCK : WATCH_WAITING, WATCH_CAUSE_TRAINER,
        "It must give batches back (tundish_release) before it takes more. More deliver.slots let "
        "it keep more.",
        "%s (process %llu) holds %llu of the %llu batches in its lane and gives none back; the "
        "others wait for it",
        who, (unsigned long long)watch_value(scene->holder, "process"), (unsigned long long)held,
        (unsigned long long)scene->holder_slots);
    return true;
}

static bool
say_deserted(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    char waiting[NAME_BYTES + 40], who[NAME_BYTES];

    if (scene->deserted == NULL || scene->wait_share < WAIT_SHARE_FINE)
        return false;
    name_waiting(scene, waiting);
    name_reader(scene, scene->deserted, who);
    blame_replica(verdict, scene->deserted, 0);
    say(verdict, WATCH_STUCK, WATCH_CAUSE_TRAINER,
        "Start it (again): it gets the steps that wait for it. Without it the job does not go on.",
        "%s for %s, whose trainer is gone or has not come", waiting, who);
    return true;
}

/* A program that gives rows: the dealing thread has nothing to do until they come. */
static bool
say_program(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    char waiting[NAME_BYTES + 40];

    if (scene->program_wait < SHARE_MATTERS)
        return false;
    name_waiting(scene, waiting);
    blame(verdict, "program", scene->program_wait);
    say(verdict, WATCH_WAITING, WATCH_CAUSE_SOURCE,
        "Make the program write faster, or cache its rows (cache) if they are the same each epoch.",
        "%s: the server waits %d%% of its time for rows that a program writes", waiting,
        percent(scene->program_wait));
    return true;
}

static void
say_fine(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    char waits[48] = "";

    blame_replica(verdict, scene->slowest, 1 - scene->least_share);
    if (percent(scene->wait_share) > 0)
        snprintf(waits, sizeof waits, " more than %d%% of its time", percent(scene->wait_share));
    say(verdict, WATCH_FINE, WATCH_CAUSE_TRAINER, "",
        "the trainers are the limit: on node %.63s none waits%s, and the server's %u thread%s %d%% "
        "busy",
        node_of(scene->now), waits, scene->threads, scene->threads == 1 ? " is" : "s are",
        percent(scene->busy));
}

static bool
is_same_group(const struct watch_set *one, const struct watch_set *other)
{
    char name[TND_STATS_VALUE_BYTES], other_name[TND_STATS_VALUE_BYTES];

    watch_label(one, "group", name, sizeof name);
    watch_label(other, "group", other_name, sizeof other_name);
    return strcmp(name, other_name) == 0;
}

static bool
say_slots(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    char waiting[NAME_BYTES + 40], whom[NAME_BYTES];

    if (scene->holder == NULL)
        return false;
    name_waiting(scene, waiting);
    name_reader(scene, scene->holder, whom);
    blame_replica(verdict, scene->holder, scene->slot_wait);
    say(verdict, WATCH_WAITING, WATCH_CAUSE_SLOTS,
        is_same_group(scene->holder, scene->waits_most)
            ? "That trainer is the slowest of its job. More slots even out short pauses, not a "
              "slower device."
            : "That job is slower, and slow_group: block makes the faster wait for it. slow_group: "
              "detach cuts it off after a while; a session of its own lets each job go at its pace.",
        "%s for %s, which has not freed its slots", waiting, whom);
    return true;
}

/* Threads that are ready to run do not, more than they run: whatever they do is slow then. */
static bool
say_processors(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    const struct watch_set *server = watch_next(scene->now, "server", NULL);
    unsigned long long rival = watch_value(server, "rival");
    double rival_cpu = (double)watch_growth(scene->before, server, "rival_cpu") / scene->passed_ns;
    char waiting[NAME_BYTES + 40], who[120] = "";

    if (scene->throttled < SHORT_OF_PROCESSORS &&
        (scene->run_delay < SHORT_OF_PROCESSORS || scene->run_delay < scene->cpu))
        return false;
    name_waiting(scene, waiting);
    if (scene->throttled >= SHORT_OF_PROCESSORS) {
        blame(verdict, "quota", scene->throttled);
        say(verdict, WATCH_WAITING, WATCH_CAUSE_PROCESSORS,
            "Raise the quota of processor time of its cgroup (cpu.max; limits.cpu in Kubernetes), or "
            "start the server with fewer --threads.",
            "%s: the quota of its cgroup stops the server %d%% of the time", waiting,
            percent(scene->throttled));
        return true;
    }
    if (rival != 0)
        snprintf(who, sizeof who, ", which process %llu uses most (%.1f processors)", rival,
                 rival_cpu);
    blame(verdict, "processors", scene->run_delay / (scene->run_delay + scene->cpu));
    say(verdict, WATCH_WAITING, WATCH_CAUSE_PROCESSORS,
        "Leave the server processors of its own (taskset, cpusets), or move the other processes.",
        "%s: the server is short of processors%s: of the time its threads wanted to run, they had "
        "none for %d%%",
        waiting, who, percent(verdict->share));
    return true;
}

/* "map", or "map of line 12" where the stream has another of that name. */
static void
name_stage(const struct watch_scene *scene, const struct watch_set *stage, char text[96])
{
    const struct watch_set *set = NULL;
    char name[64], line[16], part[16], other[64], other_line[16];
    bool is_alone = true;

    watch_label(stage, "stage", name, sizeof name);
    watch_label(stage, "line", line, sizeof line);
    watch_label(stage, "part", part, sizeof part);
    while ((set = watch_next(scene->now, "stage", set)) != NULL) {
        watch_label(set, "stage", other, sizeof other);
        watch_label(set, "line", other_line, sizeof other_line);
        if (watch_is_of(set, scene->session) && strcmp(name, other) == 0 &&
            strcmp(line, other_line) != 0)
            is_alone = false;
    }
    snprintf(text, 96, "%s%s%s", name, is_alone || line[0] == '\0' ? "" : " of line ",
             is_alone ? "" : line);
}

/* The stage that takes most of the threads: a source, which reads, or one that works on rows. */
static void
say_stage(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    bool reads = watch_value(scene->stage, "source") != 0;
    char waiting[NAME_BYTES + 40], stage[96] = "content";

    name_waiting(scene, waiting);
    if (scene->stage != NULL) {
        watch_label(scene->stage, "stage", stage, sizeof stage);
        blame(verdict, stage, scene->stage_share);
        name_stage(scene, scene->stage, stage);
    } else {
        blame(verdict, stage, scene->stage_share);
    }
    say(verdict, WATCH_WAITING, reads ? WATCH_CAUSE_SOURCE : WATCH_CAUSE_STAGE,
        reads ? "The files come too slowly: move them to faster or nearer storage, make them "
                "smaller, or read more at once (serve --threads)."
              : "More threads (serve --threads) if the node has idle cores; else make that stage "
                "cheaper, or spread the stream over more nodes.",
        "%s: %s%s takes %d%% of %u thread%s that %s %d%% busy", waiting,
        reads ? "reading with " : "", stage, percent(scene->stage_share), scene->threads,
        scene->threads == 1 ? "" : "s", scene->threads == 1 ? "is" : "are", percent(scene->busy));
}

static void
say_order(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    char waiting[NAME_BYTES + 40], stage[96] = "", named[96], most[160] = "";

    name_waiting(scene, waiting);
    blame(verdict, "order", scene->deal_busy);
    if (scene->order != NULL && scene->order_share >= SHARE_MATTERS * scene->deal_busy) {
        watch_label(scene->order, "stage", stage, sizeof stage);
        name_stage(scene, scene->order, named);
        snprintf(most, sizeof most, ", %d%% of its time in %s",
                 percent(scene->order_share / scene->deal_busy), named);
    }
    say(verdict, WATCH_WAITING, WATCH_CAUSE_ORDER,
        strcmp(stage, "shuffle") == 0
            ? "Give shuffle a smaller buffer_size, which fits the processor's cache, or shuffle "
              "files and a smaller buffer of rows; or spread the stream over more nodes."
            : "Index the files once (tundish index), or move stages that look at content for the "
              "order (filter, bucketing) behind cheaper ones.",
        "%s: the order (one thread, which finds records and decides their order) is %d%% busy%s",
        waiting, percent(scene->deal_busy), most);
}

/* Nothing comes out of a shuffle before its buffer is full. */
static bool
say_filling(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    char waiting[NAME_BYTES + 40], left[64] = "";
    uint64_t held, room;
    double grown;

    if (scene->filling == NULL)
        return false;
    held = watch_value(scene->filling, "queued");
    room = watch_value(scene->filling, "room");
    grown =
        (double)held -
        (double)watch_value(watch_find(scene->before, "stage", scene->filling->labels), "queued");
    if (grown > 0 && scene->passed_ns > 0)
        snprintf(left, sizeof left, ", at this pace for %.0f s more",
                 (double)(room - held) / grown * scene->passed_ns / 1e9 + 0.5);
    name_waiting(scene, waiting);
    blame(verdict, "shuffle", (double)held / (double)room);
    say(verdict, WATCH_WAITING, WATCH_CAUSE_ORDER,
        "It does so once, unless the stream is begun anew. A smaller buffer_size begins sooner, "
        "and so do indexed files (tundish index).",
        "%s: shuffle fills its buffer, of which %d%% is there (%llu of %llu elements)%s", waiting,
        (int)(100 * held / room), (unsigned long long)held, (unsigned long long)room, left);
    return true;
}

static void
say_unknown(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    char waiting[NAME_BYTES + 40];

    name_waiting(scene, waiting);
    say(verdict, WATCH_WAITING, WATCH_CAUSE_NONE,
        "More slots let the server work further ahead; larger batches cost less each.",
        "%s, though the server's threads are %d%% busy and its order %d%%: it has little work at a "
        "time",
        waiting, percent(scene->busy), percent(scene->deal_busy));
}

static void
say_waiting(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    verdict->wait_share = scene->wait_share;
    if (say_slots(scene, verdict) || say_processors(scene, verdict) ||
        say_program(scene, verdict) || say_filling(scene, verdict))
        ;
    else if (scene->busy >= SHARE_MATTERS || scene->busy > scene->deal_busy)
        say_stage(scene, verdict);
    else if (scene->deal_busy >= SHARE_MATTERS)
        say_order(scene, verdict);
    else
        say_unknown(scene, verdict);
}

/* What could not be kept costs the next start its time, or a restart its places. */
static void
advise_about_disk(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    uint64_t failed = watch_value(watch_next(scene->now, "server", NULL), "disk_full");
    size_t used = strlen(verdict->advice);

    if (failed > 0 && verdict->cause != WATCH_CAUSE_DISK)
        snprintf(verdict->advice + used, sizeof verdict->advice - used,
                 "%sA disk of node %.63s is full: %llu write%s failed, see the notes.",
                 used > 0 ? " " : "", node_of(scene->now), (unsigned long long)failed,
                 failed == 1 ? "" : "s");
}

static void
describe_data(const struct watch_scene *scene, char text[NAME_BYTES + 80])
{
    char name[NAME_BYTES] = "";

    if (scene->skipped_share >= MANY_SKIPPED) {
        snprintf(text, NAME_BYTES + 80, "%d%% of the rows of stream '%s' are bad and left out",
                 percent(scene->skipped_share), scene->stream);
        return;
    }
    watch_label(scene->unknown, "vocabulary", name, sizeof name);
    snprintf(text, NAME_BYTES + 80,
             "%d%% of the values looked up in vocabulary '%.150s' are not in it, %d%% before",
             percent(scene->unknown_share), name, percent(scene->unknown_before));
}

/* Data that have become worse are told whoever waits; on their own they are a level of their own. */
static void
say_data(const struct watch_scene *scene, struct watch_verdict *verdict)
{
    static const char remedy[] = "Look at the files that the notes name: they have changed, or the "
                                 "vocabulary is of other data.";
    char text[NAME_BYTES + 80];
    size_t used = strlen(verdict->advice);

    if ((scene->skipped_share < MANY_SKIPPED && scene->unknown == NULL) ||
        verdict->level > WATCH_STUCK)
        return;
    describe_data(scene, text);
    if (verdict->level > WATCH_WARNING) {
        snprintf(verdict->advice + used, sizeof verdict->advice - used, "%sBesides, %s.",
                 used > 0 ? " " : "", text);
        return;
    }
    blame(verdict, "data", scene->skipped_share >= MANY_SKIPPED ? scene->skipped_share
                                                                : scene->unknown_share);
    say(verdict, WATCH_WARNING, WATCH_CAUSE_DATA, remedy, "%s", text);
}

void
watch_judge_stream(const struct watch_snapshot *before, const struct watch_snapshot *now,
                   const struct watch_set *stream, struct watch_verdict *ret_verdict)
{
    struct watch_verdict verdict = { .level = WATCH_IDLE };
    struct watch_scene scene = { .before = before,
                                 .now = now,
                                 .session = stream,
                                 .stream = verdict.stream,
                                 .passed_ns = (double)(now->taken_ns - before->taken_ns) };

    watch_label(stream, "stream", verdict.stream, sizeof verdict.stream);
    watch_scene_look(&scene);
    if (watch_value(stream, "failed") != 0)
        say_failed(&scene, &verdict);
    else if (watch_value(stream, "paused") != 0)
        say(&verdict, WATCH_STUCK, WATCH_CAUSE_SERVER,
            "Resume it: tundish-admin, or POST /api/v1/resume.",
            "an operator has paused stream '%s'", verdict.stream);
    else if (scene.attached == 0)
        say(&verdict, WATCH_IDLE, WATCH_CAUSE_NONE, "", "no trainer reads stream '%s'",
            verdict.stream);
    else if (!say_deserted(&scene, &verdict) && !say_holding(&scene, &verdict) &&
             !say_stuck(&scene, &verdict))
        (scene.wait_share < WAIT_SHARE_FINE ? say_fine : say_waiting)(&scene, &verdict);
    say_data(&scene, &verdict);
    advise_about_disk(&scene, &verdict);
    *ret_verdict = verdict;
}

/* Is the server itself in order? */
static bool
judge_server(const struct watch_snapshot *now, struct watch_verdict *verdict)
{
    uint64_t silent_ns = watch_silent_ns(now, now->taken_ns);
    long long process = now->copy.header->process;

    if (watch_is_finished(now)) {
        say(verdict, WATCH_IDLE, WATCH_CAUSE_NONE, "",
            "the server on node %.63s (process %lld) was stopped in good order and has finished",
            node_of(now), process);
        return false;
    }
    if (!tnd_stats_is_alive(&now->copy)) {
        say(verdict, WATCH_GONE, WATCH_CAUSE_SERVER,
            "Start it again: trainers that still run reconnect, others resume at their place.",
            "the server on node %.63s (process %lld) is gone", node_of(now), process);
        return false;
    }
    if (silent_ns > HUNG_NS && now->copy.header->relayed_ns == 0) {
        say(verdict, WATCH_GONE, WATCH_CAUSE_SERVER,
            "It is stopped or the machine is out of memory or processors.",
            "the server on node %.63s (process %lld) has shown no life for %llu s", node_of(now),
            process, (unsigned long long)(silent_ns / UINT64_C(1000000000)));
        return false;
    }
    return true;
}

void
watch_judge(const struct watch_snapshot *before, const struct watch_snapshot *now,
            struct watch_verdict *ret_verdict)
{
    struct watch_verdict worst = { .level = WATCH_IDLE };
    const struct watch_set *stream = NULL;

    say(&worst, WATCH_IDLE, WATCH_CAUSE_NONE, "", "no stream is served yet");
    if (judge_server(now, &worst))
        while ((stream = watch_next(now, "stream", stream)) != NULL) {
            struct watch_verdict verdict;

            watch_judge_stream(before, now, stream, &verdict);
            if (watch_is_worse(&verdict, &worst) || worst.stream[0] == '\0')
                worst = verdict;
        }
    *ret_verdict = worst;
}

bool
watch_is_worse(const struct watch_verdict *one, const struct watch_verdict *other)
{
    return one->level != other->level ? one->level > other->level
                                      : one->wait_share > other->wait_share;
}
