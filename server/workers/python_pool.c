/* python_pool.c - see python_pool.h. */
#include "workers/python_pool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "core/memory.h"
#include "workers/described_columns.h"
#include "workers/python_team.h"

enum { DEATHS_MAX = 2 };

/* Stretches of time that overlap, such as calls under way. */
struct spans {
    uint64_t count;    /* that have not ended */
    uint64_t since_ns; /* the sum of their beginnings */
    uint64_t ended_ns; /* how long the others were */
};

struct python_pool {
    struct python_pool *next;
    struct python_job job;
    struct python_team *team;   /* who does it */
    char *asked;                /* its text, before the output was learned */
    uint32_t limit, references; /* by `pools_lock` */
    uint64_t number, length, digest;
    _Atomic bool has_changed; /* since the first interpreter was started; said once */
    struct schema columns;    /* that were learned; none: they were given, or are not known */
    pthread_mutex_t learning; /* held while they are */
    pthread_mutex_t lock;     /* guards what follows */
    struct spans busy, waited;
    uint64_t rows, restarts, cpu_ns; /* of all interpreters, those that ended too */
};

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static struct python_pool *pools;
static _Atomic uint64_t numbers; /* of pools and of jobs */
static _Atomic int turn_of_all;

static bool
is_same_job(const struct python_pool *pool, const struct python_job *job)
{
    return strcmp(pool->job.name, job->name) == 0 && strcmp(pool->job.python, job->python) == 0 &&
           strcmp(pool->job.folder, job->folder) == 0 && strcmp(pool->asked, job->text) == 0 &&
           pool->job.memory_limit == job->memory_limit;
}

/* pools_lock is held. */
static void
pool_free(struct python_pool *pool)
{
    python_team_close(pool->team, pool->job.number);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->learning);
    schema_close(&pool->columns);
    free(pool->asked);
    python_job_close(&pool->job);
    free(pool);
}

/* Keep what was learned: with it the job is another one. `worker` has the old one, and is given the
 * new one before it drops that: so the user's object stays. */
static tundish_status
keep_columns(struct python_pool *pool, struct schema *columns, struct python_worker *worker)
{
    size_t asked = strlen(pool->asked) - 1, bytes = 0; /* without its last brace */
    char *text = NULL;
    struct json json;
    FILE *file = open_memstream(&text, &bytes);
    bool lives;

    tnd_must_have(file != NULL);
    pool->columns = *columns;
    *columns = (struct schema){ 0 };
    fprintf(file, "%.*s,\"learned\":true,\"outputs\":", (int)asked, pool->asked);
    json_start(&json, file);
    described_columns_write(&json, &pool->columns, NULL, pool->columns.count);
    fputc('}', file);
    tnd_must_have(fclose(file) == 0);
    free((void *)(uintptr_t)pool->job.text);
    pool->job.text = text;
    pool->job.number = python_team_renew(pool->team, pool->job.number, ++numbers);
    return python_worker_add(worker, &pool->job, NULL, &lives);
}

static int
turn_now(void)
{
    return atomic_load_explicit(&turn_of_all, memory_order_relaxed);
}

/* Have the first interpreter say what the job is. */
static tundish_status
introduce(struct python_pool *pool)
{
    struct python_worker worker;
    struct python_hello *hello;
    tundish_status status = python_team_take(pool->team, &pool->job, turn_now(), NULL, &worker);

    if (status != TUNDISH_OK)
        return status;
    hello = python_worker_find(&worker, pool->job.number);
    pool->length = hello->length;
    pool->digest = hello->digest;
    if (hello->described.count > 0)
        status = keep_columns(pool, &hello->described, &worker);
    if (status == TUNDISH_OK)
        python_team_give_back(pool->team, &worker);
    else
        python_team_end(pool->team, &worker);
    return status;
}

static tundish_status
pool_make(const struct python_job *job, uint32_t limit, struct python_pool **ret_pool)
{
    struct python_pool *pool = tnd_zalloc(1, sizeof *pool);
    tundish_status status;

    python_job_copy(job, &pool->job);
    pool->number = pool->job.number = ++numbers;
    pool->limit = limit;
    pool->asked = tnd_strdup(job->text);
    pthread_mutex_init(&pool->learning, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pool->team = python_team_open(&pool->job, limit);
    status = introduce(pool);
    if (status != TUNDISH_OK)
        pool_free(pool);
    else
        *ret_pool = pool;
    return status;
}

tundish_status
python_pool_open(const struct python_job *job, uint32_t worker_limit, struct python_pool **ret_pool)
{
    struct python_pool *pool;
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&pools_lock);
    for (pool = pools; pool != NULL; pool = pool->next)
        if (pool->limit == worker_limit && is_same_job(pool, job))
            break;
    if (pool == NULL) {
        status = pool_make(job, worker_limit, &pool);
        if (status == TUNDISH_OK) {
            pool->next = pools;
            pools = pool;
        }
    }
    if (status == TUNDISH_OK) {
        pool->references++;
        *ret_pool = pool;
    }
    pthread_mutex_unlock(&pools_lock);
    return status;
}

