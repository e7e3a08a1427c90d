/* log_writer.c - a queue of bytes for each end, and the one thread that a full pipe may block. */
#include "core/log_writer.h"
#include "core/read_write.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_BYTES = 64 << 10, PART_BYTES = 4096, PATIENCE_S = 1 };

#define WRITER_INIT(to)                                                                            \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER,                     \
        .written = PTHREAD_COND_INITIALIZER, .descriptor = (to)                                    \
    }

static struct log_writer {
    int descriptor; /* -1: none */
    pthread_mutex_t lock;
    pthread_cond_t filled, written;
    log_writer_notice notice; /* NULL: no thread runs */
    bool writes;              /* the thread has taken something that is not out yet */
    size_t begin, used;
    uint64_t parts;   /* written, ever */
    uint64_t dropped; /* after the lines that wait; later lines too, until this is logged */
    char queue[QUEUE_BYTES];
} writers[LOG_WRITER_ENDS] = {
    [LOG_WRITER_OWN] = WRITER_INIT(STDERR_FILENO),
    [LOG_WRITER_STARTER] = WRITER_INIT(-1),
};

/* If standard error is closed, there is nowhere else to report it. */
static void
write_out(const struct log_writer *writer, const char *bytes, size_t count)
{
    (void)tnd_write(writer->descriptor, bytes, count);
}

/* The lock is held. Returns how many bytes of `part` are to be written. */
static size_t
take_part(struct log_writer *writer, char part[PART_BYTES])
{
    size_t count = writer->used < PART_BYTES ? writer->used : PART_BYTES;

    /* Copied, so that the queue has room again while the part is being written. */
    for (size_t i = 0; i < count; i++)
        part[i] = writer->queue[(writer->begin + i) % QUEUE_BYTES];
    writer->begin = (writer->begin + count) % QUEUE_BYTES;
    writer->used -= count;
    return count;
}

static void
write_notice(const struct log_writer *writer, uint64_t dropped)
{
    size_t bytes = 0;
    char *line = writer->notice(dropped, &bytes);

    if (line != NULL)
        write_out(writer, line, bytes);
    free(line);
}

static void *
write_all(void *own)
{
    struct log_writer *writer = own;
    char part[PART_BYTES];

    pthread_mutex_lock(&writer->lock);
    for (;;) {
        size_t count = take_part(writer, part);
        uint64_t dropped = count == 0 ? writer->dropped : 0;

        if (count == 0 && dropped == 0) {
            pthread_cond_wait(&writer->filled, &writer->lock);
            continue;
        }
        if (dropped > 0)
            writer->dropped = 0;
        /* Without the lock: a write that blocks must not block the threads that log. */
        writer->writes = true;
        pthread_mutex_unlock(&writer->lock);
        write_out(writer, part, count);
        if (dropped > 0)
            write_notice(writer, dropped);
        pthread_mutex_lock(&writer->lock);
        writer->writes = false;
        writer->parts++;
        pthread_cond_broadcast(&writer->written);
    }
    return NULL;
}

void
log_writer_start(enum log_writer_end end, int descriptor, log_writer_notice notice)
{
    struct log_writer *writer = &writers[end];
    pthread_t thread;
    sigset_t all, before;

    sigfillset(&all);
    /* The thread inherits this: signals are for others. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&writer->lock);
    writer->descriptor = descriptor;
    /* Without a thread lines are written by the threads that log, as before the start. */
    if (pthread_create(&thread, NULL, write_all, writer) == 0) {
        pthread_detach(thread);
        writer->notice = notice;
    }
    pthread_mutex_unlock(&writer->lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void
log_writer_put(enum log_writer_end end, const char *line, size_t bytes)
{
    struct log_writer *writer = &writers[end];
    bool runs;

    pthread_mutex_lock(&writer->lock);
    runs = writer->notice != NULL;
    /* Once a line is dropped, later ones are too until the notice is written: it then stands where
     * they are missing. */
    if (runs && (writer->dropped > 0 || bytes > QUEUE_BYTES - writer->used)) {
        writer->dropped++;
    } else if (runs) {
        for (size_t i = 0; i < bytes; i++)
            writer->queue[(writer->begin + writer->used + i) % QUEUE_BYTES] = line[i];
        writer->used += bytes;
    }
    pthread_cond_signal(&writer->filled);
    pthread_mutex_unlock(&writer->lock);
    if (!runs && writer->descriptor >= 0)
        write_out(writer, line, bytes);
}

static void
flush(struct log_writer *writer)
{
    struct timespec until;
    uint64_t parts;

    pthread_mutex_lock(&writer->lock);
    while (writer->writes || (writer->notice != NULL && writer->used + writer->dropped > 0)) {
        /* Give up only if nothing was written for that long: then nobody reads. */
        parts = writer->parts;
        /* The static condition waits by the real-time clock. A clock that jumps only makes this
         * wait shorter or longer. */
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += PATIENCE_S;
        if (pthread_cond_timedwait(&writer->written, &writer->lock, &until) == ETIMEDOUT &&
            parts == writer->parts)
            break;
    }
    pthread_mutex_unlock(&writer->lock);
}

void
log_writer_flush(void)
{
    for (int end = 0; end < LOG_WRITER_ENDS; end++)
        flush(&writers[end]);
}
