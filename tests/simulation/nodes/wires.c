/* wires.c - messages in time. */
#include "wires.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/status.h"
#include "fibers.h"
#include "link/job.h"
#include "link/node_channel.h"
#include "link/node_private.h"

enum { WINDOW = 64, PAIRS = 1 << 16 }; /* WINDOW: as link_mpi.c's */

/* Between a node that sends and one that receives. */
struct pair {
    struct pair *next;
    uint32_t from, to, under_way;
    int64_t last_ns; /* when the last message comes */
    bool is_cut;
    struct letter *held, **last_held; /* by a partition */
};

struct letter {
    struct letter *next;
    struct pair *pair;
    int64_t due_ns;
    uint64_t number;
    size_t byte_count;
    uint8_t bytes[];
};

struct end {
    bool is_down;
    uint32_t rank;
    struct cable cable;
    struct letter **inbox; /* a heap, the earliest first */
    size_t count, room;
    struct letter *received;
    struct wires_traffic traffic;
};

static struct {
    struct wires_options options;
    struct end *ends;
    uint32_t border;
    uint64_t letters;
    struct pair *pairs[PAIRS];
} all;

bool __wrap_job_is_of_mpi(void);
tundish_status __wrap_job_load_mpi(void **ret_module, const struct channel_ops **ret_channel);
int __wrap_gethostname(char *name, size_t name_bytes);

static struct pair *
find_pair(uint32_t from, uint32_t to)
{
    uint64_t hash = ((uint64_t)from << 32 | to) * UINT64_C(0x9e3779b97f4a7c15);
    struct pair **bucket = &all.pairs[hash >> 48], *pair = *bucket;

    while (pair != NULL && (pair->from != from || pair->to != to))
        pair = pair->next;
    if (pair == NULL) {
        pair = calloc(1, sizeof *pair);
        *pair = (struct pair){ .next = *bucket, .from = from, .to = to };
        pair->last_held = &pair->held;
        *bucket = pair;
    }
    return pair;
}

static bool
comes_before(const struct letter *a, const struct letter *b)
{
    return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->number < b->number);
}

static void
put_in(struct end *end, struct letter *letter)
{
    size_t at = end->count++;

    if (end->count > end->room) {
        end->room = end->room * 2 + 8;
        end->inbox = realloc(end->inbox, end->room * sizeof(struct letter *));
    }
    for (; at > 0 && comes_before(letter, end->inbox[(at - 1) / 2]); at = (at - 1) / 2)
        end->inbox[at] = end->inbox[(at - 1) / 2];
    end->inbox[at] = letter;
}

static struct letter *
take_out(struct end *end)
{
    struct letter *first = end->inbox[0], *last = end->inbox[--end->count];
    size_t at = 0;

    for (size_t child = 1; child < end->count; child = 2 * at + 1) {
        if (child + 1 < end->count && comes_before(end->inbox[child + 1], end->inbox[child]))
            child++;
        if (!comes_before(end->inbox[child], last))
            break;
        end->inbox[at] = end->inbox[child];
        at = child;
    }
    if (end->count > 0)
        end->inbox[at] = last;
    return first;
}

/* When a message comes that is sent now: after those before it. */
static int64_t
arrival_of(struct pair *pair, size_t byte_count)
{
    pair->last_ns = cable_arrival(&all.options.network, &all.ends[pair->from].cable,
                                  &all.ends[pair->to].cable, byte_count, pair->last_ns + 1);
    return pair->last_ns;
}

static bool
is_parted(const struct pair *pair)
{
    return all.border > 0 && (pair->from < all.border) != (pair->to < all.border);
}

static void
set_off(struct letter *letter)
{
    letter->due_ns = arrival_of(letter->pair, letter->byte_count);
    put_in(&all.ends[letter->pair->to], letter);
}

static void
write_letter(struct pair *pair, const void *bytes, size_t byte_count)
{
    struct letter *letter = malloc(sizeof *letter + byte_count);

    *letter = (struct letter){ .pair = pair, .number = ++all.letters, .byte_count = byte_count };
    memcpy(letter->bytes, bytes, byte_count);
    pair->under_way++;
    if (!is_parted(pair) && !pair->is_cut) {
        set_off(letter);
        return;
    }
    *pair->last_held = letter;
    pair->last_held = &letter->next;
}

/* Is there a word about steps among those that it consists of? */
static bool
is_of_steps(const uint8_t *bytes, size_t byte_count)
{
    struct wire wire;

    for (size_t at = 0; at < byte_count; at += sizeof wire + wire.piece_bytes) {
        memcpy(&wire, bytes + at, sizeof wire);
        if ((wire.kind == WIRE_UP || wire.kind == WIRE_DOWN) && wire.key.topic == LINK_STEPS)
            return true;
    }
    return false;
}

