/* diagnosis.c - find the bottleneck of a stream and put it into a sentence. */
#include "watch/diagnosis.h"

#include <stdio.h>
#include <string.h>

#include "core/plural.h"
#include "watch/sentence.h"

static const double MANY_SKIPPED = 0.05;
static const uint64_t DISK_FULL_NS = UINT64_C(60000000000);

/* A trainer is stuck when it has taken and returned nothing for several times its usual step, and
 * for at least SILENT_NS. Before its first step it may compile, which takes longer. */
static const uint64_t SILENT_NS = UINT64_C(10000000000);
static const uint64_t SILENT_AT_FIRST_NS = UINT64_C(60000000000);
enum { SILENT_STEPS = 3 };

/* A trainer that no other waits for may be saving its state or evaluating, so it gets more time.
 * The numbers are those of alerts.yml. */
static const uint64_t SILENT_ALONE_NS = UINT64_C(120000000000);
enum { SILENT_STEPS_ALONE = 4 };

const char *
watch_level_name(enum watch_level level)
{
    static const char *const names[] = { "idle",    "fine",  "warning", "stopping",
                                         "waiting", "stuck", "failed",  "gone" };

    return names[level];
}

const char *
watch_cause_name(enum watch_cause cause)
{
    static const char *const names[] = { "none",  "trainer", "source", "stage",  "order",
                                         "slots", "disk",    "error",  "server", "processors",
                                         "data",  "store",   "memory", "node" };

    return names[cause];
}

/* The kernel's sentences, in English: servers do not set another language. */
static bool
tells_of_full_disk(const char *text)
{
    return strstr(text, "No space left on device") != NULL ||
           strstr(text, "Disk quota exceeded") != NULL;
}

/* The last error of the stream, without the prefix that names the stream again. */
static void
find_error(const struct watch_observation *observation, char text[TND_STATS_NOTE_BYTES])
{
    struct watch_note found[TND_STATS_NOTES];
    uint32_t count = watch_notes(observation->now, 0, found, TND_STATS_NOTES);
    char begin[96];
    size_t begin_bytes;

    snprintf(text, TND_STATS_NOTE_BYTES, "see the log");
    begin_bytes = (size_t)snprintf(begin, sizeof begin, "stream: %.63s: ", observation->stream);
    for (uint32_t i = 0; i < count; i++)
        if (found[i].level == 0)
            snprintf(text, TND_STATS_NOTE_BYTES, "%s",
                     found[i].text +
                         (strncmp(found[i].text, begin, begin_bytes) == 0 ? begin_bytes : 0));
}

static void
say_failed(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    char text[TND_STATS_NOTE_BYTES];

    find_error(observation, text);
    if (tells_of_full_disk(text)) {
        watch_name_culprit(diagnosis, "disk", 1);
        watch_say(diagnosis, WATCH_FAILED, WATCH_CAUSE_DISK,
                  "Free disk space, or set TUNDISH_CACHE to a folder on a larger disk, and resume "
                  "from the last checkpoint.",
                  "stream '%s' has failed: a disk of node %.63s is full: %.440s",
                  observation->stream, watch_node(observation->now), text);
        return;
    }
    watch_say(diagnosis, WATCH_FAILED, WATCH_CAUSE_ERROR,
              "Fix the reported error and resume from the last checkpoint; on_error: skip drops "
              "bad rows.",
              "stream '%s' on node %.63s has failed: %.440s", observation->stream,
              watch_node(observation->now), text);
}

/* A trainer that has nothing to release may be waiting for the server, so it is not stuck. */
bool
watch_is_stuck(const struct watch_set *reader)
{
    uint64_t usual_ns = watch_value(reader, "usual_step");
    uint64_t limit_ns = usual_ns == 0                         ? SILENT_AT_FIRST_NS
                        : usual_ns < SILENT_NS / SILENT_STEPS ? SILENT_NS
                                                              : SILENT_STEPS * usual_ns;

    return watch_value(reader, "silent") >= limit_ns &&
           watch_value(reader, "released") < watch_value(reader, "published");
}

