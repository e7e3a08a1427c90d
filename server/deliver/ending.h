/* ending.h - is a process on its way out?
 *
 * The kernel frees a dead process's memory first, at about 0.3 ms a MiB. Only then does it close
 * the sockets and signal the pidfd, which takes seconds for a large trainer. The flags of its
 * threads show much earlier that it will never run again.
 */
#ifndef DELIVER_ENDING_H
#define DELIVER_ENDING_H

#include <stdbool.h>

/* Will no thread of this process ever run again? Also false where the kernel does not say. One
 * system call while the process lives. */
bool ending_has_begun(int pid);

#endif
