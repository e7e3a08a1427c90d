/* trainer.c - a trainer that checks what it gets, saves places, and may die at any moment. */
#include <string.h>

#include "client/reader.h"
#include "session/session.h"
#include "shm/segment.h"
#include "world.h"

/* What a batch of a replica, or of a queue, holds, the same in every run: noted when first seen. */
static int64_t expected[REPLICAS_MAX + 1][EPOCHS][STEPS][SLICE];
static uint32_t expected_rows[REPLICAS_MAX + 1][EPOCHS][STEPS];

const char *
name_of(const struct trainer *trainer)
{
    static char name[64];

    snprintf(name, sizeof name, "group %c, replica %u", 'a' + (int)trainer->group,
             trainer->replica);
    return name;
}

bool
is_queue(const struct run *run)
{
    return run->story == STORY_QUEUE || run->story == STORY_STATE;
}

bool
has_survivors(const struct run *run)
{
    return run->story == STORY_LANES || run->story == STORY_LATE || is_torn(run);
}

bool
is_kept(const struct run *run)
{
    return run->story == STORY_KEPT;
}

bool
is_torn(const struct run *run)
{
    return run->story == STORY_TORN;
}

/* The batch holds what its step always holds. Returns its rows. */
static uint32_t
check_values(const struct trainer *trainer, const tundish_batch *batch, int64_t values[SLICE])
{
    unsigned lane = is_queue(trainer->run) ? REPLICAS_MAX : trainer->replica;
    const tundish_tensor *tensor;
    uint32_t count;
    int64_t *known;

    if (batch->epoch >= EPOCHS || batch->step >= STEPS ||
        tundish_tensor_at(batch, 0, &tensor) != TUNDISH_OK)
        complain("%s: a batch that cannot be", name_of(trainer));
    count = (uint32_t)tensor->element_count;
    known = expected[lane][batch->epoch][batch->step];
    if (count == 0 || count > SLICE)
        complain("%s: %u rows", name_of(trainer), count);
    memcpy(values, tensor->data, count * sizeof *values);
    if (expected_rows[lane][batch->epoch][batch->step] == 0) {
        expected_rows[lane][batch->epoch][batch->step] = count;
        memcpy(known, values, count * sizeof *values);
    }
    if (expected_rows[lane][batch->epoch][batch->step] != count ||
        memcmp(known, values, count * sizeof *values) != 0)
        complain("%s: epoch %u, step %u has other rows than before", name_of(trainer),
                 (unsigned)batch->epoch, (unsigned)batch->step);
    return count;
}

static void
save_place(struct trainer *trainer)
{
    size_t bytes;

    if (tundish_place_token(trainer->reader, trainer->token, sizeof trainer->token, &bytes) !=
        TUNDISH_OK)
        complain("%s: no place: %s", name_of(trainer), tundish_last_error());
    trainer->saved = trainer->next;
}

/* Dying here and there is left to chance: it may be killed wherever it waits. */
static void
work(struct trainer *trainer)
{
    if (trainer->run->story == STORY_LATE && turns_draw(40) == 0)
        turns_sleep(STOP_NS);
    else if (is_kept(trainer->run) && turns_draw(8) == 0)
        turns_sleep((int64_t)turns_draw(SECOND));
    else if (trainer->is_slow && turns_draw(4) == 0)
        turns_sleep(3 * SECOND);
    else if (turns_draw(3) == 0)
        turns_sleep((int64_t)turns_draw(4 * MS));
}

static void
take_batch(struct trainer *trainer, const tundish_batch *batch)
{
    struct run *run = trainer->run;
    int64_t values[SLICE];
    uint32_t count = check_values(trainer, batch, values);

    if (batch->epoch != trainer->next.epoch || batch->step != trainer->next.step)
        complain("%s: epoch %u, step %u came where %u, %u was to come", name_of(trainer),
                 (unsigned)batch->epoch, (unsigned)batch->step, (unsigned)trainer->next.epoch,
                 (unsigned)trainer->next.step);
    trainer->next.step++;
    tell("%s takes %u/%u", name_of(trainer), (unsigned)batch->epoch, (unsigned)batch->step);
    work(trainer);
    save_place(trainer);
    tell("%s saves %u/%u", name_of(trainer), (unsigned)trainer->saved.epoch,
         (unsigned)trainer->saved.step);
    for (uint32_t i = 0; i < count; i++)
        if (++run->rows[trainer->group][batch->epoch][values[i]] > 1)
            complain("%s: row %d of epoch %u twice", name_of(trainer), (int)values[i],
                     (unsigned)batch->epoch);
    if (turns_draw(4) == 0)
        work(trainer);
    tundish_release(trainer->reader, batch);
    run->batches++;
}