static bool
say_stuck(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    char who[WATCH_NAME_BYTES];

    if (observation->holder == NULL || observation->holder == observation->waits_most ||
        observation->wait_share < WATCH_WAIT_FINE || !watch_is_stuck(observation->holder))
        return false;
    watch_name_reader(observation, observation->holder, who);
    watch_name_culprit_replica(diagnosis, observation->holder, 0);
    watch_say(
        diagnosis, WATCH_STUCK, WATCH_CAUSE_TRAINER,
        "Examine that process: a debugger's backtrace shows where it hangs. If it does not "
        "recover, end it; its group resumes at the last place.",
        "%s (process %llu) has not taken or returned a batch for %llu s; the others wait for it",
        who, (unsigned long long)watch_value(observation->holder, "process"),
        (unsigned long long)(watch_value(observation->holder, "silent") / UINT64_C(1000000000)));
    return true;
}

/* A trainer that holds as many batches as it may cannot go on. Either the others wait for it, or it
 * waits for a batch itself and will never get one. */
static bool
say_holding(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    bool waits = observation->holder == observation->waits_most;
    char who[WATCH_NAME_BYTES];
    uint64_t held;

    if (observation->holder == NULL || observation->wait_share < WATCH_WAIT_FINE ||
        (!waits && observation->holder_slots < 4))
        return false;
    held = watch_value(observation->holder, "taken") - watch_value(observation->holder, "released");
    /* If others wait, two batches fewer are enough: at the moment of the snapshot one may be on its
     * way in and one on its way out. */
    if (held + (waits ? 0 : 2) < observation->holder_slots)
        return false;
    watch_name_reader(observation, observation->holder, who);
    watch_name_culprit_replica(diagnosis, observation->holder, 0);
    watch_say(diagnosis, watch_is_stuck(observation->holder) ? WATCH_STUCK : WATCH_WAITING,
              WATCH_CAUSE_TRAINER,
              "It must return batches (tundish_release) before it takes more. With more "
              "deliver.slots it can hold more.",
              "%s (process %llu) holds %llu of the %llu batches in its lane and returns none; %s",
              who, (unsigned long long)watch_value(observation->holder, "process"),
              (unsigned long long)held, (unsigned long long)observation->holder_slots,
              waits ? "it waits for more" : "the others wait for it");
    return true;
}

static bool
say_deserted(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    char waiting[WATCH_WAITING_BYTES], who[WATCH_NAME_BYTES];

    if (observation->deserted == NULL || observation->wait_share < WATCH_WAIT_FINE)
        return false;
    watch_name_waiting(observation, waiting);
    watch_name_reader(observation, observation->deserted, who);
    watch_name_culprit_replica(diagnosis, observation->deserted, 0);
    watch_say(diagnosis, WATCH_STUCK, WATCH_CAUSE_TRAINER,
              "Start or restart it: the steps that wait for it are kept. The job does not continue "
              "without it. If it had read all before the server was started again, start it once "
              "more at the place of one that waits.",
              "%s for %s, whose trainer is gone or has not attached", waiting, who);
    return true;
}

/* Nobody is attached, since trainers have died: what is left for them waits for others. */
static bool
say_died(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    const struct watch_set *set = NULL, *first = NULL;
    unsigned long long count = 0, batches = 0;
    char who[WATCH_NAME_BYTES], others[48] = "";

    while ((set = watch_next(observation->now, "reader", set)) != NULL) {
        if (!watch_is_of(set, observation->session) || watch_value(set, "died") == 0)
            continue;
        first = first != NULL ? first : set;
        count++;
        batches += watch_value(set, "published") - watch_value(set, "released");
    }
    if (first == NULL)
        return false;
    if (count > 1)
        snprintf(others, sizeof others, " and %llu other%s", count - 1, count > 2 ? "s" : "");
    watch_name_reader(observation, first, who);
    watch_name_culprit_replica(diagnosis, first, 0);
    watch_say(diagnosis, WATCH_STUCK, WATCH_CAUSE_TRAINER,
              "Start the trainers again: they go on where the last ones stood. The log says how "
              "long their place is kept (deliver.rejoin).",
              "the trainer%s of %s%s %s died, none is attached, and %llu batch%s wait%s for "
              "replacements",
              count > 1 ? "s" : "", who, others, count > 1 ? "have" : "has", batches,
              batches == 1 ? "" : "es", batches == 1 ? "s" : "");
    return true;
}

