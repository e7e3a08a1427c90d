/* python_team.c - see python_team.h. */
#include "workers/python_team.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/lock.h"
#include "core/memory.h"

enum { LOOK_AT_STOP_NS = 50 * 1000 * 1000 };

struct python_team {
    struct python_team *next;
    char *module, *python, *folder;
    uint64_t memory_limit;
    bool is_warm;
    pthread_mutex_t forking;     /* held while interpreters of a warm team are started */
    struct python_worker forker; /* of a warm team, once it has started one */
    uint32_t limit;
    struct tnd_lock lock; /* guards what follows */
    pthread_cond_t freed;
    uint64_t *jobs; /* their numbers */
    uint32_t job_count;
    uint32_t worker_count; /* that live, or are being started */
    uint32_t starting;     /* of these, beside those who wait for one */
    uint32_t waiting;      /* who */
    uint32_t room;     /* for workers: `limit`, or as many as there were when one did not start */
    uint64_t failures; /* to start one */
    tundish_status failure; /* the last, and its text */
    char why[1024];
    _Atomic int is_closing;
    uint32_t idle_count;
    struct python_worker *idle; /* room for `limit` */
    uint64_t memory_bytes;      /* of all interpreters, as they were when they came back */
};

static struct python_team *teams;

static void
wait_awhile(struct python_team *team)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_AT_STOP_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    tnd_lock_wait_until(&team->lock, &team->freed, &until);
}

/* "augment" of "augment:train". */
static size_t
module_length(const char *name)
{
    return strcspn(name, ":");
}

static bool
is_for(const struct python_team *team, const struct python_job *job, uint32_t limit)
{
    size_t length = module_length(job->name);

    return team->limit == limit && team->is_warm == job->is_warm &&
           team->memory_limit == job->memory_limit && strlen(team->module) == length &&
           memcmp(team->module, job->name, length) == 0 && strcmp(team->python, job->python) == 0 &&
           strcmp(team->folder, job->folder) == 0;
}

static struct python_team *
team_make(const struct python_job *job, uint32_t limit)
{
    struct python_team *team = tnd_zalloc(1, sizeof *team);

    team->module = tnd_strndup(job->name, module_length(job->name));
    team->python = tnd_strdup(job->python);
    team->folder = tnd_strdup(job->folder);
    team->memory_limit = job->memory_limit;
    team->is_warm = job->is_warm;
    team->forker.socket = team->forker.arena = -1;
    pthread_mutex_init(&team->forking, NULL);
    team->limit = team->room = limit;
    team->idle = tnd_zalloc((size_t)limit + 1, sizeof *team->idle); /* turns need two */
    pthread_mutex_init(&team->lock.mutex, NULL);
    tnd_condition_open(&team->freed);
    team->next = teams;
    teams = team;
    return team;
}

struct python_team *
python_team_open(const struct python_job *job, uint32_t limit)
{
    struct python_team *team = teams;

    while (team != NULL && !is_for(team, job, limit))
        team = team->next;
    if (team == NULL)
        team = team_make(job, limit);
    tnd_lock_take(&team->lock);
    team->jobs = tnd_realloc(team->jobs, (size_t)team->job_count + 1, sizeof *team->jobs);
    team->jobs[team->job_count++] = job->number;
    tnd_lock_release(&team->lock);
    return team;
}

uint64_t
python_team_renew(struct python_team *team, uint64_t job, uint64_t number)
{
    tnd_lock_take(&team->lock);
    for (uint32_t i = 0; i < team->job_count; i++)
        if (team->jobs[i] == job)
            team->jobs[i] = number;
    tnd_lock_release(&team->lock);
    return number;
}

/* Have an interpreter drop the jobs that the team has no more. */
static void
tidy(const struct python_team *team, struct python_worker *worker)
{
    must_hold(&team->lock);
    for (size_t i = worker->known_count; i-- > 0;) {
        uint32_t k = 0;

        while (k < team->job_count && team->jobs[k] != worker->known[i].number)
            k++;
        if (k == team->job_count)
            python_worker_drop(worker, i);
    }
}

