/* session_link.c - ends of epochs, cuts, errors and places that all workers share.
 *
 * Posts of other nodes arrive in the link's thread, while the dealing thread changes the same
 * state. The lock keeps them apart: a question that arrives between two steps is either seen by the
 * next note_dealt or answered by hear_steps, never by neither.
 */
#include "session/nodes/session_link.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "session/nodes/session_ahead.h"
#include "session/nodes/session_cut.h"
#include "session/nodes/session_marks.h"
#include "session/nodes/session_seeds.h"
#include "session/nodes/session_standing.h"
#include "session/session_private.h"
#include "session/session_split.h"

enum { GROUP_BYTES = 64, TEXT_BYTES = 1024, EPOCHS_KEPT = 3 };
enum { DEATH_OF_REPLICA, DEATH_OF_GROUP }; /* parts of LINK_DEATH */

/* Marks keys of sessions that trainers asked for, which have no number. */
static const uint32_t EXTRA = UINT32_C(0x80000000);

/* Posted as LINK_ERROR, followed by a sentence. */
struct link_error {
    uint64_t epoch, step;
    int64_t status;
};

/* Posted as LINK_DEATH: a replica's, or with DEATH_OF_GROUP as its part that of a whole group,
 * which lacks some replica of this node for good. */
struct link_death {
    uint32_t replica;
    char group[GROUP_BYTES];
};

void
session_link_open(struct session *session, const struct session_options *options)
{
    const struct spec_stream *stream = options->stream;
    bool is_named = options->name != NULL && strcmp(options->name, stream->name) != 0;
    struct session_link *linked = &session->linked;

    pthread_mutex_init(&linked->lock.mutex, NULL);
    linked->stream = options->stream_number;
    if (is_named)
        linked->stream = EXTRA | (uint32_t)tnd_hash_farm(options->name, strlen(options->name));
    session->nodes = &nodes_alone;
    if (options->link == NULL || link_size(options->link) == 1 ||
        (is_named && stream->distribute.from_function))
        return;
    linked->job = options->link;
    session->nodes = &nodes_apart;
    if (stream->distribute.delivery != DELIVER_LANES)
        return;
    linked->link = options->link;
    session->nodes = &nodes_together;
}

void
session_link_close(struct session *session)
{
    pthread_mutex_destroy(&session->linked.lock.mutex);
    free(session->linked.level);
}

struct link_key
session_link_key(const struct session *session, enum link_topic topic, uint64_t epoch)
{
    return (struct link_key){
        .topic = topic,
        .stream = session->linked.stream,
        .epoch = epoch,
        .part = (start_barrier_depends_on_seed(session) ? session->plan->options.root_seed : 0) ^
                atomic_load(&session->linked.restart) << RESTART_SHIFT,
    };
}

/* Under DATA a batch gives every worker equally many slices, unless rows carry over. Then every
 * worker knows the steps of all. */
static bool
steps_are_known(const struct session *session)
{
    return session->plan->policy == SHARD_DATA && session->plan->rule == REBATCH_SPLIT;
}

bool
session_link_needs_all(const struct session *session)
{
    return session->linked.link != NULL &&
           (!steps_are_known(session) || session_marks_end_waits(session));
}

/* Steps in which some replica has no rows are left out: an epoch then ends where the first worker
 * has no more, else where the last has. */
static bool
ends_with_first(const struct session *session)
{
    return session->plan->stream->distribute.drop_remainder_step;
}

/* Numbers whose bytes are in the order of the numbers. */
static void
tally_number(struct session *session, const struct link_key *key, enum link_merge merge,
             bool is_running, uint64_t number)
{
    uint64_t bytes = htobe64(number);

    must_in_debug(session->linked.link != NULL);
    link_tally(session->linked.link, key,
               &(struct link_tally){ .merge = merge,
                                     .is_running = is_running,
                                     .bytes = (const uint8_t *)&bytes,
                                     .byte_count = sizeof bytes });
}