/* ", so for replica 1 of group b on node c", of those whose groups are here in part; or "". */
static void
name_absent(const struct watch_observation *observation, char text[WATCH_NAME_BYTES + 16])
{
    const struct watch_set *set = NULL, *absent = NULL;
    char who[WATCH_NAME_BYTES];

    while (absent == NULL && (set = watch_next(observation->now, "reader", set)) != NULL)
        if (watch_is_of(set, observation->session) && watch_value(set, "attached") == 0)
            absent = set;
    text[0] = '\0';
    if (absent == NULL)
        return;
    watch_name_reader(observation, absent, who);
    snprintf(text, WATCH_NAME_BYTES + 16, ", so for %s", who);
}

/* Nothing is dealt before as many groups are complete as the pipeline file says. */
static bool
say_missing(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    unsigned long long count = watch_value(observation->session, "groups_missing");
    char waiting[WATCH_WAITING_BYTES], absent[WATCH_NAME_BYTES + 16];

    if (count == 0 || observation->wait_share < WATCH_WAIT_FINE)
        return false;
    watch_name_waiting(observation, waiting);
    name_absent(observation, absent);
    watch_name_culprit(diagnosis, "groups", 0);
    watch_say(diagnosis, WATCH_STUCK, WATCH_CAUSE_TRAINER,
              "Start the trainers that are missing. If they had read all before the server was "
              "started again, start them once more at the place of one that waits, or let "
              "deliver.group_wait limit the waiting.",
              "%s for the first batch, which waits until %llu more group%s complete%s", waiting,
              count, count == 1 ? " is" : "s are", absent);
    return true;
}

/* The trainer that has been silent for longest, of those that are stuck, or NULL. Batches are ready
 * for it, so the server is not the reason. */
static const struct watch_set *
find_silent(const struct watch_observation *observation)
{
    const struct watch_set *set = NULL, *silent = NULL;

    while ((set = watch_next(observation->now, "reader", set)) != NULL)
        if (watch_is_of(set, observation->session) && watch_value(set, "attached") != 0 &&
            watch_is_stuck(set) &&
            (silent == NULL || watch_value(set, "silent") > watch_value(silent, "silent")))
            silent = set;
    return silent;
}

/* All trainers may stand still without waiting for a batch: they then wait for each other, or hang.
 */
static bool
say_silent(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    const struct watch_set *silent = find_silent(observation);
    uint64_t silent_ns = watch_value(silent, "silent");
    bool is_long = silent_ns > SILENT_ALONE_NS &&
                   silent_ns > SILENT_STEPS_ALONE * watch_value(silent, "usual_step");
    char who[WATCH_NAME_BYTES];

    if (silent == NULL || observation->wait_share >= WATCH_WAIT_FINE)
        return false;
    watch_name_reader(observation, silent, who);
    watch_name_culprit_replica(diagnosis, silent, 1);
    watch_say(
        diagnosis, is_long ? WATCH_STUCK : WATCH_FINE, WATCH_CAUSE_TRAINER,
        is_long ? "Examine that process: a debugger's backtrace shows where it hangs. If no "
                  "trainer makes progress, they often wait for each other."
                : "",
        "%s (process %llu) has not taken or returned a batch for %llu s; no trainer waits for "
        "the server",
        who, (unsigned long long)watch_value(silent, "process"),
        (unsigned long long)(silent_ns / UINT64_C(1000000000)));
    return true;
}

