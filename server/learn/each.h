/* each.h - the same for each of some things that have nothing to do with each other, by threads. */
#ifndef LEARN_EACH_H
#define LEARN_EACH_H

#include <stdint.h>

#include "core/status.h"

/* Do `run` for 0 to count - 1. Of those that fail, the first one's status and text are given, as
 * one thread alone would have it; those behind it may not have been run. */
tundish_status each_run(uint32_t count, uint32_t thread_count,
                        tundish_status (*run)(void *context, uint32_t number), void *context);

#endif
