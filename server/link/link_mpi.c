/* link_mpi.c - the channel between the ranks of an MPI job, and the only file that uses MPI.
 *
 * It is a separate module, loaded only in such a job, and uses nothing of the server. Nothing here
 * blocks except joining and leaving, since MPI waits by spinning on a processor. MPI makes progress
 * only inside its calls, so the caller must keep polling, also to complete its sends.
 */
#include "link/node_channel.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 1, WINDOW = 64 }; /* WINDOW: messages in flight to one node */

struct sending {
    struct sending *next;
    MPI_Request request;
    uint8_t bytes[];
};

struct receiving {
    struct receiving *next;
    MPI_Request request;
    int from;
    size_t byte_count;
    uint8_t bytes[];
};

struct mpi {
    int rank, size;
    struct sending **sending; /* per node, oldest first */
    uint32_t *sending_count;
    struct receiving *receiving; /* in the order of their announcements */
    struct receiving *received;  /* lent to the caller until its next call */
};

static bool
explain(int error, const char *what, char text[CHANNEL_TEXT_BYTES])
{
    char reason[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    if (error == MPI_SUCCESS)
        return true;
    MPI_Error_string(error, reason, &length);
    snprintf(text, CHANNEL_TEXT_BYTES, "%s: %.*s", what, length, reason);
    return false;
}

/* Functions of Open MPI; other MPIs do not have them. There has_header is a bool, after which C
 * allows no va_start; it is passed as an int is, and not used here. */
extern int (*opal_show_help)(const char *file, const char *topic, int has_header, ...)
    __attribute__((weak));
extern char *opal_show_help_vstring(const char *file, const char *topic, bool has_header, va_list)
    __attribute__((weak));

/* Open MPI gives its warnings to mpirun to write, and there its 4.1 crashes over the one of a
 * connection that a lost node refuses: all nodes would fall with it. So they are written here. */
static int
show_help(const char *file, const char *topic, int has_header, ...)
{
    static _Atomic(bool) has_written; /* one is enough: the node's loss has its own line of log */
    va_list arguments;
    char *text;

    if (opal_show_help_vstring == NULL || atomic_exchange(&has_written, true))
        return 0;
    va_start(arguments, has_header);
    text = opal_show_help_vstring(file, topic, true, arguments);
    va_end(arguments);
    if (text != NULL)
        fputs(text, stderr);
    free(text);
    return 0;
}

static void
keep_warnings_from_mpirun(void)
{
    if (&opal_show_help != NULL)
        opal_show_help = show_help;
}

static void *
mpi_open(uint32_t *ret_rank, uint32_t *ret_size, char ret_text[CHANNEL_TEXT_BYTES])
{
    struct mpi *mpi = calloc(1, sizeof *mpi);
    int provided;

    if (mpi == NULL) {
        snprintf(ret_text, CHANNEL_TEXT_BYTES, "no memory");
        return NULL;
    }
    /* Ranks of one machine communicate through backing files, which outlive a killed rank. In
     * the folder of the job mpirun removes them. A choice of the user takes precedence. */
    if (getenv("OMPI_FILE_LOCATION") != NULL)
        setenv("OMPI_MCA_btl_vader_backing_directory", getenv("OMPI_FILE_LOCATION"), 0);
    /* SERIALIZED, not FUNNELED: the thread that joins is not the main thread. */
    if (!explain(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread",
                 ret_text) ||
        !explain(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                 "MPI_Comm_set_errhandler", ret_text) ||
        !explain(MPI_Comm_rank(MPI_COMM_WORLD, &mpi->rank), "MPI_Comm_rank", ret_text) ||
        !explain(MPI_Comm_size(MPI_COMM_WORLD, &mpi->size), "MPI_Comm_size", ret_text)) {
        free(mpi);
        return NULL;
    }
    keep_warnings_from_mpirun();
    mpi->sending = calloc((size_t)mpi->size, sizeof *mpi->sending);
    mpi->sending_count = calloc((size_t)mpi->size, sizeof *mpi->sending_count);
    *ret_rank = (uint32_t)mpi->rank;
    *ret_size = (uint32_t)mpi->size;
    return mpi;
}

/* Free completed sends. An error of a request means that the node is gone, which its silence will
 * reveal. */
static void
reap(struct mpi *mpi, uint32_t to)
{
    while (mpi->sending[to] != NULL) {
        struct sending *oldest = mpi->sending[to];
        int done = 0;

        if (MPI_Test(&oldest->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
            return;
        mpi->sending[to] = oldest->next;
        mpi->sending_count[to]--;
        free(oldest);
    }
}

static bool
mpi_send(void *state, uint32_t to, const void *bytes, size_t byte_count)
{
    struct mpi *mpi = state;
    struct sending *message, **last = &mpi->sending[to];

    reap(mpi, to);
    if (mpi->sending_count[to] >= WINDOW)
        return false;
    message = malloc(sizeof *message + byte_count);
    if (message == NULL)
        return false;
    message->next = NULL;
    memcpy(message->bytes, bytes, byte_count);
    if (MPI_Isend(message->bytes, (int)byte_count, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD,
                  &message->request) != MPI_SUCCESS) {
        free(message);
        return true; /* the node is gone: not a reason to retry */
    }
    while (*last != NULL)
        last = &(*last)->next;
    *last = message;
    mpi->sending_count[to]++;
    return true;
}

/* Start to receive one announced message. A matched probe reserves the message, so its size is
 * known before memory is taken. */
static bool
begin_receiving(struct mpi *mpi)
{
    struct receiving *message, **last = &mpi->receiving;
    MPI_Status status;
    MPI_Message matched;
    int found = 0, count = 0;

    if (MPI_Improbe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &found, &matched, &status) !=
            MPI_SUCCESS ||
        !found || MPI_Get_count(&status, MPI_BYTE, &count) != MPI_SUCCESS)
        return false;
    message = malloc(sizeof *message + (size_t)count);
    if (message == NULL) {
        fprintf(stderr, "tundish: no memory for a message of %d bytes from another node\n", count);
        _exit(3);
    }
    message->next = NULL;
    message->from = status.MPI_SOURCE;
    message->byte_count = (size_t)count;
    if (MPI_Imrecv(message->bytes, count, MPI_BYTE, &matched, &message->request) != MPI_SUCCESS) {
        free(message);
        return true;
    }
    while (*last != NULL)
        last = &(*last)->next;
    *last = message;
    return true;
}

/* True if an earlier message from this node is still incomplete. MPI matches messages in order, but
 * they may complete in another, so delivery keeps the order here. */
static bool
has_elder(const struct mpi *mpi, const struct receiving *message)
{
    for (const struct receiving *at = mpi->receiving; at != message; at = at->next)
        if (at->from == message->from)
            return true;
    return false;
}

/* Return the next complete message. A node that stops in the middle of one does not delay those of
 * others. */
static size_t
mpi_receive(void *state, uint32_t *ret_from, const void **ret_bytes)
{
    struct mpi *mpi = state;

    while (begin_receiving(mpi))
        ;
    free(mpi->received);
    mpi->received = NULL;
    for (struct receiving **at = &mpi->receiving; *at != NULL; at = &(*at)->next) {
        struct receiving *message = *at;
        int done = 0;

        if (has_elder(mpi, message) ||
            MPI_Test(&message->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || !done)
            continue;
        *at = message->next;
        mpi->received = message;
        *ret_from = (uint32_t)message->from;
        *ret_bytes = message->bytes;
        return message->byte_count;
    }
    return 0;
}

/* Requests to lost nodes may never complete, and MPI still owns their buffers. Unless all nodes
 * left in order, nothing is freed: the process exits soon. */
static void
mpi_close(void *state, bool in_order)
{
    struct mpi *mpi = state;

    if (!in_order)
        return;
    for (int to = 0; to < mpi->size; to++)
        for (struct sending *at = mpi->sending[to]; at != NULL; at = mpi->sending[to]) {
            MPI_Wait(&at->request, MPI_STATUS_IGNORE);
            mpi->sending[to] = at->next;
            free(at);
        }
    MPI_Finalize();
    free(mpi->received);
    free(mpi->sending_count);
    free(mpi->sending);
    free(mpi);
}

__attribute__((visibility("default"))) const struct channel_ops link_mpi = {
    .name = "mpi",
    .open = mpi_open,
    .send = mpi_send,
    .receive = mpi_receive,
    .close = mpi_close,
};