/* The trainers are the bottleneck: the desired state, with the share that the server has left. */
static void
say_fine(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    char waits[48] = "";

    watch_name_culprit_replica(diagnosis, observation->slowest, 1 - observation->least_share);
    if (watch_percent(observation->wait_share) > 0)
        snprintf(waits, sizeof waits, " more than %d%% of its time",
                 watch_percent(observation->wait_share));
    watch_say(diagnosis, WATCH_FINE, WATCH_CAUSE_TRAINER, "",
              "the trainers are the bottleneck: on node %.63s none waits%s, and the server's %u "
              "thread%s %d%% busy",
              watch_node(observation->now), waits, observation->threads,
              observation->threads == 1 ? " is" : "s are", watch_percent(observation->busy));
}

/* A full disk ends no stream by itself, but the next start must then build its caches again, and a
 * restart may lack its places. Told while it happens, and a while after: kept places are tried
 * again at once, and what a cache has not got stays in the notes. */
static void
advise_about_disk(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    const struct watch_set *server = watch_next(observation->now, "server", NULL);
    uint64_t failed = watch_value(server, "disk_full");
    size_t used = strlen(diagnosis->advice);

    if (failed > 0 && watch_value(server, "disk_full_age") < DISK_FULL_NS &&
        diagnosis->cause != WATCH_CAUSE_DISK)
        snprintf(diagnosis->advice + used, sizeof diagnosis->advice - used,
                 "%sA disk of node %.63s is full: %llu write%s failed, see the notes.",
                 used > 0 ? " " : "", watch_node(observation->now), (unsigned long long)failed,
                 TND_PLURAL(failed));
}

static void
describe_data(const struct watch_observation *observation, char text[WATCH_NAME_BYTES + 80])
{
    char name[WATCH_NAME_BYTES] = "";

    if (observation->skipped_share >= MANY_SKIPPED) {
        snprintf(text, WATCH_NAME_BYTES + 80,
                 "%d%% of the rows of stream '%s' are bad and left out",
                 watch_percent(observation->skipped_share), observation->stream);
        return;
    }
    watch_label(observation->worse_set, observation->worse->kind, name, sizeof name);
    snprintf(text, WATCH_NAME_BYTES + 80, "%d%% of the values %s '%.150s' are %s, %d%% before",
             watch_percent(observation->worse_share), observation->worse->where, name,
             observation->worse->such_word, watch_percent(observation->worse_before));
}

/* Data that have become worse are added to the advice of any worse diagnosis. Without one they are
 * a warning of their own. */
static void
say_data(const struct watch_observation *observation, struct watch_diagnosis *diagnosis)
{
    bool has_bad_rows = observation->skipped_share >= MANY_SKIPPED;
    char text[WATCH_NAME_BYTES + 80];
    size_t used = strlen(diagnosis->advice);

    if ((!has_bad_rows && observation->worse == NULL) || diagnosis->level > WATCH_STUCK)
        return;
    describe_data(observation, text);
    if (diagnosis->level > WATCH_WARNING) {
        snprintf(diagnosis->advice + used, sizeof diagnosis->advice - used, "%sBesides, %s.",
                 used > 0 ? " " : "", text);
        return;
    }
    watch_name_culprit(diagnosis, "data",
                       has_bad_rows ? observation->skipped_share : observation->worse_share);
    watch_say(diagnosis, WATCH_WARNING, WATCH_CAUSE_DATA,
              has_bad_rows ? "Check the files that the notes name." : observation->worse->remedy,
              "%s", text);
}