static void
team_free(struct python_team *team)
{
    struct python_team **link = &teams;

    while (*link != team)
        link = &(*link)->next;
    *link = team->next;
    atomic_store(&team->is_closing, 1);
    tnd_lock_take(&team->lock);
    while (team->starting > 0)
        wait_awhile(team);
    tnd_lock_release(&team->lock);
    for (uint32_t i = 0; i < team->idle_count; i++)
        python_worker_stop(&team->idle[i]);
    python_worker_stop(&team->forker);
    pthread_mutex_destroy(&team->forking);
    pthread_cond_destroy(&team->freed);
    pthread_mutex_destroy(&team->lock.mutex);
    free(team->module);
    free(team->python);
    free(team->folder);
    free(team->jobs);
    free(team->idle);
    free(team);
}

void
python_team_close(struct python_team *team, uint64_t job)
{
    bool is_last;

    tnd_lock_take(&team->lock);
    for (uint32_t i = 0; i < team->job_count; i++)
        if (team->jobs[i] == job)
            team->jobs[i--] = team->jobs[--team->job_count];
    for (uint32_t i = 0; i < team->idle_count; i++)
        tidy(team, &team->idle[i]);
    is_last = team->job_count == 0;
    tnd_lock_release(&team->lock);
    if (is_last)
        team_free(team);
}

/* Take an idle one whose turn it is: one that has the job, or else (`any`) the one used last. */
static bool
take_idle(struct python_team *team, const struct python_job *job, int turn, bool any,
          struct python_worker *ret_worker)
{
    uint32_t found = team->idle_count;

    must_hold(&team->lock);
    must_in_debug(team->idle_count <= team->worker_count);
    for (uint32_t i = team->idle_count; i-- > 0;) {
        const struct python_worker *idle = &team->idle[i];
        bool knows;

        if (turn != 0 && idle->turn != 0 && idle->turn != turn)
            continue;
        knows = python_worker_find(idle, job->number) != NULL;
        if (knows || (any && found == team->idle_count))
            found = i;
        if (knows)
            break;
    }
    if (found == team->idle_count)
        return false;
    *ret_worker = team->idle[found];
    team->idle[found] = team->idle[--team->idle_count];
    return true;
}

static bool
is_there(const struct python_worker *worker)
{
    struct pollfd watched = { .fd = worker->socket };

    return worker->socket >= 0 && poll(&watched, 1, 0) == 0;
}

/* Start one. The forker of a warm team does it, and is started where it has ended. */
static tundish_status
start_worker(struct python_team *team, const struct python_job *job, const _Atomic int *stop,
             struct python_worker *ret_worker)
{
    tundish_status status = TUNDISH_OK;

    if (!team->is_warm)
        return python_worker_start(job, NULL, stop, ret_worker);
    pthread_mutex_lock(&team->forking);
    if (!is_there(&team->forker)) {
        python_worker_stop(&team->forker);
        status = python_worker_start(job, NULL, stop, &team->forker);
    }
    if (status == TUNDISH_OK)
        status = python_worker_start(job, &team->forker, stop, ret_worker);
    pthread_mutex_unlock(&team->forking);
    return status;
}

/* A start in a thread of its own, with a copy of the job, which may change. */
struct start {
    struct python_team *team;
    struct python_job job;
};

static void *
start_beside(void *context)
{
    struct start *start = context;
    struct python_team *team = start->team;
    struct python_worker worker;
    tundish_status status = start_worker(team, &start->job, &team->is_closing, &worker);

    tnd_lock_take(&team->lock);
    team->starting--;
    team->room = team->limit;
    if (status == TUNDISH_OK) {
        team->idle[team->idle_count++] = worker;
    } else {
        team->failures++;
        team->failure = status;
        snprintf(team->why, sizeof team->why, "%s", tnd_error_text());
        if (--team->worker_count > 0)
            team->room = team->worker_count;
    }
    pthread_cond_broadcast(&team->freed);
    tnd_lock_release(&team->lock);
    python_job_close(&start->job);
    free(start);
    return NULL;
}

/* Start one more, in a thread of its own: imports take seconds, and another interpreter may be idle
 * before. The lock is held, but not all the time. */
static void
begin_start(struct python_team *team, const struct python_job *job)
{
    struct start *start = tnd_zalloc(1, sizeof *start);
    pthread_t thread;

    must_hold(&team->lock);
    must_in_debug(team->worker_count < team->room && team->room <= team->limit);
    start->team = team;
    python_job_copy(job, &start->job);
    team->worker_count++;
    team->starting++;
    tnd_lock_release(&team->lock);
    if (tnd_memory_for_threads(1) == TUNDISH_OK &&
        pthread_create(&thread, NULL, start_beside, start) == 0)
        pthread_detach(thread);
    else
        start_beside(start);
    tnd_lock_take(&team->lock);
}