uint64_t
python_pool_length(const struct python_pool *pool)
{
    return pool->length;
}

uint64_t
python_pool_digest(const struct python_pool *pool)
{
    return pool->digest;
}

void
python_pool_close(struct python_pool *pool)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pools_lock);
    if (--pool->references == 0) {
        struct python_pool **link = &pools;

        while (*link != pool)
            link = &(*link)->next;
        *link = pool->next;
        pool_free(pool);
    }
    pthread_mutex_unlock(&pools_lock);
}

static void
spans_begin(struct spans *spans, int64_t now_ns)
{
    spans->count++;
    spans->since_ns += (uint64_t)now_ns;
}

static void
spans_end(struct spans *spans, int64_t began_ns)
{
    spans->count--;
    spans->since_ns -= (uint64_t)began_ns;
    spans->ended_ns += (uint64_t)(tnd_clock_ns() - began_ns);
}

static uint64_t
spans_ns(const struct spans *spans)
{
    return spans->ended_ns + spans->count * (uint64_t)tnd_clock_ns() - spans->since_ns;
}

void
python_pools_turn(int turn)
{
    atomic_store(&turn_of_all, turn);
}

/* See whether an interpreter was started since its module has changed. */
static void
compare_source(struct python_pool *pool, const struct python_worker *worker)
{
    if (python_worker_find(worker, pool->job.number)->digest != pool->digest &&
        !atomic_exchange(&pool->has_changed, true))
        tnd_log(TND_LOG_WARNING, "python_changed",
                "%s: its module has changed since the server began. Interpreters that are started "
                "from now on run another one than those that live: start the server again, to run "
                "one alone",
                pool->job.name);
}

static tundish_status
take(struct python_pool *pool, const _Atomic int *stop, struct python_worker *ret_worker)
{
    tundish_status status = TUNDISH_OK;
    int turn = turn_now();
    int64_t began_ns;

    if (!python_team_try(pool->team, &pool->job, turn, ret_worker)) {
        began_ns = tnd_clock_ns();
        pthread_mutex_lock(&pool->lock);
        spans_begin(&pool->waited, began_ns);
        pthread_mutex_unlock(&pool->lock);
        status = python_team_take(pool->team, &pool->job, turn, stop, ret_worker);
        pthread_mutex_lock(&pool->lock);
        spans_end(&pool->waited, began_ns);
        pthread_mutex_unlock(&pool->lock);
    }
    if (status == TUNDISH_OK)
        compare_source(pool, ret_worker);
    return status;
}

/* An interpreter as it was when it was asked. */
struct asked {
    int64_t began_ns;
    uint64_t cpu_ns;
};

static void
begin(struct python_pool *pool, const struct python_worker *worker, struct asked *ret_asked)
{
    *ret_asked = (struct asked){ tnd_clock_ns(), worker->cpu_ns };
    pthread_mutex_lock(&pool->lock);
    spans_begin(&pool->busy, ret_asked->began_ns);
    pthread_mutex_unlock(&pool->lock);
}

/* Count what became of it since. The lock is held. */
static void
count(struct python_pool *pool, const struct python_worker *worker, const struct asked *asked)
{
    spans_end(&pool->busy, asked->began_ns);
    pool->cpu_ns += worker->cpu_ns - asked->cpu_ns;
}

static void
give_back(struct python_pool *pool, struct python_worker *worker, const struct asked *asked,
          int64_t rows)
{
    pthread_mutex_lock(&pool->lock);
    count(pool, worker, asked);
    pool->rows += (uint64_t)rows;
    pthread_mutex_unlock(&pool->lock);
    python_team_give_back(pool->team, worker);
}

/* `failed`: by its own fault, not because nobody waits for its answer any more. */
static void
end(struct python_pool *pool, struct python_worker *worker, const struct asked *asked, bool failed)
{
    pthread_mutex_lock(&pool->lock);
    count(pool, worker, asked);
    pool->restarts += failed;
    pthread_mutex_unlock(&pool->lock);
    python_team_end(pool->team, worker);
}

/* The elements of a request at which interpreters have died. */
struct deaths {
    uint8_t *counts;
    uint8_t *barred;
    struct python_request request; /* bars them */
};

/* Is there no sense in trying the request again? */
static bool
is_hopeless(struct deaths *deaths, const struct python_answer *answer, struct frame *output)
{
    size_t count = (size_t)output->count;
    /* Where it says no element it died before the first one or after the last. */
    size_t element = answer->element >= 0 ? (size_t)answer->element : count;

    if (deaths->counts == NULL) {
        deaths->counts = scratch_array(output->scratch, count + 1, 1);
        deaths->barred = scratch_array(output->scratch, count + 1, 1);
        memset(deaths->counts, 0, count + 1);
        memset(deaths->barred, 0, count + 1);
        deaths->request.barred = deaths->barred;
        deaths->request.one_by_one = true;
        if (element == count)
            return false;
    }
    if (++deaths->counts[element] < DEATHS_MAX)
        return false;
    if (element == count)
        return true;
    deaths->barred[element] = 1;
    frame_reject(output, (int64_t)element, "%s", tnd_error_text());
    return false;
}