static uint64_t
number_in(const struct link_total *total)
{
    uint64_t bytes = 0;

    if (total->byte_count == sizeof bytes)
        memcpy(&bytes, total->bytes, sizeof bytes);
    return be64toh(bytes);
}

void
session_link_tell_number(struct session *session, const struct link_key *key, enum link_merge merge,
                         uint64_t number)
{
    tally_number(session, key, merge, false, number);
}

tundish_status
session_link_wait_for_number(struct session *session, const struct link_key *key,
                             uint64_t *ret_number)
{
    struct link_total total;
    tundish_status status =
        link_wait_for_total(session->linked.link, key, -1, &session->stop, &total);

    if (status != TUNDISH_OK)
        return status;
    *ret_number = number_in(&total);
    free(total.bytes);
    return TUNDISH_OK;
}

static bool
find_number(struct link *link, const struct link_key *key, uint32_t *ret_nodes,
            uint64_t *ret_number)
{
    struct link_total total;

    if (!link_find_total(link, key, &total))
        return false;
    *ret_nodes = total.nodes;
    *ret_number = number_in(&total);
    free(total.bytes);
    return true;
}

/* How far this worker is; and where it ended, which only the first of all, or all together, say. */
static void
tally_steps(struct session *session)
{
    struct session_link *linked = &session->linked;
    enum link_merge merge = ends_with_first(session) ? LINK_LOWEST : LINK_HIGHEST;
    struct link_key key = session_link_key(session, LINK_STEPS, linked->epoch);

    must_hold(&session->linked.lock);
    tally_number(session, &key, merge, true, linked->dealt);
    key.topic = LINK_ENDED;
    if (linked->ended)
        tally_number(session, &key, merge, ends_with_first(session), linked->dealt);
}

/* Has another worker asked in this epoch already? */
static bool
has_begun(struct session *session, uint64_t epoch)
{
    struct link_key key = session_link_key(session, LINK_STEPS, epoch);
    uint64_t number;
    uint32_t nodes;

    must_hold(&session->linked.lock);
    return find_number(session->linked.link, &key, &nodes, &number);
}

static void
forget_epoch(struct session *session, uint64_t epoch)
{
    static const enum link_topic topics[] = { LINK_STEPS, LINK_ENDED, LINK_EPOCH_STATE,
                                              LINK_EPOCH_STATES };

    must_in_debug(session->linked.link != NULL);
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++) {
        struct link_key key = session_link_key(session, topics[i], epoch);

        link_forget(session->linked.link, &key);
    }
    session_marks_forget(session, epoch);
}

/* The epochs are those that this node or another may be in. */
void
session_link_restart(struct session *session, uint64_t number)
{
    struct session_link *linked = &session->linked;
    uint64_t first = linked->epoch >= EPOCHS_KEPT ? linked->epoch - EPOCHS_KEPT + 1 : 0;

    must_hold(&session->control.lock);
    for (uint64_t epoch = first; epoch <= linked->epoch + 1; epoch++)
        forget_epoch(session, epoch);
    tnd_lock_take(&linked->lock);
    linked->has_begun = false;
    atomic_store(&linked->restart, number);
    tnd_lock_release(&linked->lock);
}

tundish_status
session_link_start_epoch(struct session *session, uint64_t epoch, uint64_t step)
{
    struct session_link *linked = &session->linked;

    tnd_lock_take(&linked->lock);
    linked->epoch = epoch;
    linked->dealt = step;
    linked->ended = false;
    linked->asked = ends_with_first(session) || has_begun(session, epoch);
    linked->marks_posted = 0;
    linked->cut_step = UINT64_MAX;
    tnd_lock_release(&linked->lock);
    /* Another node may be an epoch late and still ask about it. */
    if (epoch >= EPOCHS_KEPT)
        forget_epoch(session, epoch - EPOCHS_KEPT);
    return link_check(linked->link);
}

struct question {
    struct session *session;
    uint64_t number;
    enum job_step answer;
    bool is_of_cut; /* not answered: first the nodes agree where the epoch is cut */
};

