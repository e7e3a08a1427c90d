/* python_pool.c - see python_pool.h. */
#include "workers/python_pool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/hash_farm.h"
#include "core/json.h"
#include "core/log.h"
#include "core/memory.h"
#include "workers/described_columns.h"

enum { LOOK_AT_STOP_NS = 50 * 1000 * 1000, DEATHS_MAX = 2 };

struct python_pool {
    struct python_pool *next;
    struct python_job job;
    char *asked;                /* its text, before the output was learned */
    uint32_t limit, references; /* by `pools_lock` */
    uint64_t length, digest;
    struct schema columns;    /* that were learned; none: they were given, or are not known */
    pthread_mutex_t learning; /* held while they are */
    pthread_mutex_t lock;     /* guards what follows */
    pthread_cond_t freed;
    uint32_t worker_count; /* that live, or are being started */
    uint32_t idle_count;
    struct python_worker *idle; /* room for `limit` */
};

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static struct python_pool *pools;

static bool
is_same_job(const struct python_pool *pool, const struct python_job *job)
{
    return strcmp(pool->job.name, job->name) == 0 && strcmp(pool->job.python, job->python) == 0 &&
           strcmp(pool->job.folder, job->folder) == 0 && strcmp(pool->asked, job->text) == 0;
}

static void
pool_free(struct python_pool *pool)
{
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
    /* Nodes whose functions are alike may still have learned from rows that differ. */
    pool->digest = tnd_hash_farm_chain(pool->digest, text + asked, bytes - asked);
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
                                     .timeout_ns = job->timeout_ns };
    pool->limit = limit;
    pool->idle = tnd_zalloc(limit, sizeof *pool->idle);
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

/* Wait until one is idle or may be started. False: stopped. The lock is held. */
static bool
wait_for_one(struct python_pool *pool, const _Atomic int *stop)
{
    while (pool->idle_count == 0 && pool->worker_count == pool->limit) {
        struct timespec until;

        if (stop != NULL && atomic_load_explicit(stop, memory_order_relaxed) != 0)
            return false;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_AT_STOP_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&pool->freed, &pool->lock, &until);
    }
    return true;
}

static void
give_up_one(struct python_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->worker_count--;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
}

static tundish_status
take(struct python_pool *pool, const _Atomic int *stop, struct python_worker *ret_worker)
{
    bool is_there, is_idle = false;
    tundish_status status;

    pthread_mutex_lock(&pool->lock);
    is_there = wait_for_one(pool, stop);
    if (is_there) {
        is_idle = pool->idle_count > 0;
        if (is_idle)
            *ret_worker = pool->idle[--pool->idle_count]; /* the one that was used last */
        else
            pool->worker_count++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!is_there)
        return tnd_fail(TUNDISH_STOPPED, "stopped while all interpreters of %s were busy",
                        pool->job.name);
    if (is_idle)
        return TUNDISH_OK;
    status = python_worker_start(&pool->job, stop, ret_worker);
    if (status != TUNDISH_OK)
        give_up_one(pool);
    return status;
}

static void
give_back(struct python_pool *pool, const struct python_worker *worker)
{
    pthread_mutex_lock(&pool->lock);
    pool->idle[pool->idle_count++] = *worker;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
}

static void
end(struct python_pool *pool, struct python_worker *worker)
{
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

tundish_status
python_pool_ask(struct python_pool *pool, const struct python_request *request,
                const _Atomic int *stop, const uint32_t *columns, uint32_t column_count,
                struct frame *output)
{
    struct deaths deaths = { .request = *request };
    struct python_answer answer;
    struct python_worker worker;

    for (;;) {
        tundish_status status = take(pool, stop, &worker);
        enum python_end how;

        if (status != TUNDISH_OK)
            return status;
        how = python_worker_ask(&worker, &deaths.request, false, stop, &answer);
        if (how == PYTHON_ANSWERED) {
            status = python_wire_read(answer.bytes, answer.size, columns, column_count, output);
            if (status == TUNDISH_OK)
                give_back(pool, &worker);
            else
                end(pool, &worker);
            return status == TUNDISH_E_CORRUPT
                       ? tnd_fail_while(TUNDISH_E_DATA, "%s", pool->job.name)
                       : status;
        }
        if (how == PYTHON_FAILED)
            status = answer.status;
        else
            tnd_log(TND_LOG_WARNING, "python_died", "%s", tnd_error_text());
        if (how == PYTHON_DIED && is_hopeless(&deaths, &answer, output))
            status = TUNDISH_E_DATA;
        end(pool, &worker);
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
    tundish_status status = take(pool, NULL, &worker);

    if (status != TUNDISH_OK)
        return status;
    if (python_worker_ask(&worker, request, true, NULL, &answer) != PYTHON_ANSWERED) {
        end(pool, &worker);
        return answer.status != TUNDISH_OK ? answer.status : TUNDISH_E_DATA;
    }
    status = python_wire_read_columns(answer.bytes, answer.size, &columns);
    if (status == TUNDISH_OK) {
        give_back(pool, &worker);
        keep_columns(pool, &columns);
    } else {
        end(pool, &worker);
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
