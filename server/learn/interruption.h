/* interruption.h - being asked to end while something is being learned.
 *
 * Learning takes hours, and is asked to end at any point of them. SIGINT, SIGTERM and SIGHUP leave
 * no file half done, say that nothing that was learned may be used, and end the process as they
 * would have.
 */
#ifndef LEARN_INTERRUPTION_H
#define LEARN_INTERRUPTION_H

#include "learn/results/artifact_folder.h"

/* From now until interruption_end this is the folder that is learned into. A thread hears the
 * signals, unless they are blocked here already: then another does, and calls interruption_take. */
tundish_status interruption_begin(struct artifact_folder *folder);
void interruption_end(void);

/* The signal has come. Returns only if nothing is being learned. */
void interruption_take(int number);

#endif