/* The epoch ends with the last worker: has one more steps, or have all ended? Where all have ended
 * it is known how far each got, whatever else has come. */
static bool
is_answered_by_last(struct link *link, struct question *question)
{
    uint64_t epoch = question->session->linked.epoch, has = 0;
    struct link_key steps = session_link_key(question->session, LINK_STEPS, epoch);
    struct link_key ended = session_link_key(question->session, LINK_ENDED, epoch);
    uint32_t nodes;
    bool have_all_ended = find_number(link, &ended, &nodes, &has);

    if (!have_all_ended && !find_number(link, &steps, &nodes, &has))
        return false;
    question->answer = has > question->number ? JOB_STEP_EMPTY : JOB_STEP_END;
    return have_all_ended || has > question->number;
}

/* The epoch ends with the first worker: has one ended, or have all this step? */
static bool
is_answered_by_first(struct link *link, struct question *question)
{
    uint64_t epoch = question->session->linked.epoch, has;
    struct link_key steps = session_link_key(question->session, LINK_STEPS, epoch);
    struct link_key ended = session_link_key(question->session, LINK_ENDED, epoch);
    uint32_t nodes;

    if (find_number(link, &ended, &nodes, &has) && has <= question->number) {
        question->answer = JOB_STEP_END;
        return true;
    }
    question->answer = JOB_STEP_ROWS;
    return find_number(link, &steps, &nodes, &has) && nodes == link_size(link) &&
           has > question->number;
}

static bool
is_answered(struct link *link, void *context)
{
    struct question *question = context;
    bool is_answered = ends_with_first(question->session) ? is_answered_by_first(link, question)
                                                          : is_answered_by_last(link, question);

    question->is_of_cut = !is_answered && session_cut_is_due(question->session);
    return is_answered || question->is_of_cut;
}

/* A node that has learned of the cut deals no more until all have said where they are: one that
 * waits for its step says so from here. */
static tundish_status
ask_nodes(struct session *session, uint64_t number, enum job_step *ret_step)
{
    struct question question = { session, number, JOB_STEP_END, false };
    bool is_cut = false;
    tundish_status status =
        link_wait(session->linked.link, is_answered, &question, -1, &session->stop);

    if (status == TUNDISH_OK && question.is_of_cut) {
        status = session_cut(session, number, &is_cut);
        if (status == TUNDISH_OK && !is_cut)
            status = link_wait(session->linked.link, is_answered, &question, -1, &session->stop);
    }
    if (status == TUNDISH_OK)
        *ret_step = is_cut ? JOB_STEP_END : question.answer;
    return status;
}

static void
note_dealt(struct session *session, uint64_t dealt, bool ended)
{
    struct session_link *linked = &session->linked;

    tnd_lock_take(&linked->lock);
    must_in_debug(dealt >= linked->dealt && (ended || !linked->ended));
    linked->dealt = dealt;
    linked->ended = ended;
    /* Most steps need no post: another worker asks only when it has no rows left. */
    if (linked->asked || ended)
        tally_steps(session);
    tnd_lock_release(&linked->lock);
}

tundish_status
session_link_step(struct session *session, uint64_t number, uint32_t present,
                  enum job_step *ret_step)
{
    bool drop_partial = ends_with_first(session);
    bool has = drop_partial ? present == session->plan->replicas : present > 0;
    bool told;

    must_in_debug(present <= session->plan->replicas);
    session_marks_post(session);
    if (steps_are_known(session)) {
        *ret_step = has ? JOB_STEP_ROWS : JOB_STEP_END;
        return TUNDISH_OK;
    }
    told = session->linked.ended;
    if (has)
        note_dealt(session, number + 1, false);
    else if (!told)
        note_dealt(session, number, true);
    if (has && !drop_partial) {
        *ret_step = JOB_STEP_ROWS;
        return TUNDISH_OK;
    }
    if (!has && drop_partial) {
        *ret_step = JOB_STEP_END;
        return TUNDISH_OK;
    }
    return ask_nodes(session, number, ret_step);
}

