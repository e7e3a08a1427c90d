/* parallel_for.h - call a function for 0 to count - 1, on several threads. */
#ifndef TND_CORE_PARALLEL_FOR_H
#define TND_CORE_PARALLEL_FOR_H

#include <stdint.h>

#include "core/status.h"

/* Do `run` for 0 to count - 1. Of those that fail, the first one's status and text are given, as
 * one thread alone would have it; those after it may not have been run. */
tundish_status tnd_parallel_for(uint32_t count, uint32_t thread_count,
                                tundish_status (*run)(void *context, uint32_t number),
                                void *context);

#endif
