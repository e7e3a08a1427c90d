/* test_budget.c - memory that tasks share: never more than there is, and nobody waits in a circle.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "column/budget.h"
#include "unit/test_file.h"

enum { THREADS = 4, TASKS = 400, BYTES = 8000 };

struct job {
    struct budget *budget;
    pthread_mutex_t lock; /* tasks are handed out under it */
    pthread_cond_t turned;
    uint64_t handed_out, over;
    bool in_turn; /* a task ends only when all before it have ended */
};

static void
run_task(struct job *job, struct budget_task *task, uint64_t number)
{
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(budget_take(task, 1 + number * 37 % 1000), TUNDISH_OK);
    pthread_mutex_lock(&job->lock);
    while (job->in_turn && job->over != number)
        pthread_cond_wait(&job->turned, &job->lock);
    job->over++;
    pthread_cond_broadcast(&job->turned);
    pthread_mutex_unlock(&job->lock);
    budget_give(task);
    budget_end(task);
}

static void *
work(void *context)
{
    struct job *job = context;
    struct budget_task task = { .budget = job->budget };

    for (;;) {
        uint64_t number;

        pthread_mutex_lock(&job->lock);
        number = job->handed_out++;
        if (number < TASKS)
            budget_begin(&task);
        pthread_mutex_unlock(&job->lock);
        if (number >= TASKS)
            return NULL;
        run_task(job, &task, number);
    }
}

/* Each takes all that one may have, so that there is never enough for two. */
static void
run_job(bool in_turn)
{
    struct job job = {
        .budget = budget_open(BYTES, THREADS, "a limit"),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .turned = PTHREAD_COND_INITIALIZER,
        .in_turn = in_turn,
    };
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &job), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(job.over, TASKS);
    assert_in_range(budget_peak(job.budget), 1, BYTES);
    budget_close(job.budget);
}

static void
threads_stay_within_it_together(void **state)
{
    (void)state;
    run_job(false);
    run_job(true);
}

static void
the_first_task_waits_for_nobody(void **state)
{
    struct budget *budget = budget_open(BYTES, 2, "a limit");
    struct budget_task first = { .budget = budget }, second = { .budget = budget };

    (void)state;
    budget_begin(&first);
    budget_begin(&second);
    assert_int_equal(budget_take(&second, BYTES / 4), TUNDISH_OK); /* all of the later ones' part */
    assert_int_equal(budget_take(&first, budget_of_task(&first)), TUNDISH_OK);
    assert_int_equal(budget_peak(budget), BYTES / 4 + budget_of_task(&first));
    budget_give(&first);
    budget_end(&first);
    /* It is the first now. */
    assert_int_equal(budget_take(&second, budget_of_task(&second) - BYTES / 4), TUNDISH_OK);
    budget_give(&second);
    budget_end(&second);
    budget_close(budget);
}

static void
more_than_one_task_may_have_is_refused_with_the_arithmetic(void **state)
{
    struct budget *shared = budget_open(BYTES, 2, "memory_limit");
    struct budget *own = budget_open(BYTES, 1, "memory_limit");
    struct budget_task task = { .budget = shared }, alone = { .budget = own };

    (void)state;
    budget_begin(&task);
    assert_int_equal(budget_take(&task, 4000), TUNDISH_OK);
    assert_int_equal(budget_take(&task, 1001), TUNDISH_E_MEMORY);
    assert_string_equal(tnd_error_text(),
                        "1001 more bytes, besides the 4000 of this batch, exceed the 5000 that one "
                        "batch may use of the 8000 (memory_limit) that 2 threads share: use a "
                        "smaller batch_size, or allow more memory");
    assert_int_equal(budget_take(&task, UINT64_MAX), TUNDISH_E_MEMORY);
    budget_give(&task);
    budget_end(&task);
    assert_int_equal(budget_take(&alone, BYTES), TUNDISH_OK);
    assert_int_equal(budget_take(&alone, 1), TUNDISH_E_MEMORY);
    assert_non_null(strstr(tnd_error_text(),
                           "1 more bytes, besides the 8000 in use, exceed 8000 (memory_limit)"));
    budget_give(&alone);
    budget_close(shared);
    budget_close(own);
}

/* A thread that kept nothing would ask the kernel for the same pages in every task. */
static void
each_thread_keeps_a_part_of_an_eighth(void **state)
{
    struct budget *shared = budget_open(BYTES, 2, "memory_limit");
    struct budget *own = budget_open(BYTES, 1, "memory_limit");
    const struct budget_task task = { .budget = shared }, alone = { .budget = own }, none = { 0 };

    (void)state;
    assert_int_equal(budget_kept(&task), BYTES / 16);
    assert_int_equal(budget_kept(&alone), BYTES / 8);
    assert_true(budget_kept(&none) == UINT64_MAX);
    budget_close(shared);
    budget_close(own);
}

TEST_FILE(test_budget)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_stay_within_it_together),
        cmocka_unit_test(the_first_task_waits_for_nobody),
        cmocka_unit_test(more_than_one_task_may_have_is_refused_with_the_arithmetic),
        cmocka_unit_test(each_thread_keeps_a_part_of_an_eighth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
