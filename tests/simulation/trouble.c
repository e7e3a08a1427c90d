/* trouble.c - the server, and what befalls it and its trainers. */
#include <unistd.h>

#include "core/status.h"
#include "deliver/wakeup.h"
#include "session/checkpoint/session_state.h"
#include "session/session.h"
#include "shm/place.h"
#include "spec/spec.h"
#include "stats/stats_writer.h"
#include "world.h"

static void
serve(struct run *run)
{
    struct hub_config config = { .socket_path = world_path };
    struct spec_errors errors = { 0 };
    struct session_options options = {
        .file = run->file,
        .stream = &run->file->streams[0],
        .plan = { .worker_count = 1, .root_seed = 7 },
        .thread_count = 1 + (uint32_t)turns_draw(2),
        .server_generation = 1 + turns_draw(1000000),
        .state = run->story == STORY_STATE || is_kept(run) ? world_folder : NULL,
    };
    struct server *server = &run->server;

    server->generation = options.server_generation;
    if (hub_open(&config, &server->hub) != TUNDISH_OK ||
        stats_open(world_path, options.thread_count, &server->stats) != TUNDISH_OK ||
        wakeup_open(&server->wakeup) != TUNDISH_OK)
        complain("the server does not open: %s", tnd_error_text());
    options.stats = server->stats;
    options.wakeup = server->wakeup;
    if (session_open(&options, &errors, &server->session) != TUNDISH_OK ||
        session_state_restore(server->session) != TUNDISH_OK ||
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
    if (is_torn(run))
        tear_apart(server->session);
    hub_close(server->hub);
    session_close(server->session);
    wakeup_close(server->wakeup);
    stats_close(server->stats);
    *server = (struct server){ 0 };
}

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
    for (unsigned i = 0; i < run->trainer_count && has_survivors(run); i++) {
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
        return run->story == STORY_LANES || is_kept(run) ? (int64_t)turns_draw(2 * SECOND) : 0;
    }
}

static bool
some_are_over(const struct run *run)
{
    for (unsigned i = 0; i < run->trainer_count; i++)
        if (run->trainers[i].is_over)
            return true;
    return false;
}

static void
kill_some(struct run *run)
{
    struct trainer *victim = &run->trainers[turns_draw(run->trainer_count)];
    bool whole = turns_draw(4) == 0 && !is_queue(run);
    bool all = run->story == STORY_LANES && turns_draw(6) == 0;
    struct trainer *dead[GROUPS_MAX * REPLICAS_MAX];
    unsigned count = 0;

    /* The last one alone can tell a new server that the others have read all. */
    if (is_kept(run) && some_are_over(run))
        return;
    for (unsigned i = 0; i < run->trainer_count; i++) {
        struct trainer *trainer = &run->trainers[i];

        if ((trainer == victim || all || (whole && trainer->group == victim->group)) &&
            !trainer->is_over && !run->group_is_cut[trainer->group] && kill_trainer(trainer))
            dead[count++] = trainer;
    }
    /* Its group ends, if nobody follows; what is left of it must be told in time. Before the first
     * batch the other one would wait for it. */
    if (count > 0 && run->story == STORY_ENDING && turns_draw(2) == 0 && run->batches > 0) {
        run->group_is_cut[victim->group] = true;
        for (; count > 0; count--)
            dead[count - 1]->is_over = true;
    }
    for (; count > 0; count--) {
        dead[count - 1]->comes_after_ns = pause_before_successor(run);
        start_trainer(dead[count - 1]);
    }
}

static bool
loses_servers(const struct run *run)
{
    return has_survivors(run) || run->story == STORY_STATE || is_kept(run);
}

/* Who was not at a server that others read to their end cannot know how far that was. */
static bool
somebody_is_late(const struct run *run)
{
    for (unsigned i = 0; i < run->trainer_count; i++)
        if (!run->trainers[i].is_over && !is_here(&run->trainers[i]))
            return true;
    return false;
}

