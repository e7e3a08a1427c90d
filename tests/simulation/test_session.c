/* test_session.c - a server, its session and its trainers, taken through interleavings by a seed.
 *
 * The code is the real one: hub, feed, lanes, dealing and working threads, and the library that
 * trainers use. Trainers die at any moment between two locks and are followed by others that begin
 * at the last place they saved; servers die and come back to the survivors; groups are left by all,
 * or are too slow and cut off. What must hold: between two places a group sees every batch once and
 * in order, with the rows that it has without any trouble; nobody waits for ever.
 *
 * SEED=N runs that one alone and tells what happens, RUNS=N so many, SECONDS=N so long, with seeds
 * that no other soak had. What fails prints its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/reader.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "deliver/bell.h"
#include "session/session.h"
#include "session/session_state.h"
#include "shm/segment.h"
#include "spec/spec.h"
#include "stats/stats.h"
#include "turns.h"

#if defined __SANITIZE_ADDRESS__
enum { RUNS_DEFAULT = 100 };
#else
enum { RUNS_DEFAULT = 600 };
#endif

enum {
    ROWS = 60,
    BATCH = 6,
    STEPS = ROWS / BATCH,
    EPOCHS = 2,
    REPLICAS_MAX = 2,
    GROUPS_MAX = 3,
    SLICE = BATCH,
    TROUBLES_MAX = 6,
    TOKEN_BYTES = 1024,
    PATIENCE_S = 300 /* of made-up time without a batch */
};

static const int64_t MS = 1000000, SECOND = 1000000000;
static const int64_t LATE_NS = 400000000; /* about what a new server waits for survivors */

/* What a run is about. */
enum story { STORY_LANES, STORY_QUEUE, STORY_ENDING, STORY_SLOW, STORY_STATE, STORY_COUNT };

struct position {
    uint64_t epoch, step;
};

struct trainer {
    struct run *run;
    unsigned group, replica;
    struct turn *turn;
    tundish_reader *reader; /* NULL: it has not been let in yet */
    bool is_over;           /* END_OF_STREAM, or cut off where that may be */
    bool is_slow;
    bool is_late;         /* away when a new server began: it may have gone on without this group */
    struct position next; /* what comes next by its own account */
    struct position saved;   /* what came next when it last saved a place */
    char token[TOKEN_BYTES]; /* that place; "": none yet */
    unsigned lives;
    int64_t comes_after_ns;
};

/* A queue's batch: given to whom, and what became of it; is_kept: the state that its server keeps
 * says that it was visited. */
struct visit {
    bool is_kept;
    unsigned given;
    unsigned server; /* which one it was of */
    const struct trainer *holder;
    unsigned life;
    bool is_done;
};

struct server {
    struct stats *stats;
    struct bell *bell;
    struct hub *hub;
    struct session *session;
};

struct run {
    uint64_t seed;
    enum story story;
    unsigned groups, replicas, trainer_count;
    struct spec_file *file;
    struct server server;
    bool is_restarted, has_state;
    struct trainer trainers[GROUPS_MAX * REPLICAS_MAX];
    bool group_is_cut[GROUPS_MAX];
    unsigned troubles, servers;
    uint64_t batches;
    uint8_t rows[GROUPS_MAX][EPOCHS][ROWS]; /* how often a row was kept by a place */
    struct visit visits[EPOCHS][STEPS];
};

static char folder[] = "/tmp/tundish-simulation-XXXXXX";
static char path[64];
static uint64_t present_seed;

/* What a batch of a replica, or of a queue, holds, the same in every run: noted when first seen. */
static int64_t expected[REPLICAS_MAX + 1][EPOCHS][STEPS][SLICE];
static uint32_t expected_rows[REPLICAS_MAX + 1][EPOCHS][STEPS];

#define complain(...)                                                                              \
    do {                                                                                           \
        fprintf(stderr, "SEED=%llu: ", (unsigned long long)present_seed);                          \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fprintf(stderr, "\n");                                                                     \
        abort();                                                                                   \
    } while (false)

static bool is_told; /* of everything that happens: one seed is played alone */

#define tell(...)                                                                                  \
    do {                                                                                           \
        if (is_told) {                                                                             \
            fprintf(stderr, "%10.3f ms  ", (double)(turns_now_ns() % (1000 * SECOND)) / 1e6);      \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
        }                                                                                          \
    } while (false)

/* --- a trainer ----------------------------------------------------------------------------------
 */

static const char *
name_of(const struct trainer *trainer)
{
    static char name[64];

    snprintf(name, sizeof name, "group %c, replica %u", 'a' + (int)trainer->group,
             trainer->replica);
    return name;
}

