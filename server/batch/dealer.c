/* dealer.c - deals slices to replicas in turn. All of it runs in one thread: the order is
 * sequential. */
#include "batch/dealer.h"

#include <stdlib.h>
#include <string.h>

#include "batch/content_budget.h"
#include "core/memory.h"
#include "core/must.h"
#include "order/arguments.h"
#include "order/failure.h"
#include "order/planning.h"
#include "source/files/ask_ahead.h"

/* The counts that a checkpoint stores: the iterators that were made, unless NULL, and the elements.
 */
struct counted {
    uint64_t *iterators, *elements;
};

struct dealer {
    const struct plan *plan;
    struct order_services services;
    struct order_digest digest;
    struct evaluation evaluation; /* for stages that look at content to decide order */
    struct budget_task memory;    /* of content that is made for the order */
    struct order_instance *instance;
    struct order_iterator *iterator;
    uint64_t epochs_started;
    uint64_t step;
    uint64_t damaged; /* files, as of the last dealer_skipped */
    uint64_t *state;  /* at the start of the epoch: two words for all that counts */
    struct counted *counted;
    size_t state_count;
    bool ended;
    bool can_be_empty;        /* a replica without a slice gets an empty batch */
    struct deal_slice *spare; /* of a step that is over, or NULL */
};

/* True if a replica without a slice gets an empty batch. Scalars have no dimension that could be 0.
 * If all shapes are static, a single worker drops the last incomplete round, as tf.distribute does.
 * Otherwise, and with several workers, missing scalars are filled with zeros. */
static bool
can_be_empty(const struct plan *plan)
{
    bool has_scalar = false;

    for (uint32_t i = 0; i < plan->element_spec.count; i++) {
        const struct column_spec *column = &plan->element_spec.columns[i];

        for (int k = 0; k < column->rank; k++)
            if (column->shape[k] < 0)
                return true;
        if (column->rank < 0)
            return true;
        has_scalar |= column->rank == 0;
    }
    return !has_scalar || plan->options.worker_count > 1;
}

tundish_status
dealer_open(const struct plan *plan, const struct dealer_options *options,
            struct dealer **ret_dealer)
{
    struct dealer *dealer = tnd_zalloc(1, sizeof *dealer);
    size_t counted_room;

    dealer->plan = plan;
    dealer->can_be_empty = can_be_empty(plan);
    dealer->evaluation = (struct evaluation){
        .files = options->files,
        .scratch = scratch_open(),
        .counters = options->counters,
        .stop = options->stop,
        .skip_bad = options->skip_bad,
    };
    dealer->services = (struct order_services){
        .files = options->files,
        .stop = options->stop,
        .worker = plan->options.worker,
        .worker_count = plan->options.worker_count,
        .replicas_in_sync = plan->options.worker_count * plan->replicas,
        .root_seed = plan->options.root_seed,
        .memory_limit = plan->stream->deliver.memory_limit,
        .samples = options->samples,
        .counters = options->counters != NULL ? options->counters->order : NULL,
        .looks = options->looks,
        .landmarks = options->landmarks,
        .look_ns = tnd_zalloc(plan->node_count, sizeof *dealer->services.look_ns),
    };
    dealer->memory.budget = content_budget_open_for_order(plan);
    scratch_share(dealer->evaluation.scratch, &dealer->memory);
    evaluate_serve_order(&dealer->evaluation, &dealer->services);
    dealer->digest.interval = options->digest_steps * plan->options.worker_count * plan->replicas;
    dealer->services.digest = &dealer->digest;
    dealer->instance = order_instance_open(plan->graph, NULL, &dealer->services);
    counted_room = (size_t)plan->graph->node_count + plan->graph->draw_count;
    dealer->state = tnd_zalloc(counted_room * 2 + 1, sizeof *dealer->state);
    dealer->counted = tnd_zalloc(counted_room + 1, sizeof *dealer->counted);
    *ret_dealer = dealer;
    return TUNDISH_OK;
}

