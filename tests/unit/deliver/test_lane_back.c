/* test_lane_back.c - an evaluation's lane whose server takes back what its trainer has not begun,
 * taken through many interleavings by a seed.
 *
 * No thread and no sleep: one loop draws what happens next. The trainer claims a position, later
 * takes it, holds some and gives them back in any order. What must hold: each position goes to the
 * trainer or is taken back, never both; what the trainer holds is never written to; nothing that it
 * holds stops the lane from going on.
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

enum { SLOTS = 5, POSITIONS = 300, SEEDS = 300, WORDS = 64, FURTHEST = 9 };

static const tundish_column_spec columns[] = {
    { .name = "x", .dtype = TUNDISH_UINT64, .kind = TUNDISH_DENSE, .rank = 1, .shape = { -1 } },
};
static const tundish_spec spec = { .column_count = 1,
                                   .column_bytes = sizeof columns[0],
                                   .columns = columns };

struct model {
    uint64_t random;
    struct lane *lane;
    struct slot slot;
    struct lane_reader *reader;
    struct connection client;
    int other_end;
    bool has_claim;
    uint64_t published, taken, back_count;
    const uint64_t *held[POSITIONS];
    bool was_taken[POSITIONS], is_done[POSITIONS], is_back[POSITIONS];
};

static uint64_t
draw(struct model *model, uint64_t limit)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return model->random % limit;
}

static struct tnd_returns *
page(const struct model *model)
{
    return (struct tnd_returns *)(void *)model->reader->returns.bytes;
}

static uint64_t
count_released(const struct model *model)
{
    uint64_t released = 0;

    while (released < model->taken && (model->is_done[released] || model->is_back[released]))
        released++;
    return released;
}

static void
attach(struct model *model)
{
    struct tnd_welcome welcome = { 0 };
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
    connection_open(&model->client, pair[0], NULL);
    model->other_end = pair[1];
    assert_int_equal(lane_reader_attach(model->reader, &model->client, &welcome), TUNDISH_OK);
    assert_true((welcome.flags & TND_WELCOME_CLAIMS) != 0);
    atomic_store(&page(model)->claim, TND_CLAIM(model->taken));
}

static void
leave(struct model *model)
{
    lane_reader_detach(model->reader);
    connection_close(&model->client);
    close(model->other_end);
}

static void
check_held(const struct model *model)
{
    for (uint64_t i = 0; i < POSITIONS; i++)
        for (unsigned k = 0; model->held[i] != NULL && k < WORDS; k++)
            assert_int_equal(model->held[i][k], i);
}

static bool
publish(struct model *model)
{
    uint64_t *words;

    if (model->published == POSITIONS)
        return false;
    model->slot.position = model->slot.step = model->published;
    slot_values(&model->slot, 0)->stored_bytes = WORDS * sizeof *words;
    if (lane_reserve(model->lane, &model->slot) != TUNDISH_OK)
        return false;
    words = slot_values(&model->slot, 0)->data;
    for (unsigned k = 0; k < WORDS; k++)
        words[k] = model->published;
    lane_seal_and_publish(model->lane, &model->slot);
    model->published++;
    return true;
}

/* As client/claim.c. */
static bool
claim(struct model *model)
{
    uint64_t next = TND_CLAIM(model->taken), found = next;

    if (model->has_claim || model->taken >= model->published)
        return false;
    if (atomic_compare_exchange_strong(&page(model)->claim, &found, TND_CLAIM(model->taken + 1))) {
        assert_false(model->is_back[model->taken]);
        model->has_claim = true;
        return true;
    }
    assert_int_equal(found, next | TND_CLAIM_TAKEN_BACK);
    assert_true(lane_is_taken_back(model->lane));
    model->taken = atomic_load(&lane_line(model->lane, model->reader->line)->back_until);
    atomic_store(&page(model)->taken, model->taken);
    atomic_store(&page(model)->released, count_released(model));
    atomic_store(&page(model)->claim, TND_CLAIM(model->taken));
    assert_false(lane_is_taken_back(model->lane));
    return true;
}