/* Its first batch: what is before it was done by those who were this replica before. What is in
 * the server's file does not come again. */
static void
begin_at(struct trainer *trainer, const tundish_batch *batch)
{
    const struct run *run = trainer->run;
    struct position kept = run->kept;

    for (uint64_t i = 0; i < batch->epoch * STEPS + batch->step; i++)
        if (!run->is_done[trainer->replica][i / STEPS][i % STEPS])
            complain("%s: epoch %u, step %u is passed over", name_of(trainer),
                     (unsigned)(i / STEPS), (unsigned)(i % STEPS));
    if (batch->epoch < kept.epoch || (batch->epoch == kept.epoch && batch->step < kept.step))
        complain("%s: epoch %u, step %u comes again, the file says %u, %u", name_of(trainer),
                 (unsigned)batch->epoch, (unsigned)batch->step, (unsigned)kept.epoch,
                 (unsigned)kept.step);
    trainer->next = (struct position){ batch->epoch, batch->step };
    trainer->has_next = true;
    trainer->begun = run->servers;
}

/* Like take_batch, of a trainer that saves no places. */
static void
take_kept(struct trainer *trainer, const tundish_batch *batch)
{
    int64_t values[SLICE];

    check_values(trainer, batch, values);
    if (!trainer->has_next)
        begin_at(trainer, batch);
    if (batch->epoch != trainer->next.epoch || batch->step != trainer->next.step)
        complain("%s: epoch %u, step %u came where %u, %u was to come", name_of(trainer),
                 (unsigned)batch->epoch, (unsigned)batch->step, (unsigned)trainer->next.epoch,
                 (unsigned)trainer->next.step);
    trainer->next.step++;
    tell("%s takes %u/%u", name_of(trainer), (unsigned)batch->epoch, (unsigned)batch->step);
    work(trainer);
    trainer->run->is_done[trainer->replica][batch->epoch][batch->step] = true;
    tundish_release(trainer->reader, batch);
    trainer->run->batches++;
}

static void
return_visit(struct trainer *trainer, const tundish_batch *batch)
{
    struct visit *visit = &trainer->run->visits[batch->epoch][batch->step];

    tell("%s gives %u/%u back", name_of(trainer), (unsigned)batch->epoch, (unsigned)batch->step);
    tundish_release(trainer->reader, batch);
    /* A server that came meanwhile may have given it to another. */
    if (visit->holder == trainer && visit->life == trainer->lives)
        visit->is_done = true;
}

/* As a loop's variable does, it holds a batch until it has the next, or an end. Each of the three
 * readers holds one, and the end that they are given while they do takes a slot as well: with no
 * more than four slots all of them would wait for each other. */
static void
return_late(struct trainer *trainer, const tundish_batch *batch)
{
    const tundish_batch *before = trainer->held;
    tundish_info info = { .size = sizeof info };
    bool may_hold = tundish_get_info(trainer->reader, &info) == TUNDISH_OK && info.slot_count > 4;

    trainer->is_over_end = false;
    trainer->held = may_hold && turns_draw(2) == 0 ? batch : NULL;
    if (before != NULL)
        return_visit(trainer, before);
    if (batch != NULL && trainer->held == NULL)
        return_visit(trainer, batch);
}

/* Between two ends all is of one epoch, but for what comes again. */
static void
check_epoch(struct trainer *trainer, const tundish_batch *batch)
{
    if (!trainer->has_next)
        trainer->next.epoch = batch->epoch;
    trainer->has_next = true;
    if (batch->epoch != trainer->next.epoch && !trainer->run->is_restarted)
        complain("%s: epoch %u, step %u came in epoch %u", name_of(trainer), (unsigned)batch->epoch,
                 (unsigned)batch->step, (unsigned)trainer->next.epoch);
}

