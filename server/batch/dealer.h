/* dealer.h - a worker's share of a stream, step by step: which slice each replica gets.
 *
 * The plan's root yields slices; slice k of an epoch is replica k % R's, at step k / R. A replica
 * without a slice at a step at which any replica (of any worker) has one gets an empty batch; when
 * none has, the epoch is over for all.
 */
#ifndef BATCH_DEALER_H
#define BATCH_DEALER_H

#include "batch/evaluate.h"
#include "plan/plan.h"
#include "source/files/files.h"

struct dealer;

struct deal_slice {
    bool present;          /* else: an empty batch, or the end */
    const uint64_t *words; /* plan root's width; owned by the step until dealer_release_round */
};

/* The slices of this worker's replicas at one step. */
struct deal_round {
    uint64_t epoch, step;
    uint32_t present_count;    /* 0: this worker has nothing more */
    struct deal_slice *slices; /* plan->replicas */
    uint64_t *words;           /* in the same block */
    uint32_t width, replicas;
    uint64_t run_words;
    struct source_files *asked_of; /* where rows of other nodes were asked for ahead, or NULL */
};

struct dealer_options {
    struct source_files *files;
    const _Atomic int *stop;
    struct evaluation_counters *counters; /* or NULL */
    bool samples;                         /* steps are made to be measured, not delivered */
    bool skip_bad;                        /* for stages that look at content to decide order */
    struct order_landmarks *landmarks;    /* for passing over elements; or NULL */
    const struct order_looks *looks;      /* threads that look at content, too; or NULL */
    uint64_t digest_steps; /* after each of these, under DATA, note a hash over all workers' order;
                              0: never */
};

tundish_status dealer_open(const struct plan *plan, const struct dealer_options *options,
                           struct dealer **ret_dealer);
void dealer_close(struct dealer *dealer);

/* Begin the next epoch (0 at first): a new iterator over the stream. */
tundish_status dealer_start_epoch(struct dealer *dealer);

/* Does a dataset object of this node, at the top of the plan, remember anything between epochs?
 * Only the counts of such go into a place. */
bool dealer_counts(const struct plan_node *node);

/* The state with which an epoch begins: for each random stage, the number of iterators and ordinals
 * that its dataset object had counted. In an array that the dealer owns until the next call. */
size_t dealer_epoch_state(struct dealer *dealer, const uint64_t **ret_words);

/* How many words that always is. */
size_t dealer_state_words(const struct dealer *dealer);

/* Has it begun an epoch, or gone to one? */
bool dealer_has_begun(const struct dealer *dealer);

/* Stand where epoch `epoch` stood before step `step`: begins the epoch with that state and replays
 * its order, references only. E_PLACE if the state is not one of this plan's, or the epoch has
 * fewer steps. */
tundish_status dealer_resume(struct dealer *dealer, uint64_t epoch, uint64_t step,
                             const uint64_t *words, size_t word_count);

/* The same from the state of an earlier epoch, `from`: the epochs after it are run through whole.
 */
struct dealer_standing {
    uint64_t from, epoch, step;
    const uint64_t *words;
    size_t word_count;
};
tundish_status dealer_go_to(struct dealer *dealer, const struct dealer_standing *standing);

/* The hash over this epoch's order, noted at every digest_steps. */
const struct order_digest *dealer_digest(const struct dealer *dealer);

/* Rows that stages which decide order have found bad and left out so far, and damaged files whose
 * rest is left out; and the text of the last of them. */
uint64_t dealer_skipped(struct dealer *dealer, const char **ret_text);

/* Deal only this one of `count` shards, from the next epoch on (distribute.evaluation_shards). */
void dealer_set_shard(struct dealer *dealer, uint32_t shard, uint32_t count);

/* Pass over the rest of this epoch and begin the next. */
tundish_status dealer_next_epoch(struct dealer *dealer);

/* The next step of the epoch. A failure is the step's: it may be asked on. */
tundish_status dealer_next(struct dealer *dealer, struct deal_round *ret_round);
void dealer_release_round(struct deal_round *round); /* accepts zeros */

/* The same in the dealer's own thread, which takes the memory for a later step: so a step needs no
 * new memory. */
void dealer_take_back(struct dealer *dealer, struct deal_round *round); /* accepts zeros */

/* Its content is made: rows that were asked for need not be kept. Its description may stay. */
void dealer_forget_round(struct deal_round *round); /* accepts zeros */

/* Ask the nodes that have them for the round's rows, so that they are there when content is made.
 */
void dealer_ask_round(const struct plan *plan, struct source_files *files,
                      struct deal_round *round);

#endif