/* A queue, whose server keeps its place and comes back (STATE) or not. */
static bool
is_queue(const struct run *run)
{
    return run->story == STORY_QUEUE || run->story == STORY_STATE;
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
    if (trainer->is_slow && turns_draw(4) == 0)
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

/* What nobody has given back is offered again only if its holder died, or the server did since it
 * last kept its place. */
static void
take_visit(struct trainer *trainer, const tundish_batch *batch)
{
    struct visit *visit = &trainer->run->visits[batch->epoch][batch->step];
    int64_t values[SLICE];

    check_values(trainer, batch, values);
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
    tundish_release(trainer->reader, batch);
    /* A server that came meanwhile may have given it to another. */
    if (visit->holder == trainer)
        visit->is_done = true;
    tell("%s gives %u/%u back", name_of(trainer), (unsigned)batch->epoch, (unsigned)batch->step);
    trainer->run->batches++;
}

/* Who stands where, for whoever has to find out why. */
static void
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
    if (trainer->run->story == STORY_SLOW)
        return trainer->is_slow && (status == TUNDISH_E_DETACHED || status == TUNDISH_E_PLACE);
    if (trainer->run->story == STORY_LANES)
        return trainer->run->group_is_cut[trainer->group] ||
               (trainer->is_late && status == TUNDISH_E_PLACE) ||
               (is_left_alone(trainer) && status == TUNDISH_E_PEER_LOST);
    return trainer->run->group_is_cut[trainer->group] && status == TUNDISH_E_PEER_LOST;
}

static void
end_trainer(struct trainer *trainer, bool is_cut)
{
    tundish_reader *reader = trainer->reader;

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

    options.server = path;
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
            else
                take_batch(trainer, batch);
        } else if (status == TUNDISH_END) {
            trainer->next = (struct position){ trainer->next.epoch + 1, 0 };
        } else if (status == TUNDISH_END_OF_STREAM) {
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

static void
start_trainer(struct trainer *trainer)
{
    trainer->next = trainer->saved;
    trainer->turn = turns_start(train, trainer);
}

/* As the kernel does it to a process: everything closed, nothing said. Of a trainer that attaches
 * just now only it knows what there is to close. False: not at this moment. */
static bool
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
    trainer->lives++;
    tell("%s is killed", name_of(trainer));
    return true;
}

/* --- the server ---------------------------------------------------------------------------------
 */

static void
serve(struct run *run)
{
    struct hub_config config = { .socket_path = path };
    struct spec_errors errors = { 0 };
    struct session_options options = {
        .file = run->file,
        .stream = &run->file->streams[0],
        .plan = { .worker_count = 1, .root_seed = 7 },
        .thread_count = 1 + (uint32_t)turns_draw(2),
        .server_generation = 1 + turns_draw(1000000),
    };
    struct server *server = &run->server;

    if (hub_open(&config, &server->hub) != TUNDISH_OK ||
        stats_open(path, options.thread_count, &server->stats) != TUNDISH_OK ||
        bell_open(&server->bell) != TUNDISH_OK)
        complain("the server does not open: %s", tnd_error_text());
    options.stats = server->stats;
    options.bell = server->bell;
    if (session_open(&options, &errors, &server->session) != TUNDISH_OK ||
        (run->story == STORY_STATE &&
         session_state_restore(server->session, folder) != TUNDISH_OK) ||
        hub_add(server->hub, session_feed(server->session)) != TUNDISH_OK ||
        session_start(server->session) != TUNDISH_OK || hub_start(server->hub) != TUNDISH_OK)
        complain("the session does not open: %s", tnd_error_text());
    tell("the server is ready");
}

/* Sockets first, as when it is killed; what its threads still do, nobody hears of. */
static void
end_server(struct run *run)
{
    struct server *server = &run->server;

    tell("the server ends");
    hub_close(server->hub);
    session_close(server->session);
    bell_close(server->bell);
    stats_close(server->stats);
    *server = (struct server){ 0 };
}

/* --- what befalls them --------------------------------------------------------------------------
 */

static bool
is_over(const struct run *run)
{
    for (unsigned i = 0; i < run->trainer_count; i++)
        if (!run->trainers[i].is_over)
            return false;
    return true;
}

/* A launcher ends what is left of a group of which one was refused. */
static void
end_refused_groups(struct run *run)
{
    for (unsigned i = 0; i < run->trainer_count && run->story == STORY_LANES; i++) {
        struct trainer *trainer = &run->trainers[i];

        if (run->group_is_cut[trainer->group] && !trainer->is_over && kill_trainer(trainer))
            trainer->is_over = true;
    }
}