/* What nobody has given back is offered again only if its holder died, or the server did since it
 * last kept its place. */
static void
take_visit(struct trainer *trainer, const tundish_batch *batch)
{
    struct visit *visit = &trainer->run->visits[batch->epoch][batch->step];
    int64_t values[SLICE];

    check_values(trainer, batch, values);
    check_epoch(trainer, batch);
    tell("%s takes %u/%u, visited %u times", name_of(trainer), (unsigned)batch->epoch,
         (unsigned)batch->step, visit->given);
    if (visit->is_kept || (visit->is_done && !trainer->run->is_restarted))
        complain("%s: epoch %u, step %u was given back already", name_of(trainer),
                 (unsigned)batch->epoch, (unsigned)batch->step);
    if (visit->given > 0 && visit->holder->lives == visit->life && !trainer->run->is_restarted)
        complain("%s: epoch %u, step %u is somebody else's", name_of(trainer),
                 (unsigned)batch->epoch, (unsigned)batch->step);
    /* It may have been granted to one that died before it looked. */
    if (batch->visits < visit->given && !trainer->run->is_restarted)
        complain("%s: epoch %u, step %u is said to have come %u times before, not %u",
                 name_of(trainer), (unsigned)batch->epoch, (unsigned)batch->step,
                 (unsigned)batch->visits, visit->given);
    visit->given++;
    visit->is_done = false;
    visit->server = trainer->run->servers;
    visit->holder = trainer;
    visit->life = trainer->lives;
    work(trainer);
    return_late(trainer, batch);
    trainer->run->batches++;
}

/* Who stands where, for whoever has to find out why. */
void
print_standing(const struct run *run)
{
    struct feed_reader_stats lines[16];
    uint32_t count = feed_stats(session_feed(run->server.session), lines, 16);

    for (unsigned i = 0; i < run->trainer_count; i++) {
        const struct trainer *trainer = &run->trainers[i];

        fprintf(stderr, "  %s: %s, life %u, next %u/%u, saved %u/%u\n", name_of(trainer),
                trainer->is_over          ? "over"
                : trainer->reader == NULL ? "not let in"
                                          : "reads",
                trainer->lives, (unsigned)trainer->next.epoch, (unsigned)trainer->next.step,
                (unsigned)trainer->saved.epoch, (unsigned)trainer->saved.step);
    }
    for (uint32_t i = 0; i < count && i < 16; i++)
        fprintf(stderr, "  feed: group %s, replica %u: %s, published %u, taken %u, released %u\n",
                lines[i].group, lines[i].replica, lines[i].attached ? "attached" : "gone",
                (unsigned)lines[i].published, (unsigned)lines[i].taken,
                (unsigned)lines[i].released);
}

/* Has one of its group read all, whom a new server waits for in vain? */
static bool
is_left_alone(const struct trainer *trainer)
{
    const struct run *run = trainer->run;
    bool is_alone = false;

    for (unsigned i = 0; i < run->trainer_count; i++)
        is_alone |= run->trainers[i].group == trainer->group && run->trainers[i].is_over;
    return run->is_restarted && is_alone;
}

static bool
may_be_cut(const struct trainer *trainer, tundish_status status)
{
    if (is_torn(trainer->run))
        return false;
    if (trainer->run->story == STORY_SLOW)
        return trainer->is_slow && (status == TUNDISH_E_DETACHED || status == TUNDISH_E_PLACE);
    if (has_survivors(trainer->run) || is_kept(trainer->run))
        return trainer->run->group_is_cut[trainer->group] ||
               (is_left_alone(trainer) && status == TUNDISH_E_PEER_LOST);
    return trainer->run->group_is_cut[trainer->group] && status == TUNDISH_E_PEER_LOST;
}

/* It has read all, perhaps of a server that is gone. The others may have begun at a later one,
 * which waits for it. */
static void
note_waiting(const struct trainer *trainer)
{
    struct run *run = trainer->run;

    for (unsigned i = 0; i < run->trainer_count && is_kept(run); i++) {
        const struct trainer *other = &run->trainers[i];

        run->may_wait |= !other->is_over && (!other->has_next || other->begun > trainer->begun);
    }
}

