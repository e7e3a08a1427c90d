/* peers.c - opens, closes, and dispatches messages. */
#include <stdlib.h>

#include "core/memory.h"
#include "source/files/files.h"
#include "source/peer/peer_private.h"

static void
hear_message(void *user, const struct peer_message *message)
{
    struct peers *peers = user;

    if (message->kind == PEER_ASK_ROWS || message->kind == PEER_ASK_FILE ||
        message->kind == PEER_ASK_SIZE)
        peer_hand_over(peers, PEER_QUEUE_ROWS, message);
    else if (message->kind == PEER_ASK_RECORDS)
        peer_hand_over(peers, PEER_QUEUE_RECORDS, message);
    else if (message->kind == PEER_ANSWER)
        peer_take_answer(peers, message);
    else if (message->kind == PEER_RATES)
        peer_take_rates(peers, message);
    else
        free(message->bytes);
}

tundish_status
peers_open(const struct peers_options *options, struct peers **ret_peers)
{
    struct source_files_options files_options = { .root = options->root,
                                                  .cache_folder = options->cache_folder,
                                                  .reader_count = 1,
                                                  .remote = options->remote };
    struct peers *peers = tnd_zalloc(1, sizeof *peers);
    tundish_status status;

    peers->options = *options;
    peers->told = tnd_zalloc(options->transport.node_count, sizeof *peers->told);
    peers->asked_at = tnd_zalloc(options->transport.node_count, sizeof *peers->asked_at);
    pthread_mutex_init(&peers->lock, NULL);
    for (int i = 0; i < PEER_QUEUES; i++)
        pthread_cond_init(&peers->responders[i].has_task, NULL);
    /* A table of its own: the numbers in references differ from node to node. */
    status = source_files_open(&files_options, &peers->files);
    if (status == TUNDISH_OK)
        status = peer_start_responders(peers);
    if (status != TUNDISH_OK) {
        peers_close(peers);
        return status;
    }
    /* Last, because requests may arrive before listen returns. */
    options->transport.listen(options->transport.context, hear_message, peers);
    *ret_peers = peers;
    return TUNDISH_OK;
}

uint64_t
peers_passed_on(const struct peers *peers)
{
    return peers == NULL ? 0 : atomic_load_explicit(&peers->passed_on, memory_order_relaxed);
}

void
peers_close(struct peers *peers)
{
    if (peers == NULL)
        return;
    /* No more messages arrive after this, so the queues only shrink. */
    peers->options.transport.listen(peers->options.transport.context, NULL, NULL);
    peer_stop_responders(peers);
    source_files_close(peers->files);
    peer_free_samples(peers);
    for (int i = 0; i < PEER_QUEUES; i++)
        pthread_cond_destroy(&peers->responders[i].has_task);
    pthread_mutex_destroy(&peers->lock);
    free(peers->asked_at);
    free(peers->told);
    free(peers);
}
