/* run.c - batches of references. */
#include "order/run.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"

struct run *
run_new(const uint64_t *words, uint64_t element_count, uint32_t width, uint64_t run_words)
{
    uint64_t word_count;
    struct run *run;

    must(!__builtin_mul_overflow(element_count, width, &word_count));
    must(word_count < (UINT64_MAX - sizeof *run) / sizeof *words);
    run = tnd_alloc(sizeof *run + word_count * sizeof *words);
    *run = (struct run){
        .count_of_owners = 1,
        .width = width,
        .run_words = run_words,
        .element_count = element_count,
        .words = run->storage,
    };
    if (word_count > 0)
        memcpy(run->storage, words, word_count * sizeof *words);
    return run;
}

struct run *
run_view(struct run *parent, uint64_t begin, uint64_t count)
{
    struct run *view = tnd_alloc(sizeof *view);

    must(begin + count >= begin && begin + count <= parent->element_count);
    *view = (struct run){
        .count_of_owners = 1,
        .width = parent->width,
        .run_words = parent->run_words,
        .element_count = count,
        .words = parent->words + begin * parent->width,
        .parent = run_retain(parent->parent != NULL ? parent->parent : parent),
        .begin = parent->begin + begin,
    };
    return view;
}

struct run *
run_retain(struct run *run)
{
    atomic_fetch_add_explicit(&run->count_of_owners, 1, memory_order_relaxed);
    return run;
}

void
run_release(struct run *run)
{
    /* acq_rel: whoever frees sees what the other owners did with it. */
    if (run == NULL ||
        atomic_fetch_sub_explicit(&run->count_of_owners, 1, memory_order_acq_rel) != 1)
        return;
    if (run->parent != NULL)
        run_release(run->parent);
    else
        run_words_release(run->words, run->element_count, run->width, run->run_words);
    free(run);
}

void
run_words_release(const uint64_t *words, uint64_t element_count, uint32_t width, uint64_t run_words)
{
    if (run_words == 0)
        return;
    for (uint64_t i = 0; i < element_count; i++, words += width)
        for (uint64_t left = run_words; left != 0; left &= left - 1)
            run_release(run_of_word(words[__builtin_ctzll(left)]));
}

void
run_words_retain(const uint64_t *words, uint64_t element_count, uint32_t width, uint64_t run_words)
{
    if (run_words == 0)
        return;
    for (uint64_t i = 0; i < element_count; i++, words += width)
        for (uint64_t left = run_words; left != 0; left &= left - 1) {
            struct run *run = run_of_word(words[__builtin_ctzll(left)]);

            if (run != NULL)
                run_retain(run);
        }
}
