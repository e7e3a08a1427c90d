/* cluster_channel.c - a channel between nodes of one process, loaded as the module of MPI is.
 *
 * $OMPI_COMM_WORLD_SIZE links that are opened one after the other are a job. $CLUSTER_REFUSES is
 * what MPI says when it does not let a node join.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/node_channel.h"

enum { UNDER_WAY = 64, SIZE_MAX_NODES = 16 };

struct letter {
    struct letter *next;
    size_t byte_count;
    uint8_t bytes[];
};

struct letters {
    struct letter *first, **last;
    uint32_t count;
};

struct job {
    uint32_t size, joined, closed;
    bool is_cut[SIZE_MAX_NODES], holds[SIZE_MAX_NODES];
    uint32_t held[SIZE_MAX_NODES];                          /* senders to each */
    struct letters letters[SIZE_MAX_NODES][SIZE_MAX_NODES]; /* from, to */
};

struct end {
    struct job *job;
    uint32_t rank;
    struct letter *received;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static pthread_cond_t let_go = PTHREAD_COND_INITIALIZER;
static pthread_cond_t is_held = PTHREAD_COND_INITIALIZER;
static struct job *joining, *latest;

static struct job *
make_job(void)
{
    struct job *job = calloc(1, sizeof *job);

    job->size = (uint32_t)strtoul(getenv("OMPI_COMM_WORLD_SIZE"), NULL, 10);
    for (uint32_t from = 0; from < job->size; from++)
        for (uint32_t to = 0; to < job->size; to++)
            job->letters[from][to].last = &job->letters[from][to].first;
    return job;
}

static void *
cluster_channel_open(uint32_t *ret_rank, uint32_t *ret_size, char ret_text[CHANNEL_TEXT_BYTES])
{
    const char *refusal = getenv("CLUSTER_REFUSES");
    struct end *end;

    if (refusal != NULL) {
        snprintf(ret_text, CHANNEL_TEXT_BYTES, "%s", refusal);
        return NULL;
    }
    end = calloc(1, sizeof *end);
    pthread_mutex_lock(&lock);
    if (joining == NULL)
        joining = latest = make_job();
    end->job = joining;
    end->rank = joining->joined++;
    if (joining->joined == joining->size)
        joining = NULL;
    *ret_rank = end->rank;
    *ret_size = end->job->size;
    pthread_mutex_unlock(&lock);
    return end;
}

static bool
cluster_channel_send(void *state, uint32_t to, const void *bytes, size_t byte_count)
{
    struct end *end = state;
    struct letters *letters = &end->job->letters[end->rank][to];
    struct letter *letter;
    bool has_room;

    pthread_mutex_lock(&lock);
    end->job->held[to]++;
    pthread_cond_broadcast(&is_held);
    while (end->job->holds[to])
        pthread_cond_wait(&let_go, &lock);
    end->job->held[to]--;
    has_room = letters->count < UNDER_WAY;
    if (has_room && !end->job->is_cut[end->rank] && !end->job->is_cut[to]) {
        letter = calloc(1, sizeof *letter + byte_count);
        letter->byte_count = byte_count;
        memcpy(letter->bytes, bytes, byte_count);
        *letters->last = letter;
        letters->last = &letter->next;
        letters->count++;
    }
    pthread_mutex_unlock(&lock);
    return has_room;
}

static struct letter *
take(struct letters *letters)
{
    struct letter *letter = letters->first;

    if (letter == NULL)
        return NULL;
    letters->first = letter->next;
    if (letters->first == NULL)
        letters->last = &letters->first;
    letters->count--;
    return letter;
}

static size_t
cluster_channel_receive(void *state, uint32_t *ret_from, const void **ret_bytes)
{
    struct end *end = state;

    free(end->received);
    end->received = NULL;
    pthread_mutex_lock(&lock);
    for (uint32_t from = 0; end->received == NULL && from < end->job->size; from++) {
        *ret_from = from;
        end->received = take(&end->job->letters[from][end->rank]);
    }
    pthread_mutex_unlock(&lock);
    if (end->received == NULL)
        return 0;
    *ret_bytes = end->received->bytes;
    return end->received->byte_count;
}

static void
free_job(struct job *job)
{
    struct letter *letter;

    for (uint32_t from = 0; from < job->size; from++)
        for (uint32_t to = 0; to < job->size; to++)
            while ((letter = take(&job->letters[from][to])) != NULL)
                free(letter);
    if (latest == job)
        latest = NULL;
    free(job);
}

static void
cluster_channel_close(void *state, bool in_order)
{
    struct end *end = state;

    (void)in_order;
    pthread_mutex_lock(&lock);
    if (++end->job->closed == end->job->size)
        free_job(end->job);
    pthread_mutex_unlock(&lock);
    free(end->received);
    free(end);
}

/* For cluster.c, which finds them by their names. */
__attribute__((visibility("default"))) void cluster_channel_cut(uint32_t rank);
__attribute__((visibility("default"))) void cluster_channel_hold(uint32_t rank);
__attribute__((visibility("default"))) void cluster_channel_await(uint32_t rank);
__attribute__((visibility("default"))) void cluster_channel_let_go(uint32_t rank);

void
cluster_channel_cut(uint32_t rank)
{
    pthread_mutex_lock(&lock);
    latest->is_cut[rank] = true;
    for (uint32_t i = 0; i < latest->size; i++) {
        struct letter *letter;

        while ((letter = take(&latest->letters[rank][i])) != NULL)
            free(letter);
        while ((letter = take(&latest->letters[i][rank])) != NULL)
            free(letter);
    }
    pthread_mutex_unlock(&lock);
}

void
cluster_channel_hold(uint32_t rank)
{
    pthread_mutex_lock(&lock);
    latest->holds[rank] = true;
    pthread_mutex_unlock(&lock);
}

void
cluster_channel_await(uint32_t rank)
{
    pthread_mutex_lock(&lock);
    while (latest->held[rank] == 0)
        pthread_cond_wait(&is_held, &lock);
    pthread_mutex_unlock(&lock);
}

void
cluster_channel_let_go(uint32_t rank)
{
    pthread_mutex_lock(&lock);
    latest->holds[rank] = false;
    pthread_cond_broadcast(&let_go);
    pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) const struct channel_ops link_mpi = {
    .name = "queues",
    .open = cluster_channel_open,
    .send = cluster_channel_send,
    .receive = cluster_channel_receive,
    .close = cluster_channel_close,
};