void
watch_diagnose_stream(const struct watch_snapshot *before, const struct watch_snapshot *now,
                      const struct watch_set *stream, struct watch_diagnosis *ret_diagnosis)
{
    struct watch_diagnosis diagnosis = { .level = WATCH_IDLE };
    struct watch_observation observation = { .before = before,
                                             .now = now,
                                             .session = stream,
                                             .stream = diagnosis.stream,
                                             .passed_ns =
                                                 (double)(now->taken_ns - before->taken_ns) };

    watch_label(stream, "stream", diagnosis.stream, sizeof diagnosis.stream);
    watch_observation_make(&observation);
    diagnosis.wait_share = observation.wait_share;
    diagnosis.file_share = observation.off_processor;
    if (watch_value(stream, "failed") != 0)
        say_failed(&observation, &diagnosis);
    else if (watch_is_stopping(now))
        watch_say_stopping(&observation, &diagnosis);
    else if (watch_value(stream, "paused") != 0)
        watch_say(&diagnosis, WATCH_STUCK, WATCH_CAUSE_SERVER,
                  "Resume it: tundish-admin, or POST /api/v1/resume.",
                  "an operator has paused stream '%s'", diagnosis.stream);
    else if (observation.attached == 0) {
        if (!say_died(&observation, &diagnosis))
            watch_say(&diagnosis, WATCH_IDLE, WATCH_CAUSE_NONE, "", "no trainer reads stream '%s'",
                      diagnosis.stream);
    }
    /* From a certain cause to a likely one. A trainer that is gone, or holds all batches, explains
     * all waiting; only then is the server suspected. */
    else if (!say_missing(&observation, &diagnosis) &&
             !watch_say_sharing(&observation, &diagnosis) &&
             !say_deserted(&observation, &diagnosis) && !say_holding(&observation, &diagnosis) &&
             !say_stuck(&observation, &diagnosis) && !say_silent(&observation, &diagnosis))
        (observation.wait_share < WATCH_WAIT_FINE ? say_fine : watch_say_waiting)(&observation,
                                                                                  &diagnosis);
    say_data(&observation, &diagnosis);
    advise_about_disk(&observation, &diagnosis);
    *ret_diagnosis = diagnosis;
}

/* Is the server itself in order? */
static bool
diagnose_server(const struct watch_snapshot *now, struct watch_diagnosis *diagnosis)
{
    long long process = now->copy.header->process;

    if (watch_is_finished(now)) {
        watch_say(diagnosis, WATCH_IDLE, WATCH_CAUSE_NONE, "",
                  "the server on node %.63s (process %lld) was stopped normally and has finished",
                  watch_node(now), process);
        return false;
    }
    if (!tnd_stats_is_alive(&now->copy)) {
        watch_say(diagnosis, WATCH_GONE, WATCH_CAUSE_SERVER,
                  "Restart it: running trainers reconnect, others resume at their place.",
                  "the server on node %.63s (process %lld) is gone", watch_node(now), process);
        return false;
    }
    if (watch_is_hung(now, now->taken_ns)) {
        uint64_t silent_ns = watch_silent_ns(now, now->taken_ns);

        watch_say(diagnosis, WATCH_GONE, WATCH_CAUSE_SERVER,
                  "The process is suspended, or the machine lacks memory or processors.",
                  "the server on node %.63s (process %lld) has not responded for %llu s",
                  watch_node(now), process, (unsigned long long)(silent_ns / UINT64_C(1000000000)));
        return false;
    }
    return true;
}

void
watch_diagnose(const struct watch_snapshot *before, const struct watch_snapshot *now,
               struct watch_diagnosis *ret_diagnosis)
{
    struct watch_diagnosis worst = { .level = WATCH_IDLE };
    const struct watch_set *stream = NULL;

    watch_say(&worst, WATCH_IDLE, WATCH_CAUSE_NONE, "", "no stream is served yet");
    if (diagnose_server(now, &worst))
        while ((stream = watch_next(now, "stream", stream)) != NULL) {
            struct watch_diagnosis diagnosis;

            watch_diagnose_stream(before, now, stream, &diagnosis);
            if (watch_is_worse(&diagnosis, &worst) || worst.stream[0] == '\0')
                worst = diagnosis;
        }
    *ret_diagnosis = worst;
}

bool
watch_is_worse(const struct watch_diagnosis *one, const struct watch_diagnosis *other)
{
    return one->level != other->level ? one->level > other->level
                                      : one->wait_share > other->wait_share;
}
