/* process_limits.h - limits of this process (ulimit) under which it could only be killed. */
#ifndef COMMANDS_PROCESS_LIMITS_H
#define COMMANDS_PROCESS_LIMITS_H

#include <stdbool.h>

/* Is there stack enough? If not, standard error has a sentence. Also lets a write above the limit
 * for files fail with an error, where the kernel would end the process without a word. */
bool process_limits_suffice(void);

#endif