tundish_status
session_link_end_epoch(struct session *session, uint64_t number)
{
    session_cut_tell_end(session, number);
    return session_marks_end(session);
}

/* The states of all workers, one after the other. */
static tundish_status
gather_each(struct byte_view rest, struct place *place)
{
    size_t own_bytes = place->state_count * sizeof *place->state;
    struct byte_view state;
    uint32_t rank, count = 0;

    while (link_next_of_each(&rest, &rank, &state)) {
        if (state.size != own_bytes || place->state_count * (count + 1) > PLACE_STATE_MAX)
            return tnd_fail(TUNDISH_E_PIPELINE, "the nodes' places differ in length");
        memcpy(place->state + (size_t)place->state_count * count++, state.data, own_bytes);
    }
    place->state_count *= count;
    return TUNDISH_OK;
}

/* Mostly they are the same, and nothing more is to be told. */
tundish_status
session_link_gather(struct session *session, uint64_t epoch, struct place *place)
{
    struct link *link = session->linked.link;
    struct link_key key = session_link_key(session, LINK_EPOCH_STATE, epoch);
    struct link_tally own = { .merge = LINK_KINDS,
                              .bytes = (const uint8_t *)place->state,
                              .byte_count = place->state_count * sizeof *place->state };
    uint32_t workers = link_size(link);
    struct link_total total;
    tundish_status status;
    bool same;

    if (place->worker_count == 0 || own.byte_count == 0)
        return TUNDISH_OK;
    status = link_tally_all(link, &key, &own, -1, &session->stop, &total);
    if (status != TUNDISH_OK)
        return status;
    same = link_are_same(&total);
    free(total.bytes);
    if (same)
        return TUNDISH_OK;
    if (place->state_count * workers > PLACE_STATE_MAX)
        return tnd_fail(TUNDISH_E_PIPELINE,
                        "a place stores at most %d numbers, and %u workers with %u each need more: "
                        "use auto_shard: DATA, or fewer random stages",
                        PLACE_STATE_MAX, workers, place->state_count);
    own.merge = LINK_EACH;
    key.topic = LINK_EPOCH_STATES;
    status = link_tally_all(link, &key, &own, -1, &session->stop, &total);
    if (status != TUNDISH_OK)
        return status;
    status = gather_each((struct byte_view){ total.bytes, total.byte_count }, place);
    free(total.bytes);
    return status;
}

void
session_link_tell_error(struct session *session, uint64_t epoch, uint64_t step,
                        tundish_status status, const char *text)
{
    struct link_error error = { .epoch = epoch, .step = step, .status = status };
    struct link_key key = { .topic = LINK_ERROR, .stream = session->linked.stream };
    uint8_t bytes[sizeof error + TEXT_BYTES];
    size_t text_bytes = strnlen(text, TEXT_BYTES);

    must_in_debug(status != TUNDISH_OK && session->linked.link != NULL);
    if (status == TUNDISH_E_PEER_LOST)
        return;
    memcpy(bytes, &error, sizeof error);
    memcpy(bytes + sizeof error, text, text_bytes);
    link_post(session->linked.link, &key, bytes, sizeof error + text_bytes);
}

void
session_link_tell_death(struct session *session, const char *group, uint32_t replica)
{
    struct link_death death = { .replica = session->plan->options.worker * session->plan->replicas +
                                           replica };
    struct link_key key = { .topic = LINK_DEATH, .stream = session->linked.stream };

    if (session->linked.link == NULL)
        return;
    snprintf(death.group, sizeof death.group, "%s", group);
    tnd_lock_take(&session->linked.lock);
    if (!session->linked.mute)
        link_post(session->linked.link, &key, &death, sizeof death);
    tnd_lock_release(&session->linked.lock);
}

void
session_link_mute(struct session *session, bool mute)
{
    tnd_lock_take(&session->linked.lock);
    session->linked.mute = mute;
    tnd_lock_release(&session->linked.lock);
}

