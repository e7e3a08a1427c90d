/* test_lane_model.c - a lane and made-up trainers, taken through many interleavings by a seed.
 *
 * No thread, no socket, no sleep: one loop draws what happens next. Several groups take, hold and
 * release; the server reserves and publishes in any order; trainers die and are followed, groups
 * are cut off. What must hold: every group gets every position once and in order; what a trainer
 * holds is never written to; something can always go on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deliver/lane_private.h"
#include "unit/test_file.h"

enum { SLOTS = 5, GROUPS = 3, POSITIONS = 400, SEEDS = 60, ARENA_BYTES = 8192, BYTES_MAX = 12000 };

static const tundish_column_spec columns[] = {
    { .name = "x", .dtype = TUNDISH_UINT64, .kind = TUNDISH_DENSE, .rank = 1, .shape = { -1 } },
};
static const tundish_spec spec = { .column_count = 1,
                                   .column_bytes = sizeof columns[0],
                                   .columns = columns };

struct grip {
    uint64_t position;
    uint32_t index;
    const uint64_t *words; /* NULL: not held */
    uint64_t count;
};

struct trainer {
    struct lane_reader *reader;
    struct connection client;
    int other_end;
    bool is_here, is_cut_off;
    uint64_t taken, released;
    bool done[SLOTS];
    struct grip grips[SLOTS];
};

struct model {
    uint64_t random;
    struct lane *lane;
    struct slot slots[SLOTS]; /* by position % SLOTS */
    bool is_reserved[SLOTS];
    uint64_t first; /* the lowest position not published */
    bool cancels;
    struct trainer trainers[GROUPS];
};

static uint64_t
draw(struct model *model, uint64_t limit)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return model->random % limit;
}

static void
attach(struct model *model, struct trainer *trainer)
{
    struct tnd_welcome welcome = { 0 };
    int pair[2];

    (void)model;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
    connection_open(&trainer->client, pair[0], NULL);
    trainer->other_end = pair[1];
    assert_int_equal(lane_reader_attach(trainer->reader, &trainer->client, &welcome), TUNDISH_OK);
    trainer->taken = trainer->released = welcome.position;
    memset(trainer->done, 0, sizeof trainer->done);
    memset(trainer->grips, 0, sizeof trainer->grips);
    trainer->is_here = true;
}

static void
leave(struct trainer *trainer)
{
    lane_reader_detach(trainer->reader);
    connection_close(&trainer->client);
    close(trainer->other_end);
    trainer->is_here = false;
}

static struct tnd_returns *
page(const struct trainer *trainer)
{
    return (struct tnd_returns *)(void *)trainer->reader->returns.bytes;
}

/* Every word of a batch says which position it belongs to. */
static void
check_grips(const struct trainer *trainer)
{
    for (unsigned i = 0; i < SLOTS; i++)
        for (uint64_t k = 0; trainer->grips[i].words != NULL && k < trainer->grips[i].count; k++)
            assert_int_equal(trainer->grips[i].words[k], trainer->grips[i].position);
}

static const uint8_t *
find_payload(const struct model *model, uint32_t segment)
{
    if (segment == TND_SEGMENT_LANE)
        return model->lane->segment.bytes;
    for (uint32_t i = 0; i < model->lane->own_count; i++)
        if (model->lane->own[i]->id == segment)
            return model->lane->own[i]->memory.bytes;
    fail_msg("segment %u is not there", segment);
    return NULL;
}

static unsigned
count_held(const struct trainer *trainer)
{
    unsigned held = 0;

    for (unsigned i = 0; i < SLOTS; i++)
        held += trainer->grips[i].words != NULL;
    return held;
}

static bool
take(struct model *model, struct trainer *trainer)
{
    const struct tnd_slot *slot;
    const struct tnd_buffer *buffer;
    struct grip *grip = trainer->grips;
    uint32_t index;

    if (!trainer->is_here || trainer->is_cut_off || count_held(trainer) >= SLOTS - 2)
        return false;
    if (trainer->taken >= atomic_load(&model->lane->batches->published)) {
        atomic_store(&page(trainer)->waiting_since_ns, 1);
        return false;
    }
    index = atomic_load(&lane_line_slots(model->lane, 0)[trainer->taken % SLOTS]);
    slot = lane_slot_memory(model->lane, index);
    assert_int_equal(slot->position, trainer->taken);
    buffer = (const struct tnd_buffer *)(const void *)((const struct tnd_column *)(slot + 1) + 1);
    while (grip->words != NULL)
        grip++;
    *grip = (struct grip){
        .position = slot->position,
        .index = index,
        .words =
            (const uint64_t *)(const void *)(find_payload(model, slot->segment) + buffer->offset),
        .count = buffer->stored_bytes / 8,
    };
    trainer->taken++;
    atomic_store(&page(trainer)->taken, trainer->taken);
    atomic_store(&page(trainer)->waiting_since_ns, 0);
    check_grips(trainer);
    return true;
}