void
dealer_close(struct dealer *dealer)
{
    if (dealer == NULL)
        return;
    order_close(dealer->iterator);
    order_instance_close(dealer->instance);
    scratch_close(dealer->evaluation.scratch);
    budget_close(dealer->memory.budget);
    free(dealer->services.look_ns);
    free(dealer->state);
    free(dealer->counted);
    free(dealer->spare);
    free(dealer);
    run_drop_spares();
}

bool
dealer_counts(const struct plan_node *node)
{
    return node->random ||
           (node->order != NULL && (node->order->counts_elements || node->order->counts_iterators));
}

/* All that is counted: the nodes of the stream, then what draws in its functions, whose nodes come
 * and go. `ret_list` has room for all. */
static size_t
list_counted(const struct dealer *dealer, struct counted *ret_list)
{
    const struct plan_graph *graph = dealer->plan->graph;
    struct order_instance *instance = dealer->instance;
    size_t count = 0;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct plan_node *node = graph->nodes[i];
        const struct ordinal_arguments *ordinal =
            node->order == &order_ordinal ? node->arguments : NULL;

        if (dealer_counts(node))
            ret_list[count++] = (struct counted){
                &instance->iterator_counts[node->number],
                ordinal != NULL ? &instance->draws[ordinal->counter]
                                : &instance->element_counts[node->number],
            };
    }
    for (uint32_t i = graph->own_draw_count; i < graph->draw_count; i++)
        ret_list[count++] = (struct counted){ NULL, &instance->draws[i] };
    must_in_debug(count <= (size_t)graph->node_count + graph->draw_count);
    return count;
}

bool
dealer_has_begun(const struct dealer *dealer)
{
    return dealer->epochs_started > 0;
}

size_t
dealer_state_words(const struct dealer *dealer)
{
    const struct plan_graph *graph = dealer->plan->graph;
    size_t words = 2 * (graph->draw_count - graph->own_draw_count);

    for (uint32_t i = 0; i < graph->node_count; i++)
        words += dealer_counts(graph->nodes[i]) ? 2 : 0;
    return words;
}

static void
note_state(struct dealer *dealer)
{
    size_t count = list_counted(dealer, dealer->counted);

    must_in_debug(2 * count == dealer_state_words(dealer));
    for (size_t i = 0; i < count; i++) {
        const struct counted *one = &dealer->counted[i];

        dealer->state[2 * i] = one->iterators != NULL ? *one->iterators : 0;
        dealer->state[2 * i + 1] = *one->elements;
    }
    dealer->state_count = 2 * count;
}

static tundish_status
restore_state(struct dealer *dealer, const uint64_t *words, size_t word_count)
{
    size_t count = list_counted(dealer, dealer->counted), at = 0;

    for (size_t i = 0; i < count && at + 2 <= word_count; i++, at += 2) {
        const struct counted *one = &dealer->counted[i];

        if (one->iterators != NULL)
            *one->iterators = words[at];
        *one->elements = words[at + 1];
    }
    note_state(dealer);
    if (at != word_count || dealer->state_count != word_count)
        return tnd_fail(TUNDISH_E_PLACE,
                        "the place belongs to a pipeline with other random stages");
    return TUNDISH_OK;
}

size_t
dealer_epoch_state(struct dealer *dealer, const uint64_t **ret_words)
{
    *ret_words = dealer->state;
    return dealer->state_count;
}

const struct order_digest *
dealer_digest(const struct dealer *dealer)
{
    return &dealer->digest;
}

/* Pass over whole steps. The last step of an epoch may lack slices, and of several workers one may
 * be at its end while others continue. */