void
session_link_tell_group_end(struct session *session, const char *group)
{
    struct link_death death = { 0 };
    struct link_key key = { .topic = LINK_DEATH,
                            .stream = session->linked.stream,
                            .part = DEATH_OF_GROUP };

    if (session->linked.link == NULL)
        return;
    snprintf(death.group, sizeof death.group, "%s", group);
    link_post(session->linked.link, &key, &death, sizeof death);
}

static void
hear_steps(struct session *session, const struct link_key *key)
{
    struct session_link *linked = &session->linked;

    tnd_lock_take(&linked->lock);
    if (key->epoch == linked->epoch && !linked->asked) {
        linked->asked = true;
        tally_steps(session);
    }
    tnd_lock_release(&linked->lock);
}

static void
hear_error(struct session *session, const char *who, struct byte_view bytes)
{
    struct link_error error;
    char text[TEXT_BYTES];

    if (bytes.size < sizeof error)
        return;
    memcpy(&error, bytes.data, sizeof error);
    snprintf(text, sizeof text, "%s: %.*s", who, (int)(bytes.size - sizeof error),
             (const char *)bytes.data + sizeof error);
    ring_fail(session, error.status < 0 ? (tundish_status)error.status : TUNDISH_E_DATA, text,
              true);
}

static void
hear_death(struct session *session, const char *who, bool of_group, struct byte_view bytes)
{
    struct link_death death;
    char text[GROUP_BYTES * 8];

    if (bytes.size != sizeof death)
        return;
    memcpy(&death, bytes.data, sizeof death);
    death.group[GROUP_BYTES - 1] = '\0';
    if (of_group) {
        snprintf(text, sizeof text,
                 "group \"%s\" has ended on %s before all its replicas read to the end: open again "
                 "at a place",
                 death.group, who);
        tnd_log(TND_LOG_WARNING, "groups", "stream %s: %s", session->plan->stream->name, text);
        feed_end_group(session->feed, death.group, text);
        return;
    }
    snprintf(text, sizeof text, "replica %u on %s is gone", death.replica, who);
    feed_tell_lost(session->feed, death.group, text);
}

/* Tell every group at its next call. The stream ends after the steps that are published. */
static void
hear_failure(struct session *session, struct byte_view bytes)
{
    char text[TEXT_BYTES];

    snprintf(text, sizeof text, "%.*s", (int)bytes.size, (const char *)bytes.data);
    ring_fail(session, TUNDISH_E_PEER_LOST, text, true);
    feed_tell_lost(session->feed, NULL, text);
}

void
session_link_hear(struct session *session, uint32_t from, const struct link_key *key,
                  struct byte_view bytes)
{
    char who[160];

    if (key == NULL) {
        if (session->options.shards == NULL) /* else others get what the lost node had */
            hear_failure(session, bytes);    /* of every delivery: its rows are missing */
        return;
    }
    if (session->linked.job == NULL || key->stream != session->linked.stream)
        return;
    if (key->topic == LINK_SEEDS)
        session_seeds_hear(session, bytes);
    else if (key->topic == LINK_AHEAD)
        session_ahead_hear(session, bytes);
    else if (key->topic == LINK_STANDING)
        session_standing_hear(session, key, bytes);
    if (session->linked.link == NULL)
        return;
    link_name(session->linked.link, from, who, sizeof who);
    if (key->topic == LINK_STEPS)
        hear_steps(session, key);
    else if (key->topic == LINK_ERROR)
        hear_error(session, who, bytes);
    else if (key->topic == LINK_ORDER)
        session_marks_hear(session, key, bytes);
    else if (key->topic == LINK_RESTART)
        session_cut_hear(session, key);
    else if (key->topic == LINK_SPLIT)
        session_split_hear(session, bytes);
    else if (key->topic == LINK_DEATH)
        hear_death(session, who, key->part == DEATH_OF_GROUP, bytes);
}