static unsigned
count_held(const struct model *model)
{
    unsigned held = 0;

    for (uint64_t i = 0; i < POSITIONS; i++)
        held += model->held[i] != NULL;
    return held;
}

static bool
take(struct model *model)
{
    uint32_t index;
    const struct tnd_slot *slot;
    const struct tnd_buffer *buffer;

    if (!model->has_claim || count_held(model) >= SLOTS - 2)
        return false;
    index = atomic_load(&lane_line_slots(model->lane, 0)[model->taken % SLOTS]);
    slot = lane_slot_memory(model->lane, index);
    assert_int_equal(slot->position, model->taken);
    buffer = (const struct tnd_buffer *)(const void *)((const struct tnd_column *)(slot + 1) + 1);
    model->held[model->taken] =
        (const uint64_t *)(const void *)(model->lane->segment.bytes + buffer->offset);
    model->was_taken[model->taken++] = true;
    model->has_claim = false;
    atomic_store(&page(model)->taken, model->taken);
    return true;
}

/* A loop holds the last batch while it asks for the next. */
static bool
give_back(struct model *model)
{
    uint64_t first = draw(model, POSITIONS);

    if (count_held(model) < 2)
        return false;
    for (uint64_t i = 0; i < POSITIONS; i++) {
        uint64_t at = (first + i) % POSITIONS;

        if (model->held[at] == NULL)
            continue;
        model->held[at] = NULL;
        model->is_done[at] = true;
        atomic_store(&page(model)->released, count_released(model));
        return true;
    }
    return false;
}

/* More than the lane has room for: the rest is passed over as it is published. */
static bool
take_back(struct model *model)
{
    uint64_t from = model->taken, until = model->published + draw(model, FURTHEST);

    if (from >= model->published || until > POSITIONS)
        return false;
    if (!lane_take_back(model->lane, from, until))
        return false;
    assert_false(model->has_claim);
    for (uint64_t i = from; i < until; i++) {
        assert_false(model->was_taken[i] || model->is_back[i]);
        model->is_back[i] = true;
    }
    model->back_count++;
    return true;
}

static bool
step(struct model *model)
{
    switch (draw(model, 6)) {
    case 0:
    case 1:
        return publish(model);
    case 2:
        return claim(model);
    case 3:
        return take(model);
    case 4:
        return give_back(model);
    default:
        return draw(model, 3) == 0 && take_back(model);
    }
}

static void
run_seed(uint64_t seed, uint64_t *back_count)
{
    static struct model model;
    struct lane_config config = {
        .name = "test/0", .slots = SLOTS, .arena_bytes = 1 << 16, .takes_back = true, .spec = &spec
    };
    unsigned idle = 0;

    model = (struct model){ .random = seed * 2654435761u + 1 };
    assert_int_equal(lane_open(&config, &model.lane), TUNDISH_OK);
    lane_slot_init(model.lane, &model.slot);
    model.slot.columns[0].shape[0] = WORDS;
    assert_int_equal(lane_reader_open(model.lane, 0, &model.reader), TUNDISH_OK);
    attach(&model);
    while (model.taken < POSITIONS) {
        idle = step(&model) ? 0 : idle + 1;
        check_held(&model);
        if (idle > 1000)
            fail_msg("seed %u: it does not go on", (unsigned)seed);
    }
    for (uint64_t i = 0; i < POSITIONS; i++)
        assert_int_equal(model.was_taken[i] + model.is_back[i], 1);
    *back_count += model.back_count;
    leave(&model);
    lane_reader_close(model.reader);
    lane_slot_fini(&model.slot);
    lane_close(model.lane);
}

static void
each_position_goes_to_the_trainer_or_back(void **state)
{
    uint64_t back_count = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_seed(seed, &back_count);
    assert_true(back_count > SEEDS);
}

TEST_FILE(test_lane_back)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_position_goes_to_the_trainer_or_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