/* Who has no place yet would begin a new server at the start. */
static void
kill_server(struct run *run)
{
    for (unsigned i = 0; i < run->trainer_count && has_survivors(run); i++)
        if (run->trainers[i].token[0] == '\0' && !run->trainers[i].is_over)
            return;
    run->is_restarted = true;
    end_server(run);
    run->servers++;
    turns_sleep((int64_t)turns_draw(50 * MS));
    serve(run);
}

void
remove_state(void)
{
    static const char *const names[] = { "train.place", "train.server" };
    char path[sizeof world_folder + 32];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", world_folder, names[i]);
        unlink(path);
    }
}

/* Of lanes. The file may be newer than this says, never older. */
static void
keep_place(struct run *run)
{
    size_t count;
    uint8_t *bytes = session_state_place(run->server.session, &count);
    struct tnd_place place;

    session_state_keep(run->server.session);
    if (bytes == NULL)
        return;
    if (tnd_place_read(bytes, count, &place) != TUNDISH_OK)
        complain("the server keeps no place: %s", tnd_error_text());
    if (place.epoch > run->kept.epoch ||
        (place.epoch == run->kept.epoch && place.step > run->kept.step))
        run->kept = (struct position){ place.epoch, place.step };
    tell("the server keeps %u/%u", (unsigned)place.epoch, (unsigned)place.step);
    free(bytes);
}

/* As a server does ten times a second. What was given back before is in it. */
static void
keep_state(struct run *run)
{
    bool is_done[EPOCHS][STEPS];

    if (is_kept(run) && turns_draw(6) == 0)
        keep_place(run);
    if (run->story != STORY_STATE || turns_draw(3) == 0)
        return;
    for (unsigned e = 0; e < EPOCHS; e++)
        for (unsigned s = 0; s < STEPS; s++)
            is_done[e][s] = run->visits[e][s].is_done && run->visits[e][s].server == run->servers;
    session_state_keep(run->server.session);
    for (unsigned e = 0; e < EPOCHS; e++)
        for (unsigned s = 0; s < STEPS; s++)
            run->visits[e][s].is_kept |= is_done[e][s];
    tell("the server keeps where it stands");
}

static void
make_trouble(struct run *run)
{
    if (is_torn(run) && somebody_is_late(run))
        return;
    run->troubles++;
    if (is_torn(run)) {
        kill_server(run);
    } else if (loses_servers(run) && turns_draw(3) == 0) {
        kill_server(run);
        /* Again, before all have come to it. */
        if (is_kept(run) && turns_draw(2) == 0) {
            kill_some(run);
            turns_sleep((int64_t)turns_draw(60 * MS));
            kill_server(run);
        }
    } else
        kill_some(run);
}

static void
check_all(const struct run *run)
{
    for (unsigned r = 0; r < run->replicas && is_kept(run) && !run->group_is_cut[0]; r++)
        for (unsigned e = 0; e < EPOCHS; e++)
            for (unsigned s = 0; s < STEPS; s++)
                if (!run->is_done[r][e][s])
                    complain("replica %u: epoch %u, step %u is lost", r, e, s);
    for (unsigned g = 0; g < run->groups && !is_queue(run) && !is_kept(run); g++)
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

/* The library would take a reader that is left for a sibling of those of the next run. */
static void
end_trainers(struct run *run)
{
    for (unsigned i = 0; i < run->trainer_count; i++)
        while (!run->trainers[i].is_over && !kill_trainer(&run->trainers[i]))
            turns_sleep(MS);
}

void
direct(void *argument)
{
    struct run *run = argument;
    uint64_t batches = 0;
    int64_t progress_ns = turns_now_ns();

    world_is_torn = is_torn(run);
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
        if (turns_now_ns() - progress_ns > PATIENCE_S * SECOND && run->may_wait) {
            end_trainers(run);
            end_server(run);
            return;
        }
        if (turns_now_ns() - progress_ns > PATIENCE_S * SECOND) {
            print_standing(run);
            complain("nothing has come for %d s", PATIENCE_S);
        }
    }
    end_server(run);
    check_all(run);
}
