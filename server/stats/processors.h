/* processors.h - the processor time that this process wanted and did not get, and the process that
 * had it.
 *
 * Three sources, all of Linux: the run-queue delay of each thread (/proc/self/task/TID/schedstat),
 * the quotas of its cgroup and of those above (cpu.stat of cgroup v2 and v1), and, while processors
 * are short, the processor time of every other process (/proc/PID/stat). A file that cannot be read
 * counts as 0.
 */
#ifndef STATS_PROCESSORS_H
#define STATS_PROCESSORS_H

#include <stdint.h>

struct processors;

struct processors_use {
    uint64_t run_delay_ns;  /* all threads, ready to run without a processor */
    uint64_t throttled_ns;  /* the longest that one of the cgroups was stopped by its quota */
    int64_t rival;          /* the other process that used most of late; 0: not looked for */
    char rival_command[16]; /* its name, as the kernel has it */
    uint64_t rival_ns;      /* processor time that it used a second */
};

struct processors *processors_open(void);             /* never NULL */
void processors_close(struct processors *processors); /* accepts NULL */

/* How long not to look at other processes, where a look took `cost_ns` of processor time: there may
 * be thousands. */
int64_t processors_pause_ns(int64_t cost_ns);

/* Look again. Run delay and throttling never fall. One thread at a time. */
void processors_look(struct processors *processors, struct processors_use *ret_use);

#endif
