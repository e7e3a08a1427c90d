/* sentence.h - parts of the diagnoses' sentences. For diagnosis.c, sharing.c,
 * stopping.c and waiting.c only. */
#ifndef TND_WATCH_SENTENCE_H
#define TND_WATCH_SENTENCE_H

#include "watch/diagnosis.h"
#include "watch/observation.h"

/* Room for a reader's name, and for a sentence's beginning that says how long it waits. */
enum { WATCH_NAME_BYTES = 200, WATCH_WAITING_BYTES = WATCH_NAME_BYTES + 40 };

/* A trainer that waits less than this share of its time is fed well enough. */
#define WATCH_WAIT_FINE 0.05

int watch_percent(double of_one); /* at most 100 */
const char *watch_node(const struct watch_snapshot *snapshot);

/* "replica 2 of group a on node b"; "replica 2 on node b waits 38% of its time", of the one that
 * waits most. */
void watch_name_reader(const struct watch_observation *observation, const struct watch_set *reader,
                       char text[WATCH_NAME_BYTES]);
void watch_name_waiting(const struct watch_observation *observation,
                        char text[WATCH_WAITING_BYTES]);

/* Fill in level, cause, advice and sentence; and the culprit, with how busy it is. */
void watch_say(struct watch_diagnosis *diagnosis, enum watch_level level, enum watch_cause cause,
               const char *advice, const char *format, ...) __attribute__((format(printf, 5, 6)));
void watch_name_culprit(struct watch_diagnosis *diagnosis, const char *culprit,
                        double share_of_time);
void watch_name_culprit_replica(struct watch_diagnosis *diagnosis, const struct watch_set *reader,
                                double share_of_time);

/* Has the trainer been silent for so long that it is taken to hang? */
bool watch_is_stuck(const struct watch_set *reader);

/* It waits for what other readers of the stream have, if it does. */
bool watch_say_sharing(const struct watch_observation *observation,
                       struct watch_diagnosis *diagnosis);

/* Why the trainer waits that waits most. */
void watch_say_waiting(const struct watch_observation *observation,
                       struct watch_diagnosis *diagnosis);

/* The event that the server waits for, or the part of it that works most; and the share of the time
 * in which its busiest thread works and does not wait for a processor, 0 .. 1. */
void watch_say_work(const struct watch_observation *observation, struct watch_diagnosis *diagnosis);
double watch_weigh_work(const struct watch_observation *observation);

/* The batches that a draining server still has to deliver of a stream, and to whom. */
void watch_say_stopping(const struct watch_observation *observation,
                        struct watch_diagnosis *diagnosis);

#endif
