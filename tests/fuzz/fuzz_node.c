/* fuzz_node.c - a node of a job against other nodes that send anything at all: posts, tallies,
 * mail, losses, partings, in pieces and out of order.
 *
 * The input is a job's size and this node's rank, then messages: from whom, a shape, and either a
 * wire whose fields are drawn from the next bytes, so that most of them are well formed, or bytes
 * as they are. Between messages the node posts, tallies and sends itself.
 */
#include <stdlib.h>
#include <string.h>

#include "core/magic.h"
#include "link/node_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

enum { NODES_MAX = 9, FIELDS = 12, OWN_STEPS = 64, TOTAL_MAX = 1 << 12 };
enum { AS_IT_IS = 1, OWN_TALLY = 2, OWN_POST = 4, OWN_MAIL = 8, LEAVES = 16, BIG = 32 };

struct input {
    struct byte_view rest;
    struct node *node;
    uint32_t size, rank;
    uint32_t due; /* messages before the next turn */
    uint8_t message[CHANNEL_MESSAGE_BYTES];
};

static uint8_t
next(struct input *input)
{
    if (input->rest.size == 0)
        return 0;
    input->rest.size--;
    return *input->rest.data++;
}

static size_t
take(struct input *input, uint8_t *to, size_t byte_count)
{
    if (byte_count > input->rest.size)
        byte_count = input->rest.size;
    memcpy(to, input->rest.data, byte_count);
    input->rest.data += byte_count;
    input->rest.size -= byte_count;
    return byte_count;
}

/* More memory than that is not asked for on the word of a message: totals are small. */
static size_t
make_message(struct input *input, uint8_t shape)
{
    struct wire wire = { .magic = TND_WIRE_MAGIC, .version = WIRE_VERSION };
    size_t piece;

    if ((shape & AS_IT_IS) != 0) {
        piece = take(input, input->message, next(input));
        if (piece >= sizeof wire) {
            memcpy(&wire, input->message, sizeof wire);
            wire.total %= TOTAL_MAX;
            memcpy(input->message, &wire, sizeof wire);
        }
        return piece;
    }
    wire.kind = next(input) % (WIRE_KIND_COUNT + 1);
    wire.origin = next(input) % (input->size + 1);
    wire.key = (struct link_key){ next(input) % (LINK_TOPIC_COUNT + 1), next(input) % 3,
                                  next(input) % 3, next(input) % 16 };
    wire.total = next(input);
    wire.offset = next(input);
    memcpy(&wire.number, &(uint32_t){ next(input) % (input->size + 2) }, sizeof(uint32_t));
    wire.number |= (uint64_t)next(input) << 32 | (uint64_t)next(input) << 48;
    piece = next(input);
    piece = take(input, input->message + sizeof wire, piece);
    wire.piece_bytes = (uint32_t)piece;
    if ((shape & BIG) != 0)
        wire.total = piece; /* whole in one */
    memcpy(input->message, &wire, sizeof wire);
    return sizeof wire + piece;
}

static void
act(struct input *input, uint8_t shape)
{
    struct link_key key = { .topic = LINK_SEED + next(input) % (LINK_TOPIC_COUNT - LINK_SEED),
                            .part = next(input) % 4 };
    /* One kind for each key, as in the server; the node tells its host itself. */
    struct link_tally own = { .merge = (enum link_merge)(key.topic % LINK_MERGE_COUNT),
                              .is_running = key.part % 2 != 0 };
    uint32_t to = next(input) % input->size;
    uint8_t bytes[32];

    own.byte_count = take(input, bytes, 8);
    own.bytes = bytes;
    if ((shape & OWN_TALLY) != 0)
        node_tally(input->node, &key, &own);
    if ((shape & OWN_POST) != 0)
        node_post(input->node, &key, bytes, own.byte_count);
    if ((shape & OWN_MAIL) != 0 && to != input->rank)
        node_send_by_tree(input->node, to, &key, bytes, own.byte_count);
    if ((shape & LEAVES) != 0)
        node_leave(input->node);
}

static size_t
receive(void *state, uint32_t *ret_from, const void **ret_bytes)
{
    struct input *input = state;
    uint8_t shape;

    if (input->rest.size == 0 || input->due == 0)
        return 0;
    input->due--;
    *ret_from = next(input) % input->size;
    shape = next(input);
    *ret_bytes = input->message;
    return make_message(input, shape);
}

static bool
send_nowhere(void *state, uint32_t to, const void *bytes, size_t byte_count)
{
    (void)state;
    (void)to;
    (void)bytes;
    return byte_count > 0;
}

static void
look_at(struct byte_view bytes)
{
    static volatile uint8_t last;

    if (bytes.size > 0)
        last = bytes.data[bytes.size - 1];
    (void)last;
}

/* As those who are told do: all entries, to their last bytes. */
static void
arrived(void *user, uint32_t from, const struct link_key *key, struct byte_view bytes)
{
    struct byte_view one;
    uint32_t rank;

    (void)user;
    (void)from;
    (void)key;
    look_at(bytes);
    while (link_next_of_each(&bytes, &rank, &one))
        look_at(one);
}

static void
message_came(void *user, const struct link_message *message)
{
    (void)user;
    free(message->bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    static const struct channel_ops channel = { .name = "noise",
                                                .send = send_nowhere,
                                                .receive = receive };
    static struct input input;
    struct node_config config = { .channel = &channel,
                                  .channel_state = &input,
                                  .host = "here",
                                  .beat_ns = 1000000000,
                                  .silence_ns = INT64_C(3600000000000),
                                  .counters_ns = 1,
                                  .arrived = arrived,
                                  .message_came = message_came };

    input.rest = (struct byte_view){ data, data_bytes };
    input.size = config.size = 2 + next(&input) % (NODES_MAX - 1);
    input.rank = config.rank = next(&input) % config.size;
    node_open(&config, &input.node);
    for (int i = 0; i < OWN_STEPS && input.rest.size > 0; i++) {
        act(&input, next(&input));
        input.due = next(&input) % 8;
        (void)node_step(input.node);
    }
    node_close(input.node);
    return 0;
}
