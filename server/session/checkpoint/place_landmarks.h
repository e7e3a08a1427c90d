/* place_landmarks.h - a stream's landmarks (order/landmarks.h), kept in the cache folder.
 *
 * Each pipeline has a file of them, named by all that the checks of a place compare. So a resume
 * at any depth decides few rows again. A damaged file is ignored.
 */
#ifndef SESSION_CHECKPOINT_PLACE_LANDMARKS_H
#define SESSION_CHECKPOINT_PLACE_LANDMARKS_H

#include "order/landmarks.h"
#include "session/checkpoint/place_files.h"

struct place_landmarks;

/* `files`: the plan's, or NULL: they are looked for. Returns NULL if the stream notes none, or a
 * file of it is missing. */
struct place_landmarks *place_landmarks_open(const struct plan *plan,
                                             const struct place_files *files);

/* Take the lists out of a file's bytes, up to the first that no pass can have left; the caller
 * closes them. */
void place_landmarks_take(struct order_landmarks *all, const uint8_t *bytes, size_t left);

/* For dealer_options. Accepts NULL. */
struct order_landmarks *place_landmarks_all(struct place_landmarks *landmarks);

/* Write them, if there are enough new ones, and the last time was long ago: it may wait for the
 * disk. The thread of the order; accepts NULL. */
void place_landmarks_keep(struct place_landmarks *landmarks);

/* Write those that are new, if there are enough. Accepts NULL. */
void place_landmarks_close(struct place_landmarks *landmarks);

#endif
