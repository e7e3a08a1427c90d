/* tundish.h - read training batches from a feed server. */
#ifndef TUNDISH_H
#define TUNDISH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUNDISH_API __attribute__((visibility("default")))

/* Grouped by what the caller can do about it. Values are fixed for good. */
typedef enum tundish_status {
    TUNDISH_OK              = 0,
    TUNDISH_END             = 1,   /* the epoch is over; the next tundish_next starts another */
    TUNDISH_END_OF_STREAM   = 2,   /* deliver.epochs are over, for good */
    TUNDISH_NO_VALUE        = 3,   /* tundish_next_optional: this replica's epoch is over */
    TUNDISH_STOPPED         = 4,   /* the server drained and ended on request */
    TUNDISH_E_TIMEOUT       = -1,  /* try again: nothing is broken */
    TUNDISH_E_SERVER_GONE   = -20, /* reopen: the server died or restarted */
    TUNDISH_E_PEER_LOST     = -21, /* reopen at a place: another replica of the group died */
    TUNDISH_E_DETACHED      = -22, /* reopen: this group was too slow and was cut off */
    TUNDISH_E_DATA          = -30, /* fix the input: it is bad at this step */
    TUNDISH_E_ARGUMENT      = -40, /* fix the program */
    TUNDISH_E_LAYOUT        = -41, /* fix the install: SDK and server disagree on layout */
    TUNDISH_E_PIPELINE      = -42, /* fix the pipeline file */
    TUNDISH_E_PLACE         = -43, /* the place belongs to another pipeline, or other files */
    TUNDISH_E_SYSTEM        = -60, /* give up: the kernel refused; errno is in the text */
    TUNDISH_E_CORRUPT       = -61, /* give up: shared memory failed a check */
    TUNDISH_E_MEMORY        = -62  /* give up: no memory, or more than the configured limit */
} tundish_status;

/* Numbers are stored in slots and places, so none is ever reused. */
typedef enum tundish_dtype {
    TUNDISH_BOOL     = 1,
    TUNDISH_UINT8    = 2,
    TUNDISH_INT8     = 3,
    TUNDISH_UINT16   = 4,
    TUNDISH_INT16    = 5,
    TUNDISH_UINT32   = 6,
    TUNDISH_INT32    = 7,
    TUNDISH_UINT64   = 8,
    TUNDISH_INT64    = 9,
    TUNDISH_FLOAT16  = 10,
    TUNDISH_BFLOAT16 = 11,
    TUNDISH_FLOAT32  = 12,
    TUNDISH_FLOAT64  = 13,
    TUNDISH_STRING   = 14
} tundish_dtype;

/* How a column's values are laid out. Stored in slots. */
typedef enum tundish_kind {
    TUNDISH_DENSE  = 1,
    TUNDISH_RAGGED = 2,
    TUNDISH_SPARSE = 3
} tundish_kind;

#ifdef __cplusplus
}
#endif

#endif
