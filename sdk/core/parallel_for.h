/* parallel_for.h - call a function for 0 to count - 1, on several threads. */
#ifndef TND_CORE_PARALLEL_FOR_H
#define TND_CORE_PARALLEL_FOR_H

#include <stdint.h>

#include "core/status.h"

/* Do `run` for 0 to count - 1. The status and the text are those of the first call that fails, as
 * with one thread alone; those after it may not have been run. */
tundish_status tnd_parallel_for(uint32_t count, uint32_t thread_count,
                                tundish_status (*run)(void *context, uint32_t number),
                                void *context);

#endif
