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

enum { LOOK_AT_STOP_NS = 50 * 1000 * 1000, DEATHS_MAX = 2 };

/* Stretches of time that overlap, such as calls under way. */
struct spans {
    uint64_t count;    /* that have not ended */
    uint64_t since_ns; /* the sum of their beginnings */
    uint64_t ended_ns; /* how long the others were */
};

struct python_pool {
    struct python_pool *next;
    uint64_t number; /* of no other pool of this process */
    struct python_job job;
    char *asked;                /* its text, before the output was learned */
    uint32_t limit, references; /* by `pools_lock` */
    uint64_t length, digest;
    _Atomic bool has_changed; /* since the first interpreter was started; said once */
    struct schema columns;    /* that were learned; none: they were given, or are not known */
    pthread_mutex_t learning; /* held while they are */
    pthread_mutex_t lock;     /* guards what follows */
    pthread_cond_t freed;
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
    struct spans busy, waited;
    uint64_t rows, restarts, cpu_ns, memory_bytes; /* of all interpreters, those that ended too */
};

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static struct python_pool *pools;
static uint64_t pools_made;
static _Atomic int turn_of_all;

static bool
is_same_job(const struct python_pool *pool, const struct python_job *job)
{
    return strcmp(pool->job.name, job->name) == 0 && strcmp(pool->job.python, job->python) == 0 &&
           strcmp(pool->job.folder, job->folder) == 0 && strcmp(pool->asked, job->text) == 0 &&
           pool->job.memory_limit == job->memory_limit;
}

/* The lock is held. */
static void
wait_awhile(struct python_pool *pool)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_AT_STOP_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&pool->freed, &pool->lock, &until);
}

static void
pool_free(struct python_pool *pool)
{
    atomic_store(&pool->is_closing, 1);
    pthread_mutex_lock(&pool->lock);
    while (pool->starting > 0)
        wait_awhile(pool);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->idle_count; i++)
        python_worker_stop(&pool->idle[i]);
    pthread_cond_destroy(&pool->freed);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->learning);
    schema_close(&pool->columns);
    free(pool->asked);
    free((void *)(uintptr_t)pool->job.name);
    free((void *)(uintptr_t)pool->job.python);
    free((void *)(uintptr_t)pool->job.folder);
    free((void *)(uintptr_t)pool->job.text);
    free(pool->idle);
    free(pool);
}

/* Keep what was learned: interpreters that are started from now on are told. */
static void
keep_columns(struct python_pool *pool, struct schema *columns)
{
    size_t asked = strlen(pool->asked) - 1, bytes = 0; /* without its last brace */
    char *text = NULL;
    struct json json;
    FILE *file = open_memstream(&text, &bytes);

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
}