/* Take an interpreter's answer, and the interpreter back. */
static tundish_status
take_answer(struct python_pool *pool, struct python_worker *worker, const struct asked *asked,
            const struct python_answer *answer, const uint32_t *columns, uint32_t column_count,
            struct frame *output)
{
    tundish_status status =
        python_wire_read(answer->bytes, answer->size, columns, column_count, output);

    if (status == TUNDISH_E_CORRUPT)
        status = tnd_fail_while(TUNDISH_E_DATA, "%s", pool->job.name);
    if (status != TUNDISH_OK) {
        end(pool, worker, asked, true);
    } else if (python_worker_is_too_large(worker)) {
        /* Its rows are made: memory was lost in the course of many. */
        tnd_log(TND_LOG_NOTICE, "python_large", "%s: another one takes its place",
                tnd_error_text());
        end(pool, worker, asked, true);
    } else {
        give_back(pool, worker, asked, output->count);
    }
    return status;
}

tundish_status
python_pool_ask(struct python_pool *pool, const struct python_request *request,
                const _Atomic int *stop, const uint32_t *columns, uint32_t column_count,
                struct frame *output)
{
    struct deaths deaths = { .request = *request };
    struct python_answer answer;
    struct python_worker worker;
    struct asked asked;

    for (;;) {
        tundish_status status = take(pool, stop, &worker);
        enum python_end how;

        if (status != TUNDISH_OK)
            return status;
        begin(pool, &worker, &asked);
        how = python_worker_ask(&worker, &pool->job, &deaths.request, false, stop, &answer);
        if (how == PYTHON_ANSWERED)
            return take_answer(pool, &worker, &asked, &answer, columns, column_count, output);
        if (how == PYTHON_FAILED)
            status = answer.status;
        else
            tnd_log(TND_LOG_WARNING, "python_died", "%s", tnd_error_text());
        if (how == PYTHON_DIED && is_hopeless(&deaths, &answer, output))
            status = TUNDISH_E_DATA;
        end(pool, &worker, &asked, how == PYTHON_DIED);
        if (status != TUNDISH_OK)
            return status;
    }
}

const struct schema *
python_pool_columns(const struct python_pool *pool)
{
    return pool->columns.count > 0 ? &pool->columns : NULL;
}

static tundish_status
learn(struct python_pool *pool, const struct python_request *request)
{
    struct schema columns = { 0 };
    struct python_answer answer;
    struct python_worker worker;
    struct asked asked;
    tundish_status status = take(pool, NULL, &worker);

    if (status != TUNDISH_OK)
        return status;
    begin(pool, &worker, &asked);
    if (python_worker_ask(&worker, &pool->job, request, true, NULL, &answer) != PYTHON_ANSWERED) {
        end(pool, &worker, &asked, true);
        return answer.status != TUNDISH_OK ? answer.status : TUNDISH_E_DATA;
    }
    status = python_wire_read_columns(answer.bytes, answer.size, &columns);
    if (status == TUNDISH_OK)
        status = keep_columns(pool, &columns, &worker);
    if (status == TUNDISH_OK)
        give_back(pool, &worker, &asked, 0);
    else
        end(pool, &worker, &asked, true);
    schema_close(&columns);
    return status;
}

tundish_status
python_pool_learn(struct python_pool *pool, const struct python_request *request)
{
    tundish_status status;

    pthread_mutex_lock(&pool->learning);
    status = python_pool_columns(pool) != NULL ? TUNDISH_OK : learn(pool, request);
    pthread_mutex_unlock(&pool->learning);
    return status;
}

bool
python_pools_show(python_show *show, void *context)
{
    if (pthread_mutex_trylock(&pools_lock) != 0)
        return false; /* an interpreter is being started, which may take long */
    for (struct python_pool *pool = pools; pool != NULL; pool = pool->next) {
        struct python_figures figures = { .name = pool->job.name, .limit = pool->limit };
        struct python_team_figures team;

        python_team_show(pool->team, &team);
        figures.workers = team.workers;
        figures.memory_bytes = team.memory_bytes;
        pthread_mutex_lock(&pool->lock);
        figures.rows = pool->rows;
        figures.restarts = pool->restarts;
        figures.busy_ns = spans_ns(&pool->busy);
        figures.wait_ns = spans_ns(&pool->waited);
        figures.cpu_ns = pool->cpu_ns;
        pthread_mutex_unlock(&pool->lock);
        show(context, pool->number, &figures);
    }
    pthread_mutex_unlock(&pools_lock);
    return true;
}
