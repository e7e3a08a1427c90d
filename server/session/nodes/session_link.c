/* session_link.c - ends of epochs, cuts, errors and places that all workers share.
 *
 * Posts of other nodes arrive in the link's thread, while the dealing thread changes the same
 * state. The lock keeps them apart: a question that arrives between two steps is either seen by the
 * next note_dealt or answered by hear_steps, never by neither.
 */
#include "session/nodes/session_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/log.h"
#include "core/memory.h"
#include "session/nodes/session_marks.h"
#include "session/session_private.h"

enum { GROUP_BYTES = 64, TEXT_BYTES = 1024 };
enum { DEATH_OF_REPLICA, DEATH_OF_GROUP }; /* parts of LINK_DEATH */

/* Marks keys of sessions that trainers asked for, which have no number. */
static const uint32_t EXTRA = UINT32_C(0x80000000);

/* Posted as LINK_STEPS: the worker has rows at every step below `has`; ended: at no other. */
struct link_steps {
    uint64_t has, ended;
};

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

    pthread_mutex_init(&linked->lock, NULL);
    linked->stream = options->stream_number;
    if (is_named)
        linked->stream = EXTRA | (uint32_t)tnd_hash_farm(options->name, strlen(options->name));
    if (options->link == NULL || link_size(options->link) == 1 ||
        stream->distribute.delivery != DELIVER_LANES ||
        (is_named && stream->distribute.from_function))
        return;
    linked->link = options->link;
}

void
session_link_close(struct session *session)
{
    pthread_mutex_destroy(&session->linked.lock);
    free(session->linked.level);
}

struct link_key
session_link_key(const struct session *session, enum link_topic topic, uint64_t epoch)
{
    return (struct link_key){
        .topic = topic,
        .stream = session->linked.stream,
        .epoch = epoch,
        .part = session->plan->options.root_seed,
    };
}

/* Under DATA a batch gives every worker equally many slices, unless rows carry over. Then every
 * worker knows the steps of all. */
static bool
steps_are_known(const struct session *session)
{
    return session->plan->policy == SHARD_DATA && session->plan->rule == REBATCH_SPLIT;
}

static void
post_steps(struct session *session)
{
    struct session_link *linked = &session->linked;
    struct link_key key = session_link_key(session, LINK_STEPS, linked->epoch);
    struct link_steps steps = { .has = linked->dealt, .ended = linked->ended };

    link_post(linked->link, &key, &steps, sizeof steps);
}

tundish_status
session_link_start_epoch(struct session *session, uint64_t epoch, uint64_t step)
{
    struct session_link *linked = &session->linked;

    if (linked->link == NULL)
        return TUNDISH_OK;
    pthread_mutex_lock(&linked->lock);
    linked->epoch = epoch;
    linked->dealt = step;
    linked->ended = false;
    linked->asked = session->plan->stream->distribute.drop_remainder_step;
    linked->marks_posted = 0;
    for (uint32_t rank = 0; !linked->asked && rank < link_size(linked->link); rank++) {
        struct link_key key = session_link_key(session, LINK_STEPS, epoch);
        uint8_t *bytes;
        size_t byte_count;

        if (rank != link_rank(linked->link) &&
            link_find(linked->link, &key, rank, &bytes, &byte_count)) {
            linked->asked = true;
            free(bytes);
        }
    }
    pthread_mutex_unlock(&linked->lock);
    /* Another node may be an epoch late and still ask about it, so keep a few. */
    if (epoch >= 3) {
        struct link_key old = session_link_key(session, LINK_STEPS, epoch - 3);

        link_forget(linked->link, &old);
        old.topic = LINK_EPOCH_STATE;
        link_forget(linked->link, &old);
    }
    return link_check(linked->link);
}

struct question {
    const struct session *session;
    uint64_t number;
    bool all_must_have; /* else: one is enough */
    enum job_step answer;
};

/* Do the others' posts answer the question? A missing post reads as zeros: its node has not said
 * anything yet. */