static void
end_trainer(struct trainer *trainer, bool is_cut)
{
    tundish_reader *reader = trainer->reader;

    note_waiting(trainer);
    trainer->reader = NULL;
    trainer->is_over = true;
    trainer->run->group_is_cut[trainer->group] |= is_cut;
    tundish_close(reader);
}

static bool
enter(struct trainer *trainer)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    char group[2] = { (char)('a' + trainer->group), '\0' };
    tundish_status status;

    options.server = world_path;
    options.stream = "train";
    options.group = group;
    options.replica = (int32_t)trainer->replica;
    options.server_timeout_ns = 1000 * SECOND;
    options.place_token = trainer->token[0] == '\0' ? NULL : trainer->token;
    status = tundish_open(&options, &trainer->reader);
    tell("%s opens: %s", name_of(trainer), tundish_status_name(status));
    if (status == TUNDISH_OK)
        return true;
    if (!may_be_cut(trainer, status)) {
        print_standing(trainer->run);
        complain("%s: open: %s: %s", name_of(trainer), tundish_status_name(status),
                 tundish_last_error());
    }
    trainer->is_over = trainer->run->group_is_cut[trainer->group] = true;
    return false;
}

static void
train(void *argument)
{
    struct trainer *trainer = argument;
    unsigned told = 0;

    if (trainer->comes_after_ns > 0)
        turns_sleep(trainer->comes_after_ns);
    if (!enter(trainer))
        return;
    for (;;) {
        const tundish_batch *batch;
        tundish_status status = tundish_next(trainer->reader, TUNDISH_FOREVER, &batch);

        if (status != TUNDISH_OK)
            tell("%s: %s", name_of(trainer), tundish_status_name(status));
        if (status == TUNDISH_OK) {
            told = 0;
            if (is_queue(trainer->run))
                take_visit(trainer, batch);
            else if (is_kept(trainer->run))
                take_kept(trainer, batch);
            else
                take_batch(trainer, batch);
        } else if (status == TUNDISH_END) {
            trainer->next = (struct position){ trainer->next.epoch + 1, 0 };
            if (turns_draw(2) == 0 || trainer->is_over_end)
                return_late(trainer, NULL);
            else
                trainer->is_over_end = trainer->held != NULL;
        } else if (status == TUNDISH_END_OF_STREAM) {
            if (trainer->held != NULL)
                return_visit(trainer, trainer->held);
            trainer->held = NULL;
            end_trainer(trainer, false);
            return;
        } else if ((status != TUNDISH_E_PEER_LOST && status != TUNDISH_E_SERVER_GONE) ||
                   ++told > 20) {
            if (!may_be_cut(trainer, status))
                complain("%s: %s: %s", name_of(trainer), tundish_status_name(status),
                         tundish_last_error());
            end_trainer(trainer, true);
            return;
        }
    }
}

void
start_trainer(struct trainer *trainer)
{
    trainer->next = trainer->saved;
    trainer->has_next = false;
    trainer->turn = turns_start(train, trainer);
}

bool
is_here(const struct trainer *trainer)
{
    return trainer->reader != NULL && trainer->reader->attachments != NULL &&
           trainer->reader->attachments->view.server_generation == trainer->run->server.generation;
}

/* As the kernel does it to a process: everything closed, nothing said. Of a trainer that attaches
 * just now only it knows what there is to close. False: not at this moment. */
bool
kill_trainer(struct trainer *trainer)
{
    tundish_reader *reader = trainer->reader;

    if (reader == NULL || reader->is_gone_told || !turns_kill(trainer->turn))
        return false;
    tnd_reader_unregister(reader);
    for (struct attachment *at = reader->attachments; at != NULL; at = at->next) {
        tnd_segment_unmap(at->returns, at->welcome.returns_bytes);
        at->returns = NULL;
    }
    reader->process = 0; /* like a child's copy: closed without a word */
    tundish_close(reader);
    trainer->reader = NULL;
    trainer->held = NULL;
    trainer->lives++;
    tell("%s is killed", name_of(trainer));
    return true;
}
