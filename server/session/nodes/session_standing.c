/* session_standing.c - ask the other nodes where their replicas stand, and answer them. */
#include "session/nodes/session_standing.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "session/session_private.h"

/* The parts of keys: one for questions, and three for the answers to each. */
enum answer { ANSWER_UNKNOWN, ANSWER_LOWEST, ANSWER_HIGHEST, ANSWER_COUNT };

enum { ANSWERS_KEPT = 8 };

/* Values that are compared by their bytes, so big-endian. */
struct question {
    uint64_t number;
    char group[TND_NAME_BYTES];
};

struct stand {
    uint64_t epoch, step;
};

static struct link_key
standing_key(const struct session *session, const char *group, uint64_t part)
{
    return (struct link_key){ .topic = LINK_STANDING,
                              .stream = session->linked.stream,
                              .epoch = tnd_hash_farm(group, strlen(group)),
                              .part = part ^ atomic_load(&session->linked.restart)
                                                 << RESTART_SHIFT };
}

static struct link_key
answer_key(const struct session *session, const struct question *question, enum answer answer)
{
    return standing_key(session, question->group,
                        be64toh(question->number) * ANSWER_COUNT + (uint64_t)answer + 1);
}

static bool
find(struct session *session, const struct link_key *key, void *value, size_t byte_count)
{
    struct link_total total = { 0 };
    bool found = link_find_total(session->linked.link, key, &total);

    found = found && total.byte_count == byte_count;
    if (found)
        memcpy(value, total.bytes, byte_count);
    free(total.bytes);
    return found;
}

static void
give(struct session *session, const struct link_key *key, enum link_merge merge, bool is_running,
     const void *value, size_t byte_count)
{
    must_in_debug(session->linked.link != NULL);
    link_tally(session->linked.link, key,
               &(struct link_tally){ merge, is_running, value, byte_count });
}

/* If the group is not known here, the answer says only that. */
static void
answer(struct session *session, const struct question *question)
{
    struct feed_standing standing = { 0 };
    struct stand lowest, highest;
    struct question old = *question;
    struct link_key key = answer_key(session, question, ANSWER_UNKNOWN);
    uint8_t is_unknown;

    feed_find_standing(session->feed, question->group, &standing);
    is_unknown = !standing.is_known;
    lowest = (struct stand){ htobe64(standing.lowest_epoch), htobe64(standing.lowest_step) };
    highest = (struct stand){ htobe64(standing.highest_epoch), htobe64(standing.highest_step) };
    give(session, &key, LINK_ANY, false, &is_unknown, sizeof is_unknown);
    key = answer_key(session, question, ANSWER_LOWEST);
    give(session, &key, LINK_LOWEST, false, &lowest, sizeof lowest);
    key = answer_key(session, question, ANSWER_HIGHEST);
    give(session, &key, LINK_HIGHEST, false, &highest, sizeof highest);
    if (be64toh(question->number) <= ANSWERS_KEPT)
        return;
    old.number = htobe64(be64toh(question->number) - ANSWERS_KEPT);
    for (int i = 0; i < ANSWER_COUNT; i++) {
        key = answer_key(session, &old, (enum answer)i);
        link_forget(session->linked.link, &key);
    }
}

void
session_standing_hear(struct session *session, const struct link_key *key, struct byte_view bytes)
{
    struct question question;
    struct link_key asked;

    if (session->linked.link == NULL || bytes.size != sizeof question)
        return;
    memcpy(&question, bytes.data, sizeof question);
    if (question.group[TND_NAME_BYTES - 1] != '\0')
        return;
    asked = standing_key(session, question.group, 0);
    if (asked.epoch == key->epoch && asked.part == key->part)
        answer(session, &question);
}

static void
ask(struct session *session, const char *group, struct question *ret_question)
{
    struct link_key key = standing_key(session, group, 0);
    struct question question = { 0 }, last = { 0 };
    uint64_t *asked = &session->linked.standing_asked;

    if (find(session, &key, &last, sizeof last) && be64toh(last.number) > *asked)
        *asked = be64toh(last.number);
    question.number = htobe64(++*asked);
    snprintf(question.group, sizeof question.group, "%s", group);
    give(session, &key, LINK_HIGHEST, true, &question, sizeof question);
    *ret_question = question;
}

static bool
find_answers(struct session *session, const struct question *question,
             struct feed_standing *ret_standing)
{
    struct link_key unknown = answer_key(session, question, ANSWER_UNKNOWN),
                    low = answer_key(session, question, ANSWER_LOWEST),
                    high = answer_key(session, question, ANSWER_HIGHEST);
    struct stand lowest, highest;
    uint8_t is_unknown;

    if (!find(session, &unknown, &is_unknown, sizeof is_unknown) ||
        !find(session, &low, &lowest, sizeof lowest) ||
        !find(session, &high, &highest, sizeof highest))
        return false;
    *ret_standing =
        (struct feed_standing){ !is_unknown, be64toh(lowest.epoch), be64toh(lowest.step),
                                be64toh(highest.epoch), be64toh(highest.step) };
    return true;
}

bool
session_standing_find(struct session *session, const char *group, uint64_t *number,
                      struct feed_standing *ret_standing)
{
    struct question question = { .number = htobe64(*number) };

    if (session->linked.link == NULL) {
        feed_find_standing(session->feed, group, ret_standing);
        ret_standing->is_known &= session->linked.job == NULL && session->options.shards == NULL;
        return true;
    }
    snprintf(question.group, sizeof question.group, "%s", group);
    if (*number == 0)
        ask(session, group, &question);
    *number = be64toh(question.number);
    return find_answers(session, &question, ret_standing);
}
