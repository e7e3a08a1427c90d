/* words.c - see words.h. */
#include "column/words.h"

#include <stdlib.h>

#include "core/memory.h"

/* UNKNOWN until somebody has made a word's value. Threads may make one at the same time: it is the
 * same. */
struct words_memo {
    struct words_memo *next;
    const void *key;
    _Atomic int64_t values[];
};

#define UNKNOWN INT64_MIN

void
words_close(struct words *words)
{
    struct words_memo *memo = atomic_load_explicit(&words->memos, memory_order_relaxed);

    while (memo != NULL) {
        struct words_memo *next = memo->next;

        free(memo);
        memo = next;
    }
    atomic_store_explicit(&words->memos, NULL, memory_order_relaxed);
}

uint64_t
words_memo_bytes(uint32_t count)
{
    return sizeof(struct words_memo) + count * sizeof(int64_t);
}

static struct words_memo *
find_memo(struct words_memo *memo, const void *key)
{
    while (memo != NULL && memo->key != key)
        memo = memo->next;
    return memo;
}

/* The stage's memo of a dictionary. Of two threads that add it, one is the first. */
static struct words_memo *
memo_of(struct words *words, const void *key)
{
    /* Pairs with the exchange below: a memo that is seen is filled. */
    struct words_memo *first = atomic_load_explicit(&words->memos, memory_order_acquire);
    struct words_memo *memo = find_memo(first, key), *made;

    if (memo != NULL)
        return memo;
    made = tnd_alloc(words_memo_bytes(words->count));
    made->key = key;
    for (uint32_t i = 0; i < words->count; i++)
        atomic_init(&made->values[i], UNKNOWN);
    do {
        memo = find_memo(first, key);
        made->next = first;
    } while (memo == NULL &&
             !atomic_compare_exchange_weak_explicit(&words->memos, &first, made,
                                                    memory_order_acq_rel, memory_order_acquire));
    if (memo == NULL)
        return made;
    free(made);
    return memo;
}

void
words_tell(struct scratch *scratch, const struct words_note *note)
{
    struct words_note **first = scratch_words(scratch);
    struct words_note *copy = scratch_alloc(scratch, sizeof *copy);

    *copy = *note;
    copy->next = *first;
    *first = copy;
}

/* The note about these texts, or more around them. */
static const struct words_note *
find_note(struct scratch *scratch, const struct byte_view *texts, int64_t count)
{
    const struct words_note *note = *scratch_words(scratch);
    uintptr_t begin = (uintptr_t)texts, end = (uintptr_t)(texts + count);

    while (note != NULL &&
           (begin < (uintptr_t)note->texts || end > (uintptr_t)(note->texts + note->count)))
        note = note->next;
    return note;
}

struct making {
    const struct words_maker *maker;
    const struct byte_view *texts;
    const uint32_t *numbers;
    struct words_memo *memos[WORDS_DICTIONARIES];
    int64_t *values;
};

/* Take what is known of some texts; *ret_count of them are not, and are told. */
static void
take_known(const struct making *making, int64_t begin, int64_t end, uint32_t *missing,
           uint32_t *ret_count)
{
    uint32_t count = 0;

    for (int64_t i = begin; i < end; i++) {
        uint32_t number = making->numbers[i];
        int64_t value =
            number == WORDS_NONE
                ? UNKNOWN
                : atomic_load_explicit(
                      &making->memos[number >> WORDS_SHIFT]->values[number & (WORDS_MAX - 1)],
                      memory_order_relaxed);

        making->values[i] = value;
        missing[count] = (uint32_t)(i - begin);
        count += value == UNKNOWN;
    }
    *ret_count = count;
}

static void
make_missing(const struct making *making, int64_t begin, const uint32_t *missing, uint32_t count)
{
    struct byte_view texts[WORDS_BLOCK];
    int64_t values[WORDS_BLOCK];

    for (uint32_t i = 0; i < count; i++)
        texts[i] = making->texts[begin + missing[i]];
    making->maker->make(making->maker->context, texts, count, values);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = making->numbers[begin + missing[i]];

        making->values[begin + missing[i]] = values[i];
        if (number != WORDS_NONE)
            atomic_store_explicit(
                &making->memos[number >> WORDS_SHIFT]->values[number & (WORDS_MAX - 1)], values[i],
                memory_order_relaxed);
    }
}

bool
words_make(struct scratch *scratch, const struct words_maker *maker, const struct byte_view *texts,
           int64_t count, int64_t *ret_values)
{
    const struct words_note *note = find_note(scratch, texts, count);
    struct making making = { .maker = maker, .texts = texts, .values = ret_values };

    if (note == NULL || count == 0)
        return false;
    making.numbers = note->numbers + (texts - note->texts);
    for (int i = 0; i < WORDS_DICTIONARIES; i++)
        if (note->dictionaries[i] != NULL)
            making.memos[i] = memo_of(note->dictionaries[i], maker->key);
    for (int64_t begin = 0; begin < count; begin += WORDS_BLOCK) {
        int64_t end = begin + WORDS_BLOCK < count ? begin + WORDS_BLOCK : count;
        uint32_t missing[WORDS_BLOCK], missing_count;

        take_known(&making, begin, end, missing, &missing_count);
        if (missing_count > 0)
            make_missing(&making, begin, missing, missing_count);
    }
    return true;
}
