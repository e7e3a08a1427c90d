/* left_over.h - what tests of a program made in /tmp is removed even if the program is killed.
 *
 * meson.build links mkdtemp and mkstemp (mkstemp64, where offsets have 64 bits) to functions that
 * note the path in shared memory. A process in a session of its own, which no signal to the tests
 * reaches, waits until the program and all that it forked have ended, and removes what is still
 * there. */
#ifndef UNIT_LEFT_OVER_H
#define UNIT_LEFT_OVER_H

/* Start that process: once, before the first test. */
void left_over_remove_at_end(void);

#endif
