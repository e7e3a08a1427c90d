/* network.c - queues between nodes, and a clock that the test turns. */
#include "network.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"

enum { UNDER_WAY = 8 }; /* messages from one node to another, at most */

static const int64_t BEAT_NS = 500000000, SILENCE_NS = 5000000000;

struct message {
    struct message *next;
    int64_t due_ns;
    size_t byte_count;
    uint8_t bytes[];
};

struct wire_queue {
    struct message *first, *last;
    uint32_t count;
    bool cut;
};

struct end {
    struct network *network;
    uint32_t rank;
    struct node *node;
    bool dead, paused;
    uint64_t arrivals, messages;
    struct message *received;
    uint64_t messages_from[NETWORK_NODES];
    bool has_disorder;
};

struct network {
    uint32_t size;
    uint64_t random;
    int64_t now_ns;
    struct tnd_clock clock;
    struct end ends[NETWORK_NODES];
    struct wire_queue queues[NETWORK_NODES][NETWORK_NODES]; /* from, to */
};

uint64_t
network_draw(struct network *network, uint64_t below)
{
    network->random ^= network->random << 13;
    network->random ^= network->random >> 7;
    network->random ^= network->random << 17;
    return network->random % below;
}

int64_t
network_now_ns(const struct network *network)
{
    return network->now_ns;
}

static int64_t
made_up_now(void *context)
{
    return ((struct network *)context)->now_ns;
}

static bool
queue_send(void *state, uint32_t to, const void *bytes, size_t byte_count)
{
    struct end *end = state;
    struct network *network = end->network;
    struct wire_queue *queue = &network->queues[end->rank][to];
    struct message *message;

    if (queue->count == UNDER_WAY)
        return false;
    message = tnd_zalloc(1, sizeof *message + byte_count);
    message->byte_count = byte_count;
    memcpy(message->bytes, bytes, byte_count);
    message->due_ns = network->now_ns + (int64_t)network_draw(network, 20000000);
    if (queue->last != NULL)
        queue->last->next = message;
    else
        queue->first = message;
    queue->last = message;
    queue->count++;
    return true;
}

static struct message *
take_from(struct network *network, struct wire_queue *queue)
{
    struct message *first = queue->first;

    if (first == NULL || queue->cut || first->due_ns > network->now_ns)
        return NULL;
    queue->first = first->next;
    if (queue->first == NULL)
        queue->last = NULL;
    queue->count--;
    return first;
}

static size_t
queue_receive(void *state, uint32_t *ret_from, const void **ret_bytes)
{
    struct end *end = state;
    struct network *network = end->network;
    uint32_t first = (uint32_t)network_draw(network, network->size);

    free(end->received);
    end->received = NULL;
    for (uint32_t i = 0; i < network->size && end->received == NULL; i++) {
        *ret_from = (first + i) % network->size;
        end->received = take_from(network, &network->queues[*ret_from][end->rank]);
    }
    if (end->received == NULL)
        return 0;
    *ret_bytes = end->received->bytes;
    return end->received->byte_count;
}

static const struct channel_ops queues = {
    .name = "queues",
    .send = queue_send,
    .receive = queue_receive,
};

static void
arrived(void *user, uint32_t from, const struct link_key *key, struct byte_view bytes)
{
    struct end *end = user;

    (void)from;
    (void)key;
    (void)bytes;
    end->arrivals++;
}

/* Each message counts those from its sender to here: none is lost, doubled or overtaken. */
static void
message_came(void *user, const struct link_message *message)
{
    struct end *end = user;

    end->has_disorder |= message->key.epoch != end->messages_from[message->from]++;
    for (size_t i = 0; i < message->byte_count; i++)
        end->has_disorder |= message->bytes[i] != (uint8_t)(message->key.epoch + i);
    end->messages++;
    free(message->bytes);
}

struct network *
network_open(uint32_t size, uint64_t seed)
{
    struct network *network = tnd_zalloc(1, sizeof *network);

    network->size = size;
    network->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    network->now_ns = 1000000000;
    network->clock = (struct tnd_clock){ .now_ns = made_up_now, .context = network };
    tnd_clock_install(&network->clock);
    for (uint32_t rank = 0; rank < size; rank++) {
        static const char *const hosts[NETWORK_NODES] = { "a", "b", "c", "d", "e", "f" };
        struct end *end = &network->ends[rank];
        struct node_config config = {
            .channel = &queues,
            .channel_state = end,
            .rank = rank,
            .size = size,
            .host = hosts[rank],
            .beat_ns = BEAT_NS,
            .silence_ns = SILENCE_NS,
            .counters_ns = 2 * BEAT_NS,
            .arrived = arrived,
            .message_came = message_came,
            .user = end,
        };

        end->network = network;
        end->rank = rank;
        node_open(&config, &end->node);
    }
    return network;
}

void
network_close(struct network *network)
{
    for (uint32_t from = 0; from < network->size; from++) {
        node_close(network->ends[from].node);
        free(network->ends[from].received);
        for (uint32_t to = 0; to < network->size; to++)
            while (network->queues[from][to].first != NULL) {
                struct message *first = network->queues[from][to].first;

                network->queues[from][to].first = first->next;
                free(first);
            }
    }
    tnd_clock_install(NULL);
    free(network);
}

struct node *
network_node(struct network *network, uint32_t rank)
{
    return network->ends[rank].node;
}

void
network_step(struct network *network)
{
    struct end *end = &network->ends[network_draw(network, network->size)];

    network->now_ns += (int64_t)network_draw(network, 3000000);
    if (!end->dead && !end->paused)
        node_step(end->node);
}

void
network_run(struct network *network, int64_t ns)
{
    int64_t until_ns = network->now_ns + ns;

    while (network->now_ns < until_ns)
        network_step(network);
}

void
network_kill(struct network *network, uint32_t rank)
{
    network->ends[rank].dead = true;
}

void
network_pause(struct network *network, uint32_t rank)
{
    network->ends[rank].paused = true;
}

void
network_resume(struct network *network, uint32_t rank)
{
    network->ends[rank].paused = false;
}

void
network_cut(struct network *network, uint32_t a, uint32_t b)
{
    network->queues[a][b].cut = network->queues[b][a].cut = true;
}

bool
network_is_alive(const struct network *network, uint32_t rank)
{
    return !network->ends[rank].dead && !network->ends[rank].paused;
}

uint64_t
network_arrivals(const struct network *network, uint32_t rank)
{
    return network->ends[rank].arrivals;
}

uint64_t
network_messages(const struct network *network, uint32_t rank, bool *ret_in_order)
{
    *ret_in_order = !network->ends[rank].has_disorder;
    return network->ends[rank].messages;
}
