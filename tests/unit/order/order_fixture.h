/* order_fixture.h - a pipeline's order part without its plan, sources or content: stages are read
 * from a pipeline file, elements are printed.
 *
 * The source is `range`, a fake that counts what is asked of it. Elements are printed as content
 * would nest them: a batch of batches is [[0 1] [2 3]], a zipped row (0 10), an enumerated one
 * 0:a, a row of deal_carry [0 1]+[2] where pieces of several batches were joined. Predicates are
 * `value % N == M`, the same with != and `value > N`, keys `value % N`, of the innermost number.
 */
#ifndef ORDER_FIXTURE_H
#define ORDER_FIXTURE_H

#include "order/arguments.h"
#include "order/order.h"
#include "source/source.h"

enum { FIXTURE_SOURCES = 16, FIXTURE_DRAWS = 16 };

struct fixture {
    struct order_services services;
    struct spec_file *file;
    struct plan_graph *graph;
    struct order_instance *instance;
    struct order_iterator *iterator;

    /* What was asked of the sources, in the order written. */
    uint32_t source_count;
    uint64_t opened[FIXTURE_SOURCES];
    uint64_t pulled[FIXTURE_SOURCES];
    uint64_t made;      /* of all pulled, without those passed over */
    uint64_t evaluated; /* elements whose content was looked at */

    int64_t failing;               /* the number that no source can deliver; -1: none */
    bool skip_bad;                 /* elements with bad content are passed over */
    int64_t bad;                   /* the number whose content is bad; -1: none */
    int64_t unforeseen;            /* the number that filters find out nothing of for later ones */
    uint64_t draws[FIXTURE_DRAWS]; /* seeds of unseeded stages, when the file has a seed */
    uint32_t draw_count;

    struct frame frame; /* evaluate's answer */
    int64_t *kept;
};

/* Read `pipeline` (a YAML list of stages, or a whole file that begins with "seed:" or "streams:")
 * and bring it to life, but make no iterator yet. */
void fixture_open(struct fixture *fixture, const char *pipeline);

/* Put a stage of distribution behind the last one. `arguments` are copied; NULL: zeros. */
void fixture_append(struct fixture *fixture, const struct order_ops *order, const void *arguments);

/* When the last is closed, every run (run.h) must have been given up. */
void fixture_close(struct fixture *fixture);

/* Make an iterator and print its elements, separated by spaces, at most `max` of them and asking
 * for at most `chunk` at a time. Failures are printed as !, the last one's text can be had from
 * tnd_error_text. Stops after 10. Valid until the next call. */
const char *fixture_epoch(struct fixture *fixture, size_t max, size_t chunk);

/* What is left of the epoch begun, likewise. */
const char *fixture_rest(struct fixture *fixture, size_t chunk);

/* Both at once, in various chunks; `expected` has the epochs separated by " | ". */
void assert_order(const char *pipeline, const char *expected);

/* After passing over any number of its first elements, those that fail included, it goes on as
 * where they are made, and as much was pulled. It is the same in each epoch, with few failures.
 * `failing` as in the fixture. */
void assert_passes_over(const char *stages, int64_t failing);

#endif