static tundish_status
pass_over_steps(struct dealer *dealer, uint64_t steps)
{
    uint32_t replicas = dealer->plan->replicas;
    uint64_t slices, passed = 0;
    enum order_result result;

    must_in_debug(dealer->iterator != NULL && dealer->step == 0);
    if (__builtin_mul_overflow(steps, replicas, &slices))
        slices = UINT64_MAX;
    result = order_pass_over(dealer->iterator, slices, &passed);
    if (result == ORDER_FAILED)
        return order_status(result);
    if (dealer->plan->options.worker_count == 1 && passed + replicas <= slices &&
        result == ORDER_END)
        return tnd_fail(TUNDISH_E_PLACE,
                        "step %llu of epoch %llu cannot be reached: the epoch has fewer steps",
                        (unsigned long long)steps, (unsigned long long)dealer->epochs_started - 1);
    order_digest_note_files(&dealer->digest, source_files_entered(dealer->services.files));
    dealer->step = steps;
    return TUNDISH_OK;
}

tundish_status
dealer_resume(struct dealer *dealer, uint64_t epoch, uint64_t step, const uint64_t *words,
              size_t word_count)
{
    tundish_status status;

    order_close(dealer->iterator);
    dealer->iterator = NULL;
    /* A new instance, so that nothing of the epoch before (a kept cache, for example) survives. */
    order_instance_close(dealer->instance);
    dealer->services.resumed = true;
    dealer->instance = order_instance_open(dealer->plan->graph, NULL, &dealer->services);
    status = restore_state(dealer, words, word_count);
    if (status != TUNDISH_OK)
        return status;
    dealer->epochs_started = epoch;
    status = dealer_start_epoch(dealer);
    return status == TUNDISH_OK && step > 0 ? pass_over_steps(dealer, step) : status;
}

tundish_status
dealer_go_to(struct dealer *dealer, const struct dealer_standing *standing)
{
    bool is_same = standing->from == standing->epoch;
    tundish_status status = dealer_resume(dealer, standing->from, is_same ? standing->step : 0,
                                          standing->words, standing->word_count);

    must_in_debug(standing->from <= standing->epoch);
    for (uint64_t epoch = standing->from; status == TUNDISH_OK && epoch < standing->epoch; epoch++)
        status = dealer_next_epoch(dealer);
    if (status == TUNDISH_OK && !is_same && standing->step > 0)
        status = pass_over_steps(dealer, standing->step);
    return status;
}

tundish_status
dealer_start_epoch(struct dealer *dealer)
{
    must_in_debug(dealer->instance != NULL);
    order_close(dealer->iterator);
    dealer->iterator = NULL;
    note_state(dealer);
    dealer->step = 0;
    dealer->ended = false;
    order_digest_start(&dealer->digest);
    dealer->epochs_started++;
    return order_open(dealer->plan->graph->root, dealer->instance, &dealer->iterator);
}

void
dealer_set_shard(struct dealer *dealer, uint32_t shard, uint32_t count)
{
    dealer->services.shard = shard;
    dealer->services.shard_count = count;
}

static void
round_ready(struct dealer *dealer, struct deal_round *round)
{
    const struct plan_node *root = dealer->plan->graph->root;
    size_t slice_bytes = sizeof *round->slices + root->width * sizeof *round->words;
    struct deal_slice *slices = dealer->spare;

    must_in_debug(dealer->epochs_started > 0);
    dealer->spare = NULL;
    if (slices == NULL)
        slices = tnd_alloc(dealer->plan->replicas * slice_bytes);
    memset(slices, 0, dealer->plan->replicas * sizeof *slices);
    *round = (struct deal_round){
        .epoch = dealer->epochs_started - 1,
        .step = dealer->step,
        .width = root->width,
        .run_words = root->run_words,
        .replicas = dealer->plan->replicas,
        .slices = slices,
    };
    round->words = (uint64_t *)(void *)(round->slices + round->replicas);
}

