/* read_ahead.h - a few threads that go through files before they are needed.
 *
 * A job is taken a step at a time, in turn with the others, so that all of them come along.
 */
#ifndef SOURCE_FILES_READ_AHEAD_H
#define SOURCE_FILES_READ_AHEAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A thread's buffer: it stays in a core's nearer caches, as a larger one would not. */
enum { READ_AHEAD_BUFFER_BYTES = 256 << 10 };

struct read_ahead_job {
    struct read_ahead_job *next;                               /* in the queue */
    bool (*step)(struct read_ahead_job *job, uint8_t *buffer); /* true: there is more to do */
};

struct read_ahead {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct read_ahead_job *first, *last;
    bool is_closing;
    _Atomic uint32_t thread_count; /* 0: the thread that waits for a job takes its steps */
    uint32_t started_count;        /* of them: none before the first job */
    pthread_t *threads;
};

void read_ahead_open(struct read_ahead *ahead, uint32_t thread_count);
void read_ahead_close(struct read_ahead *ahead);

/* Take steps of this job as long as it says that there is more to do. It is not in the queue.
 * False: there is no thread, so nobody takes any. */
bool read_ahead_add(struct read_ahead *ahead, struct read_ahead_job *job);

#endif