static bool
is_answered(struct link *link, void *context)
{
    struct question *question = context;
    struct link_key key =
        session_link_key(question->session, LINK_STEPS, question->session->linked.epoch);
    bool all_have = true, one_has = false, one_has_not = false, all_have_not = true;

    for (uint32_t rank = 0; rank < link_size(link); rank++) {
        struct link_steps steps = { 0 };
        uint8_t *bytes;
        size_t byte_count;

        if (rank == link_rank(link))
            continue;
        if (link_find(link, &key, rank, &bytes, &byte_count)) {
            if (byte_count == sizeof steps)
                memcpy(&steps, bytes, sizeof steps);
            free(bytes);
        }
        all_have &= steps.has > question->number;
        one_has |= steps.has > question->number;
        one_has_not |= steps.ended && steps.has <= question->number;
        all_have_not &= steps.ended && steps.has <= question->number;
    }
    if (question->all_must_have) {
        question->answer = one_has_not ? JOB_STEP_END : JOB_STEP_ROWS;
        return one_has_not || all_have;
    }
    question->answer = one_has ? JOB_STEP_EMPTY : JOB_STEP_END;
    return one_has || all_have_not;
}

static tundish_status
ask_nodes(struct session *session, uint64_t number, bool all_must_have, enum job_step *ret_step)
{
    struct question question = { session, number, all_must_have, JOB_STEP_END };
    tundish_status status =
        link_wait(session->linked.link, is_answered, &question, -1, &session->stop);

    if (status == TUNDISH_OK)
        *ret_step = question.answer;
    return status;
}

static void
note_dealt(struct session *session, uint64_t dealt, bool ended)
{
    struct session_link *linked = &session->linked;

    pthread_mutex_lock(&linked->lock);
    linked->dealt = dealt;
    linked->ended = ended;
    /* Most steps need no post: another worker asks only when it has no rows left. */
    if (linked->asked || ended)
        post_steps(session);
    pthread_mutex_unlock(&linked->lock);
}

tundish_status
session_link_step(struct session *session, uint64_t number, uint32_t present,
                  enum job_step *ret_step)
{
    bool drop_partial = session->plan->stream->distribute.drop_remainder_step;
    bool has = drop_partial ? present == session->plan->replicas : present > 0;
    bool told;

