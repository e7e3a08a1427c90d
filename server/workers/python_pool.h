/* python_pool.h - the interpreters that run one function: as many as are needed, up to a limit, for
 * all streams of this process that name the same one.
 *
 * A thread that asks holds one interpreter and no lock. One that dies has its elements tried again
 * by another; an element at which two have died is bad.
 */
#ifndef WORKERS_PYTHON_POOL_H
#define WORKERS_PYTHON_POOL_H

#include "workers/python_worker.h"

struct python_pool;

/* The pool of this job, which is copied. The first of its interpreters is started, and has imported
 * the module when this returns OK; else tnd_error_text says why not. */
tundish_status python_pool_open(const struct python_job *job, uint32_t worker_limit,
                                struct python_pool **ret_pool);
/* Items of the data set that its first interpreter has made. */
uint64_t python_pool_length(const struct python_pool *pool);

/* The same on every machine that has the same source of the user's module. */
uint64_t python_pool_digest(const struct python_pool *pool);

/* The columns of its output, once it has learned them: from the function's annotation, or by
 * python_pool_learn, which has it called for the elements of a request that are thrown away. NULL:
 * they are not known, or were given. E_DATA: these elements cannot be made. */
const struct schema *python_pool_columns(const struct python_pool *pool);
tundish_status python_pool_learn(struct python_pool *pool, const struct python_request *request);

void python_pool_close(struct python_pool *pool); /* may be NULL */

/* Have the function called for the elements of a request: columns[i] of the output is its output i,
 * and elements that it does not make are frame_reject's. Waits while all interpreters are asked.
 * Any thread. STOPPED when *stop (may be NULL) is not 0. */
tundish_status python_pool_ask(struct python_pool *pool, const struct python_request *request,
                               const _Atomic int *stop, const uint32_t *columns,
                               uint32_t column_count, struct frame *output);

/* From now on ask the interpreters of one turn, 1 or 2, of which each pool then has one; 0: any.
 * For a process with one thread that asks, which sees by it that two give the same. */
void python_pools_turn(int turn);

/* The work of a pool's interpreters so far. */
struct python_figures {
    const char *name; /* "augment:train" */
    uint32_t workers, limit;
    uint64_t rows, restarts;
    uint64_t busy_ns;              /* over all interpreters, calls under way included */
    uint64_t wait_ns;              /* of threads, for an interpreter that is free */
    uint64_t cpu_ns, memory_bytes; /* as of the last answers; the memory is their own, not shared */
};

/* Show each pool of this process, by a number that no other pool has had. False: none is shown now,
 * since one is being opened. Any thread. */
typedef void python_show(void *context, uint64_t pool, const struct python_figures *figures);
bool python_pools_show(python_show *show, void *context);

#endif
