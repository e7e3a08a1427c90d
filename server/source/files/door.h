/* door.h - a file's descriptor, and its readers.
 *
 * A door is one atomic word that holds the descriptor and how many readers are inside. Only a
 * descriptor with nobody inside is ever closed, so that entering a door that is open is one
 * compare-and-swap, and no lock. All doors of a session share the descriptors that the process may
 * have: opening one may close another.
 */
#ifndef SOURCE_FILES_DOOR_H
#define SOURCE_FILES_DOOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All zeros: closed. */
struct door {
    _Atomic uint64_t word; /* readers inside << 32 | descriptor + 1, or 0 in the low half */
    uint32_t index;        /* in doors->open, while it is there */
};

struct doors {
    pthread_mutex_t lock; /* of all below */
    struct door **open;
    uint32_t count, limit;
    uint32_t hand; /* the next door to be closed, if nobody is inside */
};

/* As many descriptors as the process may have, less those that others need. */
void doors_open(struct doors *doors);
void doors_close(struct doors *doors); /* every door is closed */

/* Enter if it is open. */
bool door_enter(struct door *door, int *ret_descriptor);
void door_leave(struct door *door);

/* Open it with this descriptor, which becomes the door's, and enter. If another reader was faster,
 * the descriptor is closed and the other's entered. */
void door_open(struct doors *doors, struct door *door, int descriptor, int *ret_descriptor);

/* Nobody is inside, or will be. */
void door_close(struct doors *doors, struct door *door);

#endif
