/* test_shards.c - a tracker of shards and made-up readers, taken through interleavings by a seed.
 *
 * No thread and no sleep: one loop draws what happens next, and time is a number. Readers come,
 * take shards, finish them, wait for more with some unfinished, die with some unfinished, leave an
 * epoch for the next, have taken back what they did not begin while others want it. What must hold:
 * no shard of an epoch is finished twice, nobody who is in an epoch is told that it is over before
 * each is finished once or its reader waits beside it, a reader that comes and wants a whole epoch
 * begins one of which nothing is finished, one that is far behind begins as one that comes, and it
 * always goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "session/evaluation/shards.h"
#include "unit/test_file.h"

enum { READERS = 4, SHARDS_MAX = 24, EPOCHS = 4, SEEDS = 2000 };

struct reader {
    bool is_here;
    uint32_t number, held_count, held[SHARDS_MAX];
    uint64_t epoch;
    bool is_in, had_some;          /* it has asked in the epoch; finished a shard of it */
    bool waits_beside[SHARDS_MAX]; /* of what it has */
    uint64_t told_epoch;           /* the last that it was told the end of */
    bool kept[SHARDS_MAX];         /* what it held then */
};

struct model {
    uint64_t random;
    int64_t now_ns;
    struct shards *shards;
    struct reader readers[READERS];
    uint32_t finished[EPOCHS + 1][SHARDS_MAX];
    bool is_lost[EPOCHS + 1][SHARDS_MAX]; /* its reader died beside it: perhaps nobody does it */
    bool is_over;
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
come(struct model *model, struct reader *reader)
{
    bool wants_whole = draw(model, 2) == 0;
    struct shards_membership membership;

    assert_int_equal(shards_join(model->shards, model->now_ns, &membership), TUNDISH_OK);
    *reader = (struct reader){
        .is_here = true,
        .number = membership.reader,
        .epoch = membership.epoch + (wants_whole && membership.done > 0),
    };
    for (uint32_t i = 0; wants_whole && i < SHARDS_MAX; i++)
        assert_int_equal(model->finished[reader->epoch][i], 0);
}

/* Does a reader that is here wait beside it? */
static bool
is_beside(const struct model *model, uint64_t epoch, uint32_t shard)
{
    for (uint32_t i = 0; i < READERS; i++)
        for (uint32_t k = 0; k < model->readers[i].held_count; k++)
            if (model->readers[i].is_here && model->readers[i].waits_beside[shard] &&
                model->readers[i].epoch == epoch && model->readers[i].held[k] == shard)
                return true;
    return false;
}

static void
wait_beside(struct model *model, struct reader *reader)
{
    for (uint32_t i = 0; i < reader->held_count; i++) {
        reader->waits_beside[reader->held[i]] = true;
        shards_wait_beside(model->shards, reader->number, reader->epoch, reader->held[i]);
    }
}

/* What it holds counts from now on as finished by it. */
static void
end_epoch(struct model *model, struct reader *reader)
{
    memset(reader->kept, 0, sizeof reader->kept);
    for (uint32_t i = 0; i < reader->held_count; i++) {
        assert_true(reader->waits_beside[reader->held[i]]);
        reader->kept[reader->held[i]] = true;
        model->finished[reader->epoch][reader->held[i]]++;
    }
    memset(reader->waits_beside, 0, sizeof reader->waits_beside);
    reader->held_count = 0;
    reader->is_in = reader->had_some = false;
    reader->told_epoch = reader->epoch++;
}

/* It begins the next epoch, and does not do what it has. */
static void
leave_epoch(struct model *model, struct reader *reader)
{
    for (uint32_t i = 0; i < reader->held_count; i++) {
        model->is_lost[reader->epoch][reader->held[i]] |= reader->waits_beside[reader->held[i]];
        shards_give_back(model->shards, reader->number, reader->epoch, reader->held[i]);
    }
    memset(reader->waits_beside, 0, sizeof reader->waits_beside);
    reader->held_count = 0;
    reader->is_in = reader->had_some = false;
    reader->epoch++;
}

/* What it waits beside it has begun. */
static void
take_back(struct model *model, struct reader *reader)
{
    uint32_t kept = 0, left = 0;

    for (uint32_t i = 0; i < reader->held_count; i++)
        left += reader->waits_beside[reader->held[i]];
    for (uint32_t i = 0; i < reader->held_count; i++) {
        bool is_out = left == 0 && !reader->had_some;

        if (reader->waits_beside[reader->held[i]]) {
            reader->held[kept++] = reader->held[i];
            continue;
        }
        shards_take_back(model->shards, reader->number, reader->epoch, reader->held[i], is_out);
        reader->is_in &= !is_out;
    }
    reader->held_count = kept;
}

static void
die(struct model *model, struct reader *reader)
{
    shards_leave(model->shards, reader->number);
    for (uint32_t i = 0; i < reader->held_count; i++)
        model->is_lost[reader->epoch][reader->held[i]] |= reader->waits_beside[reader->held[i]];
    for (uint32_t i = 0; i < SHARDS_MAX; i++)
        if (reader->kept[i]) {
            model->is_lost[reader->told_epoch][i] = true;
            model->finished[reader->told_epoch][i]--;
        }
    reader->is_here = false;
}

static void
check_all_finished(const struct model *model, uint64_t epoch)
{
    uint32_t count = shards_count(model->shards);

    assert_true(count > 0);
    for (uint32_t i = 0; i < count; i++)
        if (!model->is_lost[epoch][i] || model->finished[epoch][i] > 0)
            assert_int_equal(model->finished[epoch][i] + is_beside(model, epoch, i), 1);
}

static void
be_told_end(struct model *model, struct reader *reader, uint64_t begin)
{
    assert_true(begin > reader->epoch);
    if (reader->is_in)
        check_all_finished(model, reader->epoch);
    if (reader->had_some || reader->held_count > 0 || begin == reader->epoch + 1) {
        end_epoch(model, reader);
        return;
    }
    reader->is_in = false;
    reader->epoch = begin;
    for (uint32_t i = 0; begin <= EPOCHS && i < SHARDS_MAX; i++)
        assert_true(model->finished[begin][i] == 0 || model->finished[begin][i] == 1);
}

static void
take(struct model *model, struct reader *reader)
{
    struct shards_given given;
    uint32_t shard;

    switch (shards_take(model->shards, reader->number, reader->epoch, model->now_ns, &given)) {
    case SHARDS_TAKEN:
        shard = given.shard;
        assert_true(shard < shards_count(model->shards));
        assert_int_equal(model->finished[reader->epoch][shard], 0);
        for (uint32_t i = 0; i < READERS; i++)
            for (uint32_t k = 0; model->readers[i].is_here && k < model->readers[i].held_count; k++)
                assert_true(model->readers[i].epoch != reader->epoch ||
                            model->readers[i].held[k] != shard);
        reader->held[reader->held_count++] = shard;
        reader->is_in = true;
        break;
    case SHARDS_WAIT:
        reader->is_in = true;
        break;
    case SHARDS_LOST:
        fail();
        break;
    case SHARDS_OVER:
        be_told_end(model, reader, given.epoch);
        break;
    }
}

static void
finish(struct model *model, struct reader *reader)
{
    uint32_t which = (uint32_t)draw(model, reader->held_count);

    shards_finish(model->shards, reader->number, reader->epoch, reader->held[which]);
    model->finished[reader->epoch][reader->held[which]]++;
    reader->had_some = true;
    reader->waits_beside[reader->held[which]] = false;
    reader->held[which] = reader->held[--reader->held_count];
}

static void
step(struct model *model)
{
    struct reader *reader = &model->readers[draw(model, READERS)];

    model->now_ns++;
    if (!reader->is_here) {
        if (draw(model, 4) == 0)
            come(model, reader);
    } else if (draw(model, 40) == 0) {
        die(model, reader);
    } else if (draw(model, 60) == 0) {
        leave_epoch(model, reader);
    } else if (draw(model, 8) == 0 &&
               shards_are_wanted(model->shards, reader->number, model->now_ns)) {
        take_back(model, reader);
    } else if (reader->held_count > 0 && draw(model, 6) == 0) {
        wait_beside(model, reader);
    } else if (reader->held_count > 0 && draw(model, 2) == 0) {
        finish(model, reader);
    } else {
        take(model, reader);
    }
    model->is_over |= reader->is_here && reader->epoch >= EPOCHS;
}

static void
run_seed(uint64_t seed)
{
    struct model model = { .random = seed * 2654435761u + 1 };
    uint32_t count = seed % 4 == 0 ? 0 : (uint32_t)(seed % SHARDS_MAX) + 1;
    unsigned steps = 0;

    model.shards = shards_open(count, 20, NULL, 0);
    while (!model.is_over) {
        step(&model);
        if (++steps > 100000)
            fail_msg("seed %u: it does not go on", (unsigned)seed);
    }
    shards_close(model.shards);
}

static void
every_interleaving_finishes_each_shard_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_seed(seed);
}

TEST_FILE(test_shards)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_interleaving_finishes_each_shard_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
