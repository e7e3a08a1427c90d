/* test_job.c - the variables that MPI and Slurm set tell whether there is a job, and how large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "link/job.h"
#include "link/link.h"
#include "unit/cluster.h"
#include "unit/test_file.h"

static const char *const variables[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK",
                                         "PMIX_NAMESPACE", "SLURM_NTASKS" };

enum { VARIABLES = sizeof variables / sizeof *variables };

/* Values in the order of the variables; NULL: not set. */
static void
set_all(const char *const values[VARIABLES])
{
    for (int i = 0; i < VARIABLES; i++)
        assert_int_equal(
            values[i] != NULL ? setenv(variables[i], values[i], 1) : unsetenv(variables[i]), 0);
}

static const char *const nothing[VARIABLES] = { NULL };

static void
several_ranks_are_a_job(void **state)
{
    static const struct {
        const char *values[VARIABLES];
        bool is_job;
    } cases[] = {
        { { NULL, NULL, NULL, NULL, "4" }, false }, /* a Slurm job without MPI */
        { { "1", NULL, NULL, NULL, NULL }, false },
        { { "2", NULL, NULL, NULL, NULL }, true },
        { { "many", NULL, NULL, NULL, NULL }, false },
        { { NULL, "1", NULL, NULL, NULL }, false },
        { { NULL, "3", NULL, NULL, NULL }, true },
        { { "1", "3", NULL, NULL, NULL }, false }, /* mpirun knows best */
        { { NULL, NULL, "0", NULL, NULL }, false },
        { { NULL, NULL, "0", "space", NULL }, true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_all(cases[i].values);
        assert_int_equal(job_is_of_mpi(), cases[i].is_job);
    }
    set_all(nothing);
    assert_false(job_is_of_mpi());
}

static void
a_job_of_another_size_is_refused(void **state)
{
    static const struct {
        uint32_t expected, size;
        const char *tasks, *text; /* NULL: it is as it should be */
    } cases[] = {
        { 0, 1, NULL, NULL },
        { 0, 2, "2", NULL },
        { 2, 2, "8", NULL }, /* the command line knows best */
        { 3, 2, NULL, "--expect-nodes 3, but the job has 2 nodes" },
        { 3, 1, NULL, "the job has 1 node:" },
        { 0, 1, "4", "Slurm started 4 tasks (SLURM_NTASKS), but the job has 1 node:" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tundish_status status;

        set_all((const char *[]){ NULL, NULL, NULL, NULL, cases[i].tasks });
        status = job_check_size(cases[i].expected, cases[i].size);
        assert_int_equal(status, cases[i].text == NULL ? TUNDISH_OK : TUNDISH_E_ARGUMENT);
        if (cases[i].text != NULL)
            assert_non_null(strstr(tnd_error_text(), cases[i].text));
    }
    set_all(nothing);
}

static void
a_link_that_cannot_join_is_not_opened(void **state)
{
    struct link *link = NULL;

    (void)state;
    assert_int_equal(link_open(&(struct link_options){ .expected_nodes = 2 }, &link),
                     TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tnd_error_text(), "--expect-nodes 2, but the job has 1 node:"));
    cluster_pretend(2);
    setenv("CLUSTER_REFUSES", "there is no network", 1);
    assert_int_equal(link_open(&(struct link_options){ 0 }, &link), TUNDISH_E_SYSTEM);
    assert_string_equal(tnd_error_text(), "cannot join the MPI job: there is no network");
    unsetenv("CLUSTER_REFUSES");
    cluster_pretend(0);
    assert_null(link);
}

TEST_FILE(test_job)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_ranks_are_a_job),
        cmocka_unit_test(a_job_of_another_size_is_refused),
        cmocka_unit_test(a_link_that_cannot_join_is_not_opened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
