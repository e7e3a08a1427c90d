/* memory.h - the memory that the fibers of node 0 hold. */
#ifndef SIMULATION_MEMORY_H
#define SIMULATION_MEMORY_H

#include <stddef.h>

size_t memory_of_first_most(void); /* 0 under AddressSanitizer */

#endif