    if (session->linked.link != NULL)
        session_marks_post(session);
    if (session->linked.link == NULL || steps_are_known(session)) {
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
    return ask_nodes(session, number, drop_partial, ret_step);
}

struct link_key
session_link_restart_key(const struct session *session, enum link_restart part)
{
    return (struct link_key){
        .topic = LINK_RESTART,
        .stream = session->linked.stream,
        .epoch = session->linked.epoch,
        .part = part,
    };
}

static void
post_restart(struct session *session, enum link_restart part, uint64_t number)
{
    struct link_key key = session_link_restart_key(session, part);

    link_post(session->linked.link, &key, &number, sizeof number);
}

tundish_status
session_link_end_epoch(struct session *session, uint64_t number)
{
    return session->linked.link != NULL ? session_marks_end(session, number) : TUNDISH_OK;
}

static uint64_t
latest_of_all(struct session *session, const struct link_key *key)
{
    uint64_t latest = 0;

    for (uint32_t rank = 0; rank < link_size(session->linked.link); rank++) {
        uint8_t *bytes;
        size_t byte_count;

        if (!link_find(session->linked.link, key, rank, &bytes, &byte_count))
            continue;
        if (byte_count >= sizeof latest && load_u64(bytes) > latest)
            latest = load_u64(bytes);
        free(bytes);
    }
    return latest;
}

/* First every worker must want the cut. Then each stops and posts its step, and the highest one is
 * the end: no worker can take back a step that it has dealt. */
tundish_status
session_link_cut(struct session *session, uint64_t number, bool *ret_cut)
{
    struct session_link *linked = &session->linked;
    struct link_key key = session_link_restart_key(session, LINK_RESTART_WANTED);
    tundish_status status;

    *ret_cut = true;
    if (linked->link == NULL)
        return TUNDISH_OK;
    if (linked->cut_epoch != linked->epoch + 1) {
        linked->cut_epoch = linked->epoch + 1;
        linked->cut_step = UINT64_MAX;
        post_restart(session, LINK_RESTART_WANTED, 1);
    }
    if (linked->cut_step == UINT64_MAX) {
        if (link_wait_for_all(linked->link, &key, 0, &session->stop) != TUNDISH_OK) {
            *ret_cut = false;
            return TUNDISH_OK;
        }
        post_restart(session, LINK_RESTART_STEP, number);
        key.part = LINK_RESTART_STEP;
        status = link_wait_for_all(linked->link, &key, -1, &session->stop);
        if (status != TUNDISH_OK)
            return status;
        linked->cut_step = latest_of_all(session, &key);
    }
    *ret_cut = number >= linked->cut_step;
    return TUNDISH_OK;
}

tundish_status
session_link_gather(struct session *session, uint64_t epoch, struct place *place)
{
    struct link *link = session->linked.link;
    struct link_key key = session_link_key(session, LINK_EPOCH_STATE, epoch);
    size_t own_bytes = place->state_count * sizeof *place->state;
    uint32_t workers = link != NULL ? link_size(link) : 1;
    uint64_t all[PLACE_STATE_MAX];
    bool same = true;
    tundish_status status;

    if (workers == 1 || place->worker_count == 0 || own_bytes == 0)
        return TUNDISH_OK;
    link_post(link, &key, place->state, own_bytes);
    status = link_wait_for_all(link, &key, -1, &session->stop);
    for (uint32_t rank = 0; status == TUNDISH_OK && rank < workers; rank++) {
        size_t byte_count = 0;
        uint8_t *bytes = NULL;

        if (!link_find(link, &key, rank, &bytes, &byte_count) || byte_count != own_bytes)
            status = tnd_fail(TUNDISH_E_PIPELINE, "the nodes' places differ in length");
        else if (memcmp(bytes, place->state, own_bytes) != 0)
            same = false;
        if (status == TUNDISH_OK && place->state_count * (rank + 1) <= PLACE_STATE_MAX)
            memcpy(all + (size_t)place->state_count * rank, bytes, own_bytes);
        free(bytes);
    }
    if (status != TUNDISH_OK || same)
        return status;
    if (place->state_count * workers > PLACE_STATE_MAX)
        return tnd_fail(TUNDISH_E_PIPELINE,
                        "a place stores at most %d numbers, and %u workers with %u each need more: "
                        "use auto_shard: DATA, or fewer random stages",
                        PLACE_STATE_MAX, workers, place->state_count);
    place->state_count *= workers;
    memcpy(place->state, all, place->state_count * sizeof *all);
    return TUNDISH_OK;
}

void
session_link_tell_error(struct session *session, uint64_t epoch, uint64_t step,
                        tundish_status status, const char *text)
{
    struct link_error error = { .epoch = epoch, .step = step, .status = status };
    struct link_key key = { .topic = LINK_ERROR, .stream = session->linked.stream };
    uint8_t bytes[sizeof error + TEXT_BYTES];
    size_t text_bytes = strnlen(text, TEXT_BYTES);

    if (session->linked.link == NULL || status == TUNDISH_E_PEER_LOST)
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
    pthread_mutex_lock(&session->linked.lock);
    if (!session->linked.mute)
        link_post(session->linked.link, &key, &death, sizeof death);
    pthread_mutex_unlock(&session->linked.lock);
}

void
session_link_mute(struct session *session, bool mute)
{
    pthread_mutex_lock(&session->linked.lock);
    session->linked.mute = mute;
    pthread_mutex_unlock(&session->linked.lock);
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

    pthread_mutex_lock(&linked->lock);
    if (key->epoch == linked->epoch && !linked->asked) {
        linked->asked = true;
        post_steps(session);
    }
    pthread_mutex_unlock(&linked->lock);
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
    session_fail(session, error.status < 0 ? (tundish_status)error.status : TUNDISH_E_DATA, text);
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
    session_fail(session, TUNDISH_E_PEER_LOST, text);
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
    if (session->linked.link == NULL || key->stream != session->linked.stream)
        return;
    link_name(session->linked.link, from, who, sizeof who);
    if (key->topic == LINK_STEPS)
        hear_steps(session, key);
    else if (key->topic == LINK_ERROR)
        hear_error(session, who, bytes);
    else if (key->topic == LINK_ORDER || key->topic == LINK_RESTART)
        session_marks_hear(session, who, key, bytes);
    else if (key->topic == LINK_DEATH)
        hear_death(session, who, key->part == DEATH_OF_GROUP, bytes);
}
