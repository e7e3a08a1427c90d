/* fuzz_landmarks.c - landmarks in a file that no pass left: a run that resumes by them ends, and
 * deals nothing that the pipeline cannot. The first byte chooses the pipeline, the second where the
 * run resumes; the lists follow, each as of a pass that this run makes.
 */
#include <stdlib.h>
#include <string.h>

#include "batch/dealer.h"
#include "core/must.h"
#include "session/checkpoint/place_landmarks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

/* All give a step of one element, of a range of this many. */
enum { ELEMENTS = 2048, STEPS = 8, ORDER_WORDS_MAX = 64 };
#define STEPS_OF(stages)                                                                           \
    "streams:\n  s:\n    dataset: [" stages ", {batch: 1}]\n    deliver: {epochs: 1}\n"

static const char *const pipelines[] = {
    STEPS_OF("{range: 2048}, {filter: 'value % 3 != 1'}"),
    STEPS_OF("{range: 2048}, {group_by_window: {key: 'value % 5', window_size: 3}}, {unbatch: {}}"),
    STEPS_OF("{range: 2048}, {bucket_by_sequence_length: {column: value, bucket_boundaries: "
             "[100, 350], bucket_batch_sizes: [2, 3, 1]}}, {unbatch: {}}"),
    STEPS_OF("{choose_from_datasets: {datasets: [[{range: 1024}], [{range: 1024}]], "
             "choice_dataset: [{range: 2}, {repeat: 1024}], stop_on_empty_dataset: false}}"),
    STEPS_OF("{sample_from_datasets: {datasets: [[{range: 1024}], [{range: 1024}]], seed: 1}}"),
    STEPS_OF("{range: 2048}, {shuffle: {buffer_size: 50, seed: 1}}, {filter: 'value % 2 == 1'}"),
    STEPS_OF("{range: 2048}, {batch: 4}, {rebatch: 3}, {unbatch: {}}"),
    STEPS_OF("{range: 64}, {interleave: {cycle_length: 3, block_length: 2, dataset: "
             "[{range: 32}, {filter: 'value % 4 != 1'}]}}"),
};
enum { PIPELINES = sizeof pipelines / sizeof *pipelines };

static struct {
    struct spec_file *file;
    struct plan *plan;
    struct source_files *files;
    uint64_t passes[LANDMARK_LISTS]; /* that a run makes */
    uint32_t pass_count;
    uint64_t words[ORDER_WORDS_MAX]; /* the state at its begin */
    size_t word_count;
} cases[PIPELINES];

static struct dealer *
open_dealer(size_t number, struct order_landmarks *landmarks)
{
    struct dealer_options options = { .files = cases[number].files, .landmarks = landmarks };
    struct dealer *dealer;

    must(dealer_open(cases[number].plan, &options, &dealer) == TUNDISH_OK);
    return dealer;
}

/* How many steps follow, at most `most`. */
static uint64_t
deal(struct dealer *dealer, uint64_t most)
{
    uint64_t steps = 0;

    for (; steps < most; steps++) {
        struct deal_round round = { 0 };
        bool is_over = dealer_next(dealer, &round) != TUNDISH_OK || round.present_count == 0;

        dealer_release_round(&round);
        if (is_over)
            break;
    }
    return steps;
}

static void
set_up(size_t number)
{
    struct plan_options options = { .worker_count = 1, .root_seed = 1 };
    struct source_files_options files = { .root = "/" };
    struct order_landmarks landmarks = { 0 };
    struct spec_errors errors = { 0 };
    const uint64_t *words;
    struct dealer *dealer;

    must(spec_open_text(pipelines[number], strlen(pipelines[number]), "fuzz", ".", &errors,
                        &cases[number].file) == TUNDISH_OK);
    must(plan_open(cases[number].file, &cases[number].file->streams[0], &options, &errors,
                   &cases[number].plan) == TUNDISH_OK);
    must(source_files_open(&files, &cases[number].files) == TUNDISH_OK);
    dealer = open_dealer(number, &landmarks);
    must(dealer_start_epoch(dealer) == TUNDISH_OK);
    cases[number].word_count = dealer_epoch_state(dealer, &words);
    must(cases[number].word_count <= ORDER_WORDS_MAX);
    for (size_t i = 0; i < cases[number].word_count; i++)
        cases[number].words[i] = words[i];
    must(deal(dealer, 2 * ELEMENTS) > STEPS);
    for (uint32_t i = 0; i < landmarks.list_count; i++)
        cases[number].passes[i] = landmarks.lists[i].pass;
    cases[number].pass_count = landmarks.list_count;
    must(landmarks.list_count > 0);
    dealer_close(dealer);
    order_landmarks_close(&landmarks);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    struct order_landmarks landmarks = { 0 };
    struct dealer *dealer;
    size_t number;

    if (data_bytes < 2)
        return 0;
    if (cases[0].file == NULL)
        for (size_t i = 0; i < PIPELINES; i++)
            set_up(i);
    number = data[0] % PIPELINES;
    place_landmarks_take(&landmarks, data + 2, data_bytes - 2);
    for (uint32_t i = 0; i < landmarks.list_count; i++)
        landmarks.lists[i].pass = cases[number].passes[i % cases[number].pass_count];
    dealer = open_dealer(number, &landmarks);
    if (dealer_resume(dealer, 0, data[1] * (ELEMENTS / 256), cases[number].words,
                      cases[number].word_count) == TUNDISH_OK)
        must(deal(dealer, 2 * ELEMENTS) <= ELEMENTS);
    dealer_close(dealer);
    order_landmarks_close(&landmarks);
    return 0;
}