tundish_status
dealer_next_epoch(struct dealer *dealer)
{
    bool is_endless = order_is_endless(dealer->plan->graph->root);
    uint64_t rest = is_endless ? 1 : UINT64_MAX, passed;

    must_in_debug(dealer->ended || dealer->iterator != NULL);
    /* The rest of the epoch is passed over, not dropped: later epochs depend on how many elements
     * were pulled. Without an end it was left somewhere, after its first step. */
    if (!dealer->ended && order_pass_over(dealer->iterator, rest, &passed) == ORDER_FAILED)
        return order_status(ORDER_FAILED);
    if (!dealer->ended)
        order_digest_note_files(&dealer->digest, source_files_entered(dealer->services.files));
    return dealer_start_epoch(dealer);
}

/* Release the slices of an incomplete round that is not delivered. */
static void
drop_round(struct deal_round *round)
{
    must_in_debug(round->present_count <= round->replicas);
    run_words_release(round->words, round->present_count, round->width, round->run_words);
    round->present_count = 0;
}

/* Has each replica a row? Rows that only content counts are taken to be there. */
static bool
is_filled(const struct deal_round *round, const struct plan_node *root)
{
    for (uint32_t i = 0; i < round->present_count && !root->cuts_content; i++)
        for (uint32_t k = 0; k < round->width; k++) {
            const struct run *run = run_of_word(round->slices[i].words[k]);

            if ((round->run_words >> k & 1) != 0 && run != NULL && run->row_count == 0)
                return false;
        }
    return round->present_count == round->replicas;
}

tundish_status
dealer_next(struct dealer *dealer, struct deal_round *ret_round)
{
    struct deal_round round;
    tundish_status status = TUNDISH_OK;

    must(dealer->epochs_started > 0);
    round_ready(dealer, &round);
    while (!dealer->ended && round.present_count < round.replicas) {
        uint64_t *words = round.words + (size_t)round.present_count * round.width;
        size_t count = 0;
        enum order_result result =
            dealer->iterator == NULL ? ORDER_END : order_next(dealer->iterator, words, 1, &count);

        if (result == ORDER_FAILED) {
            status = order_status(result);
            break;
        }
        if (result == ORDER_END) {
            dealer->ended = true;
            break;
        }
        round.slices[round.present_count++] = (struct deal_slice){ true, words };
    }
    if (round.present_count < round.replicas && !dealer->can_be_empty)
        drop_round(&round);
    if (dealer->plan->stream->distribute.drop_remainder_step &&
        !is_filled(&round, dealer->plan->graph->root))
        drop_round(&round);
    dealer->step++;
    if (status != TUNDISH_OK) {
        dealer_release_round(&round);
        return status;
    }
    *ret_round = round;
    return TUNDISH_OK;
}

void
dealer_forget_round(struct deal_round *round)
{
    if (round->asked_of != NULL)
        ask_ahead_forget(round->asked_of, round->epoch, round->step);
    round->asked_of = NULL;
}

void
dealer_release_round(struct deal_round *round)
{
    must_in_debug(round->present_count <= round->replicas);
    dealer_forget_round(round);
    run_words_release(round->words, round->present_count, round->width, round->run_words);
    free(round->slices);
    *round = (struct deal_round){ 0 };
}

void
dealer_take_back(struct dealer *dealer, struct deal_round *round)
{
    /* An earlier plan's rounds may be of another size. */
    if (dealer->spare == NULL && round->replicas == dealer->plan->replicas &&
        round->width == dealer->plan->graph->root->width) {
        dealer->spare = round->slices;
        round->slices = NULL;
    }
    dealer_release_round(round);
}

uint64_t
dealer_skipped(struct dealer *dealer, const char **ret_text)
{
    const char *text;
    uint64_t damaged = source_files_damaged(dealer->services.files, &text);

    must_in_debug(damaged >= dealer->damaged);
    /* The last is whichever of the two was counted since the call before. */
    if (damaged > dealer->damaged)
        *ret_text = text;
    else
        *ret_text = dealer->evaluation.skipped_text;
    dealer->damaged = damaged;
    return dealer->evaluation.skipped + damaged;
}
