/* place_contents.h - the content of a place besides epoch and step: enough to continue there.
 *
 * The bytes are the server's own; trainers keep them and hand them back, so they are as hostile as
 * anything from a trainer. Little-endian, versioned.
 */
#ifndef SESSION_CHECKPOINT_PLACE_CONTENTS_H
#define SESSION_CHECKPOINT_PLACE_CONTENTS_H

#include <stddef.h>

#include "session/checkpoint/place_files.h"

enum { PLACE_STATE_MAX = 256, PLACE_BYTES_MAX = 104 + 8 * PLACE_STATE_MAX };

/* Among how many trainers the rows of a step are split, and the first step that was split so:
 * before it, rows of the same step went to other trainers. */
struct place_split {
    uint32_t workers, replicas; /* workers 0: unknown, an older server saved it */
    uint64_t epoch, step;
};

struct place {
    uint64_t fingerprint; /* place_fingerprint of the plan it was taken in */
    uint64_t root_seed;
    uint32_t worker_count; /* 0: global batches do not depend on it */
    uint32_t replicas;     /* 0: nor on this. With `carry` 1 or 2: one in all, or several */
    struct place_groups files;
    struct place_split split;
    uint64_t code; /* place_code of the plan; 0: there was none, or it is not known */
    uint32_t state_count;
    uint64_t state[PLACE_STATE_MAX]; /* dealer_epoch_state */
};

/* A hash of what decides the batches, but for files: stages, their parameters, seeds, the version
 * of the order's rules. Not of replicas, delivery, folders or times. */
uint64_t place_fingerprint(const struct plan *plan);

/* A place of this plan, at an epoch whose state is still to be put in. */
void place_ready(const struct plan *plan, const struct place_files *files, struct place *ret_place);

/* How many bytes it takes, PLACE_BYTES_MAX at most; and the bytes. */
size_t place_bytes(const struct place *place);
void place_write(const struct place *place, uint8_t *bytes);

/* Read a place from bytes. E_PLACE if they are not a place. */
tundish_status place_read(const uint8_t *bytes, size_t byte_count, struct place *ret_place);

/* May this plan continue at the place? E_PLACE says why not. The root seed is not compared. */
tundish_status place_check(const struct place *place, const struct plan *plan,
                           const struct place_files *files);

/* The part of a place's state that is this worker's: where batches depend on the number of workers,
 * it has that of each, `own` words, one after the other. */
void place_own_state(const struct plan *plan, size_t own, const uint64_t **words, size_t *count);

#endif