static bool
wires_send(void *state, uint32_t to, const void *bytes, size_t byte_count)
{
    struct end *end = state;
    uint32_t charged = fibers_charge(FIBERS_NOBODY);
    struct pair *pair = find_pair(end->rank, to);
    bool has_room = pair->under_way < WINDOW;

    if (has_room) {
        end->traffic.sent++;
        end->traffic.sent_bytes += byte_count;
        end->traffic.sent_of_steps += is_of_steps(bytes, byte_count);
        if (!end->is_down && !all.ends[to].is_down)
            write_letter(pair, bytes, byte_count);
    }
    fibers_charge(charged);
    return has_room;
}

static bool
has_come(const struct end *end)
{
    return end->count > 0 && end->inbox[0]->due_ns <= fibers_now_ns();
}

static size_t
wires_receive(void *state, uint32_t *ret_from, const void **ret_bytes)
{
    struct end *end = state;
    uint32_t charged;

    if (end->received == NULL && !has_come(end))
        return 0;
    charged = fibers_charge(FIBERS_NOBODY);
    free(end->received);
    end->received = has_come(end) ? take_out(end) : NULL;
    fibers_charge(charged);
    if (end->received == NULL)
        return 0;
    end->received->pair->under_way--;
    end->traffic.received++;
    end->traffic.received_bytes += end->received->byte_count;
    *ret_from = end->received->pair->from;
    *ret_bytes = end->received->bytes;
    return end->received->byte_count;
}

/* A rank is the node of the fiber that joins. */
static void *
wires_join(uint32_t *ret_rank, uint32_t *ret_size, char ret_text[CHANNEL_TEXT_BYTES])
{
    uint32_t rank = fibers_charged();

    (void)ret_text;
    all.ends[rank].rank = rank;
    *ret_rank = rank;
    *ret_size = all.options.nodes;
    return &all.ends[rank];
}

static void
wires_leave(void *state, bool in_order)
{
    (void)state;
    (void)in_order;
}

static const struct channel_ops wires = {
    .name = "wires",
    .open = wires_join,
    .send = wires_send,
    .receive = wires_receive,
    .close = wires_leave,
};

bool
__wrap_job_is_of_mpi(void)
{
    return all.options.nodes > 1;
}

tundish_status
__wrap_job_load_mpi(void **ret_module, const struct channel_ops **ret_channel)
{
    *ret_module = NULL;
    *ret_channel = &wires;
    return TUNDISH_OK;
}

int
__wrap_gethostname(char *name, size_t name_bytes)
{
    snprintf(name, name_bytes, "n%u", fibers_charged());
    return 0;
}

void
wires_open(const struct wires_options *options)
{
    all.options = *options;
    all.ends = calloc(options->nodes, sizeof *all.ends);
}

static void
free_pair(struct pair *pair)
{
    while (pair->held != NULL) {
        struct letter *letter = pair->held;

        pair->held = letter->next;
        free(letter);
    }
    free(pair);
}

void
wires_close(void)
{
    for (uint32_t i = 0; i < all.options.nodes; i++) {
        while (all.ends[i].count > 0)
            free(take_out(&all.ends[i]));
        free(all.ends[i].inbox);
        free(all.ends[i].received);
    }
    for (size_t i = 0; i < PAIRS; i++)
        while (all.pairs[i] != NULL) {
            struct pair *pair = all.pairs[i];

            all.pairs[i] = pair->next;
            free_pair(pair);
        }
    free(all.ends);
    memset(&all, 0, sizeof all);
}

void
wires_take_down(uint32_t node)
{
    struct end *end = &all.ends[node];

    end->is_down = true;
    while (end->count > 0) {
        struct letter *letter = take_out(end);

        letter->pair->under_way--;
        free(letter);
    }
}

void
wires_part(uint32_t border)
{
    all.border = border;
    for (size_t i = 0; border == 0 && i < PAIRS; i++)
        for (struct pair *pair = all.pairs[i]; pair != NULL; pair = pair->next)
            while (!pair->is_cut && pair->held != NULL) {
                struct letter *letter = pair->held;

                pair->held = letter->next;
                if (pair->held == NULL)
                    pair->last_held = &pair->held;
                if (all.ends[pair->from].is_down)
                    free(letter);
                else
                    set_off(letter);
            }
}

void
wires_cut(uint32_t a, uint32_t b)
{
    find_pair(a, b)->is_cut = find_pair(b, a)->is_cut = true;
}

struct wires_traffic
wires_traffic(uint32_t node)
{
    return all.ends[node].traffic;
}
