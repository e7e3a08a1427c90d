/* python_team.h - the interpreters of all functions of one module: each of them has imported it,
 * and does the jobs of several pools (python_pool.h), one after the other.
 */
#ifndef WORKERS_PYTHON_TEAM_H
#define WORKERS_PYTHON_TEAM_H

#include "workers/python_worker.h"

struct python_team;

/* The team for such a job: that of the same module, interpreter, folder, memory and limit. It has
 * no interpreter before the first is taken. One thread at a time opens and closes teams. */
struct python_team *python_team_open(const struct python_job *job, uint32_t limit);

/* No thread asks for the job any more: interpreters drop it. With the last of its jobs the team
 * ends. */
void python_team_close(struct python_team *team, uint64_t job);

/* The job has another number, for its text is another one. Returns that. */
uint64_t python_team_renew(struct python_team *team, uint64_t job, uint64_t number);

/* Take an interpreter that has the job. Waits while all of them are asked; one more is started
 * where the limit allows it. `turn`: as python_pools_turn says. E_DATA: the job cannot be given.
 * STOPPED when *stop (may be NULL) is not 0. */
tundish_status python_team_take(struct python_team *team, const struct python_job *job, int turn,
                                const _Atomic int *stop, struct python_worker *ret_worker);

/* As above, but only one that is idle and has the job. */
bool python_team_try(struct python_team *team, const struct python_job *job, int turn,
                     struct python_worker *ret_worker);

void python_team_give_back(struct python_team *team, struct python_worker *worker);

/* Stop one instead. */
void python_team_end(struct python_team *team, struct python_worker *worker);

struct python_team_figures {
    uint32_t workers;
    uint64_t memory_bytes; /* as of the last answers, divided by the team's jobs */
};
void python_team_show(struct python_team *team, struct python_team_figures *ret_figures);

#endif
