/* supply.h - where a reader's batches come from: its lane's slots in shared memory, or a GPU's
 * memory, to which libtundish_cuda copies them ahead of the program.
 */
#ifndef PYTHON_SUPPLY_H
#define PYTHON_SUPPLY_H

#include <stdbool.h>

#include "tundish/tundish_cuda.h"

/* A batch: what lends it knows it by `lent`. */
struct lent {
    const void *lent;
    tundish_batch facts;
};

/* `from` is what was opened. Calls are those of tundish.h, with its outcomes. */
struct supply {
    tundish_status (*next)(void *from, int64_t timeout_ns, struct lent *ret_lent);
    tundish_status (*tensor)(const void *lent, uint32_t index, tundish_tensor *ret_tensor);
    tundish_status (*keep)(void *from, const void *lent);
    void (*release)(void *from, const void *lent);
    tundish_status (*restart)(void *from);
    tundish_status (*place)(void *from, char *token, size_t capacity, size_t *ret_bytes);
    /* May one batch more be lent, while `held` of them are in their slots? */
    bool (*has_room)(void *from, uint32_t held);
    /* Batches that were kept stay, and `from` with them. */
    void (*close)(void *from);
    /* Nobody uses it any more. */
    void (*free)(void *from);
    const char *(*last_error)(void);
    /* Only on a GPU, else NULL: tundish_cuda_wait and tundish_cuda_used. */
    tundish_status (*wait)(void *from, const void *lent, tundish_cuda_stream stream);
    void (*used)(void *from, const void *lent, tundish_cuda_stream stream);
};

/* `from` is the tundish_reader itself. */
extern const struct supply supply_host;

/* Copy the reader's batches to this device from now on; the reader then belongs to *ret_from. On
 * failure it is still the caller's, and *ret_text says why. */
tundish_status supply_device(tundish_reader *reader, int device, const struct supply **ret_supply,
                             void **ret_from, const char **ret_text);

#endif