/* Wait until one is idle. */
static tundish_status
wait_for_one(struct python_team *team, const struct python_job *job, const _Atomic int *stop)
{
    uint64_t failures = team->failures;
    tundish_status status = TUNDISH_OK;

    must_hold(&team->lock);
    team->waiting++;
    while (status == TUNDISH_OK && team->idle_count == 0) {
        if (stop != NULL && atomic_load_explicit(stop, memory_order_relaxed) != 0)
            status = tnd_fail(TUNDISH_STOPPED, "stopped while all interpreters of %s were busy",
                              job->name);
        else if (team->failures != failures && team->worker_count == 0)
            status = tnd_fail(team->failure, "%s", team->why);
        else if (team->starting < team->waiting && team->worker_count < team->room)
            begin_start(team, job);
        else
            wait_awhile(team);
    }
    team->waiting--;
    return status;
}

static void
give_up_one(struct python_team *team)
{
    tnd_lock_take(&team->lock);
    team->worker_count--;
    pthread_cond_signal(&team->freed);
    tnd_lock_release(&team->lock);
}

/* Start one here: the first, or one for its turn. */
static tundish_status
start_one(struct python_team *team, const struct python_job *job, const _Atomic int *stop,
          struct python_worker *ret_worker)
{
    tundish_status status = start_worker(team, job, stop, ret_worker);

    if (status != TUNDISH_OK)
        give_up_one(team);
    return status;
}

static tundish_status
add_job(struct python_team *team, const struct python_job *job, const _Atomic int *stop,
        struct python_worker *worker)
{
    tundish_status status;
    bool lives;

    if (python_worker_find(worker, job->number) != NULL)
        return TUNDISH_OK;
    status = python_worker_add(worker, job, stop, &lives);
    if (status != TUNDISH_OK && lives)
        python_team_give_back(team, worker);
    else if (status != TUNDISH_OK)
        python_team_end(team, worker);
    return status;
}

bool
python_team_try(struct python_team *team, const struct python_job *job, int turn,
                struct python_worker *ret_worker)
{
    bool taken;

    tnd_lock_take(&team->lock);
    taken = take_idle(team, job, turn, false, ret_worker);
    tnd_lock_release(&team->lock);
    return taken;
}

tundish_status
python_team_take(struct python_team *team, const struct python_job *job, int turn,
                 const _Atomic int *stop, struct python_worker *ret_worker)
{
    tundish_status status = TUNDISH_OK;
    bool starts, taken = false;

    tnd_lock_take(&team->lock);
    starts = team->worker_count == 0;
    if (turn != 0) {
        taken = take_idle(team, job, turn, true, ret_worker);
        starts = !taken;
    } else if (!starts) {
        status = wait_for_one(team, job, stop);
        taken = status == TUNDISH_OK && take_idle(team, job, 0, true, ret_worker);
    }
    team->worker_count += starts;
    tnd_lock_release(&team->lock);
    if (starts)
        status = start_one(team, job, stop, ret_worker);
    else if (taken)
        status = add_job(team, job, stop, ret_worker);
    ret_worker->turn = turn;
    return status;
}

/* Compare its memory with that of the last look. */
static void
weigh(struct python_team *team, struct python_worker *worker, uint64_t bytes)
{
    must_hold(&team->lock);
    must_in_debug(team->memory_bytes >= worker->counted_bytes);
    team->memory_bytes += bytes - worker->counted_bytes;
    worker->counted_bytes = bytes;
}

void
python_team_give_back(struct python_team *team, struct python_worker *worker)
{
    tnd_lock_take(&team->lock);
    weigh(team, worker, worker->memory_bytes);
    tidy(team, worker);
    team->idle[team->idle_count++] = *worker;
    pthread_cond_signal(&team->freed);
    tnd_lock_release(&team->lock);
}

void
python_team_end(struct python_team *team, struct python_worker *worker)
{
    tnd_lock_take(&team->lock);
    weigh(team, worker, 0);
    tnd_lock_release(&team->lock);
    python_worker_stop(worker);
    give_up_one(team);
}

void
python_team_show(struct python_team *team, struct python_team_figures *ret_figures)
{
    tnd_lock_take(&team->lock);
    *ret_figures =
        (struct python_team_figures){ .workers = team->worker_count,
                                      .memory_bytes = team->memory_bytes / team->job_count };
    tnd_lock_release(&team->lock);
}
