/* help.c - a job with helpers from its start to its end. */
#include "help.h"

#include <stdlib.h>
#include <string.h>

#include "help_private.h"

/* Longer than a part may be late, so that it is noticed; and the time that a killed helper takes to
 * come back. */
static const int64_t STALL_NS = 3000000000, AWAY_NS = 300000000;
static const int64_t PATIENCE_NS = 60000000000;

struct helps *helps_present;

const char *
help_fault_name(enum help_fault fault)
{
    static const char *const names[HELP_FAULT_COUNT] = { "none",    "killed", "gone",
                                                         "stalled", "late",   "other" };

    return names[fault];
}

static void
for_every_other(struct helps *job, void (*make)(struct helper_host *host))
{
    for (uint32_t i = 0; i < job->options->helpers; i += 2)
        make(&job->helpers[i]);
}

/* Returns how long it took. */
static int64_t
make_fault(struct helps *job)
{
    int64_t began_ns = fibers_now_ns();

    switch (job->options->fault) {
    case HELP_KILLED:
        for_every_other(job, helper_host_kill);
        fibers_sleep(AWAY_NS);
        for_every_other(job, helper_host_come);
        break;
    case HELP_GONE:
        for_every_other(job, helper_host_stop);
        break;
    case HELP_STALLED:
        for_every_other(job, helper_host_stop);
        fibers_sleep(STALL_NS);
        for_every_other(job, helper_host_go_on);
        break;
    case HELP_LATE:
        for (uint32_t i = 0; i < job->options->helpers; i++)
            helper_host_come(&job->helpers[i]);
        break;
    default:
        break;
    }
    return fibers_now_ns() - began_ns;
}

static void
end_all(struct helps *job)
{
    int64_t until_ns = fibers_now_ns() + PATIENCE_NS;

    job->is_over = true;
    for (uint32_t i = 0; i < job->options->nodes; i++) {
        pthread_cond_broadcast(&job->servers[i].batch);
        while (!job->servers[i].is_over && fibers_now_ns() < until_ns)
            fibers_sleep(10 * MS);
        if (!job->servers[i].is_over)
            complain("node %u does not end", i);
    }
    for (uint32_t i = 0; i < job->options->helpers; i++)
        helper_host_close(&job->helpers[i]);
}

static void
direct(void *argument)
{
    struct helps *job = argument;
    int64_t lasts_ns = job->options->lasts_ns, took_ns;

    job->began_ns = fibers_now_ns();
    for (uint32_t i = 0; i < job->options->helpers; i++)
        helper_host_open(&job->helpers[i], i);
    for (uint32_t i = 0; i < job->options->nodes; i++) {
        helped_server_open(&job->servers[i]);
        fibers_start(i, helped_server_live, &job->servers[i]);
    }
    fibers_sleep(lasts_ns / 2);
    took_ns = make_fault(job);
    if (took_ns < lasts_ns / 2)
        fibers_sleep(lasts_ns / 2 - took_ns);
    end_all(job);
    job->result->rows_a_second =
        (double)(job->result->steps * job->options->rows) /
        ((double)(lasts_ns > took_ns + lasts_ns / 2 ? lasts_ns : took_ns + lasts_ns / 2) * 1e-9 -
         1);
}

static char *
make_addresses(uint32_t helpers)
{
    char *text = calloc(helpers + 1, 16), *at = text;

    for (uint32_t i = 0; i < helpers; i++)
        at += sprintf(at, "%sh%u:1", i > 0 ? "," : "", i);
    return text;
}

void
help_play(const struct help_options *options, struct help_result *ret_result)
{
    struct helps job = { .options = options, .result = ret_result };

    *ret_result = (struct help_result){ 0 };
    helps_present = &job;
    job.servers = calloc(options->nodes, sizeof *job.servers);
    job.helpers = calloc(options->helpers + 1, sizeof *job.helpers);
    job.addresses = make_addresses(options->helpers);
    fibers_run(options->seed, options->nodes + options->helpers, direct, &job);
    helper_hosts_forget(&job);
    for (uint32_t i = 0; i < options->nodes; i++)
        helped_server_close(&job.servers[i]);
    free(job.addresses);
    free(job.helpers);
    free(job.servers);
    helps_present = NULL;
}