/* Sometimes later than a new server waits for those who outlived the last. */
static int64_t
pause_before_successor(const struct run *run)
{
    switch (turns_draw(3)) {
    case 0:
        return 0;
    case 1:
        return (int64_t)turns_draw(20 * MS);
    default:
        return run->story == STORY_LANES ? (int64_t)turns_draw(2 * SECOND) : 0;
    }
}

static void
kill_some(struct run *run)
{
    struct trainer *victim = &run->trainers[turns_draw(run->trainer_count)];
    bool whole = turns_draw(4) == 0 && !is_queue(run);
    bool all = run->story == STORY_LANES && turns_draw(6) == 0;
    struct trainer *dead[GROUPS_MAX * REPLICAS_MAX];
    unsigned count = 0;

    for (unsigned i = 0; i < run->trainer_count; i++) {
        struct trainer *trainer = &run->trainers[i];

        if ((trainer == victim || all || (whole && trainer->group == victim->group)) &&
            !trainer->is_over && !run->group_is_cut[trainer->group] && kill_trainer(trainer))
            dead[count++] = trainer;
    }
    /* Its group ends, if nobody follows; what is left of it must be told in time. */
    if (count > 0 && run->story == STORY_ENDING && turns_draw(2) == 0) {
        run->group_is_cut[victim->group] = true;
        for (; count > 0; count--)
            dead[count - 1]->is_over = true;
    }
    for (; count > 0; count--) {
        dead[count - 1]->comes_after_ns = pause_before_successor(run);
        dead[count - 1]->is_late |= run->is_restarted && dead[count - 1]->comes_after_ns > LATE_NS;
        start_trainer(dead[count - 1]);
    }
}

/* Who has no place yet would begin a new server at the start. */
static void
kill_server(struct run *run)
{
    if (run->story == STORY_STATE && !run->has_state)
        return;
    for (unsigned i = 0; i < run->trainer_count && run->story == STORY_LANES; i++)
        if (run->trainers[i].token[0] == '\0' && !run->trainers[i].is_over)
            return;
    for (unsigned i = 0; i < run->trainer_count; i++)
        run->trainers[i].is_late |= run->trainers[i].comes_after_ns > LATE_NS;
    run->is_restarted = true;
    end_server(run);
    run->servers++;
    turns_sleep((int64_t)turns_draw(50 * MS));
    serve(run);
}

static const char *
state_path(void)
{
    static char name[sizeof folder + 32];

    snprintf(name, sizeof name, "%s/train.place", folder);
    return name;
}

/* As a server does ten times a second. What was given back before is in it. */
static void
keep_state(struct run *run)
{
    bool is_done[EPOCHS][STEPS];

    if (run->story != STORY_STATE || turns_draw(3) == 0)
        return;
    for (unsigned e = 0; e < EPOCHS; e++)
        for (unsigned s = 0; s < STEPS; s++)
            is_done[e][s] = run->visits[e][s].is_done && run->visits[e][s].server == run->servers;
    if (session_state_keep(run->server.session, folder) != TUNDISH_OK)
        complain("the state is not kept: %s", tnd_error_text());
    for (unsigned e = 0; e < EPOCHS; e++)
        for (unsigned s = 0; s < STEPS; s++)
            run->visits[e][s].is_kept |= is_done[e][s];
    run->has_state = access(state_path(), F_OK) == 0; /* nothing may have been published yet */
    tell("the server keeps where it stands");
}

static void
make_trouble(struct run *run)
{
    run->troubles++;
    if ((run->story == STORY_LANES || run->story == STORY_STATE) && turns_draw(3) == 0)
        kill_server(run);
    else
        kill_some(run);
}

static void
check_all(const struct run *run)
{
    for (unsigned g = 0; g < run->groups && !is_queue(run); g++)
        for (unsigned e = 0; e < EPOCHS && !run->group_is_cut[g]; e++)
            for (unsigned row = 0; row < ROWS; row++)
                if (run->rows[g][e][row] != 1)
                    complain("group %c: row %u of epoch %u is lost", 'a' + (int)g, row, e);
    for (unsigned e = 0; e < EPOCHS && is_queue(run); e++)
        for (unsigned s = 0; s < STEPS; s++)
            if (!run->visits[e][s].is_done &&
                (run->visits[e][s].given == 0 ||
                 run->visits[e][s].holder->lives == run->visits[e][s].life))
                complain("epoch %u, step %u was not visited", e, s);
}