static tundish_status
pool_make(const struct python_job *job, uint32_t limit, struct python_pool **ret_pool)
{
    struct python_pool *pool = tnd_zalloc(1, sizeof *pool);
    pthread_condattr_t attributes;
    tundish_status status;

    pool->job = (struct python_job){ .name = tnd_strdup(job->name),
                                     .python = tnd_strdup(job->python),
                                     .folder = tnd_strdup(job->folder),
                                     .text = tnd_strdup(job->text),
                                     .timeout_ns = job->timeout_ns,
                                     .memory_limit = job->memory_limit };
    pool->limit = pool->room = limit;
    pool->idle = tnd_zalloc((size_t)limit + 1, sizeof *pool->idle); /* turns need two */
    pool->asked = tnd_strdup(job->text);
    pthread_mutex_init(&pool->learning, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->freed, &attributes);
    pthread_condattr_destroy(&attributes);
    status = python_worker_start(&pool->job, NULL, &pool->idle[0]);
    if (status != TUNDISH_OK) {
        pool_free(pool);
        return status;
    }
    pool->length = pool->idle[0].length;
    pool->digest = pool->idle[0].digest;
    pool->idle_count = pool->worker_count = 1;
    if (pool->idle[0].described.count > 0)
        keep_columns(pool, &pool->idle[0].described);
    *ret_pool = pool;
    return TUNDISH_OK;
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
            pool->number = ++pools_made;
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
    bool is_last;

    if (pool == NULL)
        return;
    pthread_mutex_lock(&pools_lock);
    is_last = --pool->references == 0;
    for (struct python_pool **at = &pools; is_last && *at != NULL; at = &(*at)->next)
        if (*at == pool) {
            *at = pool->next;
            break;
        }
    pthread_mutex_unlock(&pools_lock);
    if (is_last)
        pool_free(pool);
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

static void
give_up_one(struct python_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->worker_count--;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
}

void
python_pools_turn(int turn)
{
    atomic_store(&turn_of_all, turn);
}

/* Take an idle one, the one that was used last, if there is one whose turn it is. */
static bool
take_idle(struct python_pool *pool, int turn, struct python_worker *ret_worker)
{
    for (uint32_t i = pool->idle_count; i-- > 0;) {
        struct python_worker *idle = &pool->idle[i];

        if (turn != 0 && idle->turn != 0 && idle->turn != turn)
            continue;
        *ret_worker = *idle;
        *idle = pool->idle[--pool->idle_count];
        return true;
    }
    return false;
}

static tundish_status
start(struct python_pool *pool, const _Atomic int *stop, struct python_worker *ret_worker)
{
    tundish_status status = python_worker_start(&pool->job, stop, ret_worker);

    if (status == TUNDISH_OK && ret_worker->digest != pool->digest &&
        !atomic_exchange(&pool->has_changed, true))
        tnd_log(TND_LOG_WARNING, "python_changed",
                "%s: its module has changed since the server began. Interpreters that are started "
                "from now on run another one than those that live: start the server again, to run "
                "one alone",
                pool->job.name);
    return status;
}

static void *
start_beside(void *context)
{
    struct python_pool *pool = context;
    struct python_worker worker;
    tundish_status status = start(pool, &pool->is_closing, &worker);

    pthread_mutex_lock(&pool->lock);
    pool->starting--;
    pool->room = pool->limit;
    if (status == TUNDISH_OK) {
        pool->idle[pool->idle_count++] = worker;
    } else {
        pool->failures++;
        pool->failure = status;
        snprintf(pool->why, sizeof pool->why, "%s", tnd_error_text());
        if (--pool->worker_count > 0)
            pool->room = pool->worker_count;
    }
    pthread_cond_broadcast(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Start one more, in a thread of its own: imports take seconds, and another interpreter may be idle
 * before. The lock is held, but not all the time. */
static void
begin_start(struct python_pool *pool)
{
    pthread_t thread;

    pool->worker_count++;
    pool->starting++;
    pthread_mutex_unlock(&pool->lock);
    if (tnd_memory_for_threads(1) == TUNDISH_OK &&
        pthread_create(&thread, NULL, start_beside, pool) == 0)
        pthread_detach(thread);
    else
        start_beside(pool);
    pthread_mutex_lock(&pool->lock);
}

/* Wait until one is idle. The lock is held. */
static tundish_status
wait_for_one(struct python_pool *pool, const _Atomic int *stop)
{
    int64_t began_ns = tnd_clock_ns();
    uint64_t failures = pool->failures;
    tundish_status status = TUNDISH_OK;

    if (pool->idle_count > 0)
        return TUNDISH_OK;
    spans_begin(&pool->waited, began_ns);
    pool->waiting++;
    while (status == TUNDISH_OK && pool->idle_count == 0) {
        if (stop != NULL && atomic_load_explicit(stop, memory_order_relaxed) != 0)
            status = tnd_fail(TUNDISH_STOPPED, "stopped while all interpreters of %s were busy",
                              pool->job.name);
        else if (pool->failures != failures && pool->worker_count == 0)
            status = tnd_fail(pool->failure, "%s", pool->why);
        else if (pool->starting < pool->waiting && pool->worker_count < pool->room)
            begin_start(pool);
        else
            wait_awhile(pool);
    }
    pool->waiting--;
    spans_end(&pool->waited, began_ns);
    return status;
}

/* In turns each has an interpreter of its own. */
static tundish_status
take_in_turn(struct python_pool *pool, int turn, const _Atomic int *stop,
             struct python_worker *ret_worker)
{
    tundish_status status = TUNDISH_OK;
    bool is_idle;

    pthread_mutex_lock(&pool->lock);
    is_idle = take_idle(pool, turn, ret_worker);
    pool->worker_count += !is_idle;
    pthread_mutex_unlock(&pool->lock);
    if (!is_idle)
        status = start(pool, stop, ret_worker);
    if (status != TUNDISH_OK)
        give_up_one(pool);
    ret_worker->turn = turn;
    return status;
}

static tundish_status
take(struct python_pool *pool, const _Atomic int *stop, struct python_worker *ret_worker)
{
    int turn = atomic_load_explicit(&turn_of_all, memory_order_relaxed);
    tundish_status status;

    if (turn != 0)
        return take_in_turn(pool, turn, stop, ret_worker);
    pthread_mutex_lock(&pool->lock);
    status = wait_for_one(pool, stop);
    if (status == TUNDISH_OK)
        (void)take_idle(pool, 0, ret_worker);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* An interpreter as it was when it was asked. */
struct asked {
    int64_t began_ns;
    uint64_t cpu_ns, memory_bytes;
};

static void
begin(struct python_pool *pool, const struct python_worker *worker, struct asked *ret_asked)
{
    *ret_asked = (struct asked){ tnd_clock_ns(), worker->cpu_ns, worker->memory_bytes };
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
    pool->memory_bytes += worker->memory_bytes - asked->memory_bytes;
}

static void
give_back(struct python_pool *pool, const struct python_worker *worker, const struct asked *asked,
          int64_t rows)
{
    pthread_mutex_lock(&pool->lock);
    count(pool, worker, asked);
    pool->rows += (uint64_t)rows;
    pool->idle[pool->idle_count++] = *worker;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
}

/* `failed`: by its own fault, not because nobody waits for its answer any more. */
static void
end(struct python_pool *pool, struct python_worker *worker, const struct asked *asked, bool failed)
{
    pthread_mutex_lock(&pool->lock);
    count(pool, worker, asked);
    pool->memory_bytes -= worker->memory_bytes;
    pool->restarts += failed;
    pthread_mutex_unlock(&pool->lock);
    python_worker_stop(worker);
    give_up_one(pool);
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
        how = python_worker_ask(&worker, &deaths.request, false, stop, &answer);
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
    if (python_worker_ask(&worker, request, true, NULL, &answer) != PYTHON_ANSWERED) {
        end(pool, &worker, &asked, true);
        return answer.status != TUNDISH_OK ? answer.status : TUNDISH_E_DATA;
    }
    status = python_wire_read_columns(answer.bytes, answer.size, &columns);
    if (status == TUNDISH_OK) {
        give_back(pool, &worker, &asked, 0);
        keep_columns(pool, &columns);
    } else {
        end(pool, &worker, &asked, true);
    }
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

        pthread_mutex_lock(&pool->lock);
        figures.workers = pool->worker_count;
        figures.rows = pool->rows;
        figures.restarts = pool->restarts;
        figures.busy_ns = spans_ns(&pool->busy);
        figures.wait_ns = spans_ns(&pool->waited);
        figures.cpu_ns = pool->cpu_ns;
        figures.memory_bytes = pool->memory_bytes;
        pthread_mutex_unlock(&pool->lock);
        show(context, pool->number, &figures);
    }
    pthread_mutex_unlock(&pools_lock);
    return true;
}