static bool
give_back(struct model *model, struct trainer *trainer)
{
    unsigned start = (unsigned)draw(model, SLOTS), i = 0;
    struct grip *grip = NULL;

    if (!trainer->is_here)
        return false;
    for (; i < SLOTS && (grip = &trainer->grips[(start + i) % SLOTS])->words == NULL; i++)
        continue;
    if (i == SLOTS)
        return false;
    check_grips(trainer);
    grip->words = NULL;
    atomic_store(&tnd_returns_slots(page(trainer))[grip->index], grip->position + 1);
    trainer->done[grip->position % SLOTS] = true;
    while (trainer->released < trainer->taken && trainer->done[trainer->released % SLOTS])
        trainer->done[trainer->released++ % SLOTS] = false;
    atomic_store(&page(trainer)->released, trainer->released);
    return true;
}

static bool
reserve(struct model *model)
{
    uint64_t position = model->first + draw(model, SLOTS);
    struct slot *slot = &model->slots[position % SLOTS];
    uint64_t *words;

    if (model->is_reserved[position % SLOTS] || position >= POSITIONS)
        return false;
    slot->position = slot->step = position;
    slot_values(slot, 0)->stored_bytes = position * 2654435761u % BYTES_MAX / 8 * 8;
    if (lane_reserve(model->lane, slot) != TUNDISH_OK)
        return false;
    words = slot_values(slot, 0)->data;
    for (uint64_t i = 0; i < slot_values(slot, 0)->stored_bytes / 8; i++)
        words[i] = position;
    slot->columns[0].shape[0] = (int64_t)(slot_values(slot, 0)->stored_bytes / 8);
    return model->is_reserved[position % SLOTS] = true;
}

static bool
publish(struct model *model)
{
    uint64_t position = model->first + draw(model, SLOTS);
    struct lane_stats stats;

    if (!model->is_reserved[position % SLOTS] ||
        model->slots[position % SLOTS].position != position)
        return false;
    /* A slot stays marked until its position is visible, so that none is reserved twice. */
    if (model->slots[position % SLOTS].index == UINT32_MAX)
        return false;
    /* Not always: taking reservations back would hide that they are in each other's way. */
    if (model->cancels && draw(model, 10) == 0) {
        lane_cancel(model->lane, &model->slots[position % SLOTS]);
        return !(model->is_reserved[position % SLOTS] = false);
    }
    lane_seal(model->lane, &model->slots[position % SLOTS]);
    lane_publish(model->lane, &model->slots[position % SLOTS]);
    lane_stats(model->lane, &stats);
    for (; model->first < stats.published; model->first++)
        model->is_reserved[model->first % SLOTS] = false;
    return true;
}

static void
die_and_be_followed(struct model *model, struct trainer *trainer)
{
    if (!trainer->is_here || trainer->is_cut_off)
        return;
    check_grips(trainer);
    leave(trainer);
    attach(model, trainer);
}

static void
cut_off(struct model *model)
{
    struct trainer *trainer = &model->trainers[GROUPS - 1];

    if (trainer->is_cut_off || model->first < POSITIONS / 2)
        return;
    lane_reader_cut_off(trainer->reader);
    trainer->is_cut_off = true;
}

static bool
is_over(const struct model *model)
{
    for (unsigned i = 0; i < GROUPS; i++)
        if (!model->trainers[i].is_cut_off && model->trainers[i].released < POSITIONS)
            return false;
    return true;
}

static void
step(struct model *model)
{
    struct trainer *trainer = &model->trainers[draw(model, GROUPS)];

    switch (draw(model, 20)) {
    case 0:
        if (draw(model, 8) == 0)
            die_and_be_followed(model, trainer);
        break;
    case 1:
        if (draw(model, 16) == 0)
            cut_off(model);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
        reserve(model);
        break;
    case 7:
    case 8:
    case 9:
    case 10:
    case 11:
        publish(model);
        break;
    case 12:
    case 13:
    case 14:
    case 15:
        take(model, trainer);
        break;
    default:
        give_back(model, trainer);
        break;
    }
}

static void
run_seed(uint64_t seed)
{
    struct lane_config config = { .name = "model",
                                  .slots = SLOTS,
                                  .arena_bytes = ARENA_BYTES,
                                  .memory = seed % 2 == 0 ? LANE_SHM : LANE_MEMFD,
                                  .spec = &spec };
    struct model model = { .random = seed * 2654435761u + 1, .cancels = seed % 3 == 0 };
    uint64_t steps = 0;

    assert_int_equal(lane_open(&config, &model.lane), TUNDISH_OK);
    for (unsigned i = 0; i < SLOTS; i++)
        lane_slot_init(model.lane, &model.slots[i]);
    for (unsigned i = 0; i < GROUPS; i++) {
        assert_int_equal(lane_reader_open(model.lane, 0, &model.trainers[i].reader), TUNDISH_OK);
        attach(&model, &model.trainers[i]);
    }
    /* Each position takes some dozen steps; a thousand of each means that nothing goes on. */
    while (!is_over(&model)) {
        step(&model);
        if (++steps > POSITIONS * 1000)
            fail_msg("seed %u: stuck at position %u", (unsigned)seed, (unsigned)model.first);
    }
    for (unsigned i = 0; i < GROUPS; i++) {
        check_grips(&model.trainers[i]);
        leave(&model.trainers[i]);
    }
    for (unsigned i = 0; i < SLOTS; i++)
        lane_slot_fini(&model.slots[i]);
    lane_close(model.lane);
}

static void
every_interleaving_delivers_everything_and_disturbs_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_seed(seed);
}

TEST_FILE(test_lane_model)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_interleaving_delivers_everything_and_disturbs_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
