/* pass.h - all elements of a plan, once, by several threads: what its observer learns from. */
#ifndef LEARN_PASS_H
#define LEARN_PASS_H

#include "learn/observer.h"
#include "source/files/files.h"

struct pass_options {
    const struct plan *plan;
    struct observer *observer;
    struct source_files *files;
    uint32_t thread_count;
    bool skip_bad;
    /* Called by one thread at a time with the rows gone through; may be NULL. */
    void (*progress)(void *context, uint64_t rows);
    void *context;
    uint64_t rows, skipped; /* set by pass_run */
};

tundish_status pass_run(struct pass_options *options);

#endif