static void
direct(void *argument)
{
    struct run *run = argument;
    uint64_t batches = 0;
    int64_t progress_ns = turns_now_ns();

    serve(run);
    for (unsigned i = 0; i < run->trainer_count; i++)
        start_trainer(&run->trainers[i]);
    while (!is_over(run)) {
        turns_sleep((int64_t)turns_draw(6 * MS));
        keep_state(run);
        if (run->troubles < TROUBLES_MAX && turns_draw(3) == 0)
            make_trouble(run);
        end_refused_groups(run);
        if (run->batches != batches)
            progress_ns = turns_now_ns();
        batches = run->batches;
        if (turns_now_ns() - progress_ns > PATIENCE_S * SECOND) {
            print_standing(run);
            complain("nothing has come for %d s", PATIENCE_S);
        }
    }
    end_server(run);
    check_all(run);
}

/* --- runs ---------------------------------------------------------------------------------------
 */

static struct spec_file *
pipeline_of(const struct run *run)
{
    static const char *const delivers[STORY_COUNT] = {
        "rejoin: 10s, group_wait: 5s", /* a server may come back to one that is left */
        "rejoin: 60s",
        "rejoin: 50ms",
        "rejoin: 60s, slow_group: detach",
        "rejoin: 60s",
    };
    struct spec_errors errors = { 0 };
    struct spec_file *file;
    char text[1024], distribute[128];

    if (is_queue(run))
        snprintf(distribute, sizeof distribute, "{delivery: queue}");
    else
        snprintf(distribute, sizeof distribute, "{replicas: %u, groups: %u}", run->replicas,
                 run->groups);
    snprintf(text, sizeof text,
             "seed: 5\nstreams:\n  train:\n    dataset:\n      - range: %d\n"
             "      - shuffle: {buffer_size: 16}\n      - batch: %d\n"
             "    distribute: %s\n    deliver: {epochs: %d, slots: %u, memory: memfd, %s}\n",
             ROWS, BATCH, distribute, EPOCHS, 3 + (unsigned)(run->seed % 3), delivers[run->story]);
    if (spec_open_text(text, strlen(text), "simulation.yaml", "/tmp", &errors, &file) != TUNDISH_OK)
        complain("%s", spec_errors_text(&errors));
    return file;
}

/* Seeds that are kept mean the same for good. */
static enum story
story_of(uint64_t seed)
{
    return seed / 128 % 5 == 4 ? STORY_STATE : (enum story)(seed % STORY_STATE);
}

static void
play(uint64_t seed)
{
    struct run run = { .seed = seed, .story = story_of(seed) };

    present_seed = seed;
    is_told = getenv("SEED") != NULL;
    run.replicas = is_queue(&run) ? 1 : REPLICAS_MAX;
    run.groups = is_queue(&run) ? 3 : 2;
    run.trainer_count = run.groups * run.replicas;
    for (unsigned i = 0; i < run.trainer_count; i++)
        run.trainers[i] = (struct trainer){
            .run = &run,
            .group = i / run.replicas,
            .replica = i % run.replicas,
            .is_slow = run.story == STORY_SLOW && i / run.replicas == 1,
        };
    run.file = pipeline_of(&run);
    turns_run(seed, direct, &run);
    spec_close(run.file);
    unlink(state_path());
}

static uint64_t
number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void
every_interleaving_brings_every_row_once(void **state)
{
    uint64_t seconds = number_of("SECONDS", 0);
    uint64_t first = number_of("SEED", seconds > 0 ? (uint64_t)time(NULL) << 20 : 1);
    uint64_t count = getenv("SEED") != NULL ? 1 : number_of("RUNS", RUNS_DEFAULT);
    time_t until = time(NULL) + (time_t)seconds;

    (void)state;
    for (uint64_t seed = first; seconds > 0 ? time(NULL) < until : seed < first + count; seed++)
        play(seed);
}

/* What soaks have found: a survivor whose sibling had read all; a successor whose place stood
 * before an epoch's end that a survivor had passed over; an end kept in a lane that it filled; a
 * group that came back whole, when the only other one had ended. */
static void
what_once_went_wrong_does_not_again(void **state)
{
    static const uint64_t seeds[] = { 1882521938690860, 1882522405311424, 1882523146649672,
                                      1882523377337630, 1882523696104012, 1882523824033598,
                                      1882524196274826 };

    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        play(seeds[i]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_once_went_wrong_does_not_again),
        cmocka_unit_test(every_interleaving_brings_every_row_once),
    };
    int result;

    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof path, "%s/server", folder);
    tnd_log_set_level(TND_LOG_ERROR);
    result = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return result;
}
