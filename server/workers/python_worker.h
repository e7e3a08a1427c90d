/* python_worker.h - one interpreter that runs the user's function (sdk/python/tundish/worker.py).
 *
 * It has one arena, memory that both sides map, which only grows; requests and answers lie in it,
 * and a socket says when. It is started by exec under a guard (child.h), so that whatever ends this
 * process ends it, too, and all that it has started; for a warm job it is a fork of one that was.
 */
#ifndef WORKERS_PYTHON_WORKER_H
#define WORKERS_PYTHON_WORKER_H

#include <stdatomic.h>

#include "workers/child.h"
#include "workers/python_wire.h"

/* The work of interpreters. One may have several, each with a number of its own. */
struct python_job {
    uint64_t number;       /* of no other job of this process */
    const char *name;      /* "augment:train", for messages */
    const char *python;    /* the interpreter, found by PATH */
    const char *folder;    /* to run in, where modules are looked for first */
    const char *text;      /* JSON, for worker.py */
    int64_t timeout_ns;    /* of one call */
    uint64_t memory_limit; /* of one interpreter, in bytes; 0: none */
    bool is_warm;          /* interpreters are forks of one that has it */
};

/* A copy that is freed by close. */
void python_job_copy(const struct python_job *job, struct python_job *ret_job);
void python_job_close(struct python_job *job);

/* A job that an interpreter has, and what it said of it. */
struct python_hello {
    uint64_t number;         /* of the job */
    uint64_t digest;         /* of the source of the user's module */
    uint64_t length;         /* of the data set that it has made; 0 for a function */
    struct schema described; /* the output, where the function's annotation says it */
};

/* All zeros is one that was never started. */
struct python_worker {
    const struct python_job *job; /* that it is asked for, while it is */
    struct child child;
    int socket, arena;
    uint8_t *memory;
    size_t mapped;
    struct python_hello *known; /* the jobs that it has */
    size_t known_count;
    int turn;               /* python_pools_turn; 0: it had none yet */
    pid_t process;          /* as it says itself */
    uint64_t cpu_ns;        /* processor time so far, and the memory */
    uint64_t memory_bytes;  /* that is its own: both as of the last look */
    uint64_t counted_bytes; /* of its memory: the team's */
    int64_t looked_ns;      /* at the memory */
};

/* Start one, give it the job, and wait until it has imported the user's module. `forker`: one that
 * has a warm job, and forks it; NULL. One of a warm job without a forker is a forker, and makes
 * nothing. E_DATA: it could not, and tnd_error_text says why. STOPPED when *stop (may be NULL) is
 * not 0. */
tundish_status python_worker_start(const struct python_job *job, const struct python_worker *forker,
                                   const _Atomic int *stop, struct python_worker *ret_worker);

/* Give it one more job. E_DATA: it refuses that, or (*ret_lives false) has died of it. */
tundish_status python_worker_add(struct python_worker *worker, const struct python_job *job,
                                 const _Atomic int *stop, bool *ret_lives);

/* The job with this number. NULL: it does not have it. */
struct python_hello *python_worker_find(const struct python_worker *worker, uint64_t number);

/* Have it drop the job at this index of `known`. */
void python_worker_drop(struct python_worker *worker, size_t index);

/* The outcome of a question. */
enum python_end {
    PYTHON_ANSWERED,
    PYTHON_DIED,  /* so its text says; stop it */
    PYTHON_FAILED /* *ret_status and its text say why; stop it */
};

struct python_answer {
    const uint8_t *bytes; /* in shared memory, until the next question */
    size_t size;
    int64_t element; /* where it died, if it says; -1 */
    tundish_status status;
};

/* Ask for a job that it has. `tries`: its output is not known yet, and the answer describes it
 * (python_wire_read_columns), or the elements cannot be made: FAILED, E_DATA. */
enum python_end python_worker_ask(struct python_worker *worker, const struct python_job *job,
                                  const struct python_request *request, bool tries,
                                  const _Atomic int *stop, struct python_answer *ret_answer);

/* Look at its processor time and, now and then, at its memory. Has it more than the limit? Then
 * tnd_error_text says so. */
bool python_worker_is_too_large(struct python_worker *worker);

void python_worker_stop(struct python_worker *worker);

#endif
