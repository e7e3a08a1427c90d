/* words.c - see words.h. */
#include "column/words.h"

#include <stdlib.h>

#include "core/memory.h"
#include "core/must.h"

/* WORDS_UNMADE until somebody has made a word's value. Threads may make one at the same time: it is
 * the same. Values are half as wide as those that are made: more of them are in the cache. */
struct words_memo {
    struct words_memo *next;
    const void *key;
    _Atomic int32_t values[];
};

void
words_close(struct words *words)
{
    struct words_memo *memo = atomic_load_explicit(&words->memos, memory_order_relaxed);

    while (memo != NULL) {
        struct words_memo *next = memo->next;

        if (memo != words->room)
            free(memo);
        memo = next;
    }
    atomic_store_explicit(&words->memos, NULL, memory_order_relaxed);
}

uint64_t
words_memo_bytes(uint32_t count)
{
    return sizeof(struct words_memo) + count * sizeof(int32_t);
}

static struct words_memo *
find_memo(struct words_memo *memo, const void *key)
{
    while (memo != NULL && memo->key != key)
        memo = memo->next;
    return memo;
}

void
words_give_room(struct words *words, void *room)
{
    words->room = room;
}

static struct words_memo *
take_room(struct words *words)
{
    if (words->room != NULL &&
        !atomic_exchange_explicit(&words->room_is_used, true, memory_order_relaxed))
        return words->room;
    return tnd_alloc(words_memo_bytes(words->count));
}

/* The stage's memo of a dictionary. If two threads add it, the first one's counts. */
static struct words_memo *
memo_of(struct words *words, const void *key)
{
    /* Pairs with the exchange below: a memo that is seen is filled. */
    struct words_memo *first = atomic_load_explicit(&words->memos, memory_order_acquire);
    struct words_memo *memo = find_memo(first, key), *made;

    if (memo != NULL)
        return memo;
    made = take_room(words);
    made->key = key;
    for (uint32_t i = 0; i < words->count; i++)
        atomic_init(&made->values[i], WORDS_UNMADE);
    do {
        memo = find_memo(first, key);
        made->next = first;
    } while (memo == NULL &&
             !atomic_compare_exchange_weak_explicit(&words->memos, &first, made,
                                                    memory_order_acq_rel, memory_order_acquire));
    if (memo == NULL)
        return made;
    if (made != words->room)
        free(made);
    return memo;
}

void
words_carry(const struct words *from, struct words *to, const uint32_t *numbers)
{
    const struct words_memo *memo = atomic_load_explicit(&from->memos, memory_order_acquire);

    for (; memo != NULL; memo = memo->next) {
        struct words_memo *carried = memo_of(to, memo->key);

        for (uint32_t i = 0; i < from->count; i++)
            if (numbers[i] != 0)
                atomic_store_explicit(&carried->values[numbers[i] - 1],
                                      atomic_load_explicit(&memo->values[i], memory_order_relaxed),
                                      memory_order_relaxed);
    }
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
static struct words_note *
find_note(struct scratch *scratch, const struct byte_view *texts, int64_t count)
{
    struct words_note *note = *scratch_words(scratch);
    uintptr_t begin = (uintptr_t)texts, end = (uintptr_t)(texts + count);

    while (note != NULL &&
           (begin < (uintptr_t)note->texts || end > (uintptr_t)(note->texts + note->count)))
        note = note->next;
    return note;
}

static struct byte_view
text_of(const struct words_note *note, int64_t at)
{
    uint32_t number = note->numbers[at];
    const struct words *words;

    if (!note->lacks_texts || number == WORDS_NONE)
        return note->texts[at];
    words = note->dictionaries[number >> WORDS_SHIFT];
    return words->text(words, number & (WORDS_MAX - 1));
}

void
words_fill(struct scratch *scratch, const struct byte_view *texts, int64_t count, int64_t step)
{
    struct words_note *note = find_note(scratch, texts, count);

    if (note == NULL || !note->lacks_texts)
        return;
    for (int64_t i = texts - note->texts; i < texts - note->texts + count; i += step)
        note->texts[i] = text_of(note, i);
}

struct making {
    const struct words_maker *maker;
    const struct words_note *note;
    int64_t first; /* of the note's texts */
    const uint32_t *numbers;
    struct words_memo **memos; /* of the note's dictionaries */
    uint64_t word_count;       /* of all dictionaries */
    int64_t *values;
};

static _Atomic int32_t *
slot_of(const struct making *making, uint32_t number)
{
    return &making->memos[number >> WORDS_SHIFT]->values[number & (WORDS_MAX - 1)];
}

/* Words of fewer are in the cache soon. */
enum { FEW_WORDS = 4096 };

/* Misses of the cache are waited for together. */
static void
expect(const struct making *making, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        if (making->numbers[i] != WORDS_NONE)
            __builtin_prefetch((const void *)slot_of(making, making->numbers[i]));
}

/* Are all numbers of one dictionary, as they are where rows come in the file's order? */
static bool
is_one_dictionary(const struct making *making, int64_t begin, int64_t end)
{
    uint32_t first = making->numbers[begin], differences = 0;

    for (int64_t i = begin; i < end; i++)
        differences |= making->numbers[i] ^ first;
    return differences < WORDS_MAX && first != WORDS_NONE;
}

/* Take what is memoised of some texts, and WORDS_UNMADE; is anything unmade? */
static bool
take_known(const struct making *making, int64_t begin, int64_t end)
{
    bool is_unmade = false;

    if (making->word_count > FEW_WORDS)
        expect(making, begin, end);
    if (is_one_dictionary(making, begin, end)) {
        const _Atomic int32_t *slots = making->memos[making->numbers[begin] >> WORDS_SHIFT]->values;

        for (int64_t i = begin; i < end; i++) {
            int32_t value = atomic_load_explicit(&slots[making->numbers[i] & (WORDS_MAX - 1)],
                                                 memory_order_relaxed);

            making->values[i] = value;
            is_unmade |= value == WORDS_UNMADE;
        }
        return is_unmade;
    }
    for (int64_t i = begin; i < end; i++) {
        uint32_t number = making->numbers[i];
        int32_t value = number == WORDS_NONE
                            ? WORDS_UNMADE
                            : atomic_load_explicit(slot_of(making, number), memory_order_relaxed);

        making->values[i] = value;
        is_unmade |= value == WORDS_UNMADE;
    }
    return is_unmade;
}

/* The same of what came with the texts. */
static bool
take_made(const struct making *making, int64_t begin, int64_t end)
{
    const int32_t *made;
    bool is_unmade = false;

    if (making->note->made == NULL || making->note->key != making->maker->key)
        return true;
    made = making->note->made + making->first;
    for (int64_t i = begin; i < end; i++) {
        making->values[i] = made[i];
        is_unmade |= made[i] == WORDS_UNMADE;
    }
    return is_unmade;
}

/* A word is a miss of the cache for where its text lies, and one for the text. */
static void
find_texts(const struct making *making, const int64_t *where, size_t count,
           struct byte_view *ret_texts)
{
    const struct words_note *note = making->note;

    for (size_t i = 0; i < count && note->lacks_texts; i++) {
        uint32_t number = making->numbers[where[i]];
        const struct words *words =
            number == WORDS_NONE ? NULL : note->dictionaries[number >> WORDS_SHIFT];

        if (words != NULL && words->expect != NULL)
            words->expect(words, number & (WORDS_MAX - 1));
    }
    for (size_t i = 0; i < count; i++) {
        ret_texts[i] = text_of(note, making->first + where[i]);
        __builtin_prefetch(ret_texts[i].data);
    }
}

static void
make_unmade(const struct making *making, int64_t begin, int64_t end)
{
    struct byte_view texts[WORDS_BLOCK];
    int64_t values[WORDS_BLOCK], where[WORDS_BLOCK];
    size_t count = 0;

    for (int64_t i = begin; i < end; i++)
        if (making->values[i] == WORDS_UNMADE)
            where[count++] = i;
    must(count > 0);
    find_texts(making, where, count, texts);
    making->maker->make(making->maker->context, texts, count, values);
    for (size_t i = 0; i < count; i++) {
        uint32_t number = making->numbers[where[i]];

        making->values[where[i]] = values[i];
        if (number != WORDS_NONE && values[i] == (int32_t)values[i])
            atomic_store_explicit(slot_of(making, number), (int32_t)values[i],
                                  memory_order_relaxed);
    }
}

void
words_make_all(struct words *words, const struct words_maker *maker, int32_t *ret_made)
{
    struct words_memo *memo = memo_of(words, maker->key);
    struct byte_view texts[WORDS_BLOCK];
    int64_t values[WORDS_BLOCK];

    for (uint32_t begin = 0, count; begin < words->count; begin += count) {
        count = words->count - begin < WORDS_BLOCK ? words->count - begin : WORDS_BLOCK;
        for (uint32_t i = 0; i < count; i++)
            texts[i] = words->text(words, begin + i);
        maker->make(maker->context, texts, count, values);
        for (uint32_t i = 0; i < count; i++) {
            bool fits = values[i] == (int32_t)values[i];

            ret_made[begin + i] = fits ? (int32_t)values[i] : WORDS_UNMADE;
            atomic_store_explicit(&memo->values[begin + i], ret_made[begin + i],
                                  memory_order_relaxed);
        }
    }
}

bool
words_make(struct scratch *scratch, const struct words_maker *maker, const struct byte_view *texts,
           int64_t count, int64_t *ret_values)
{
    const struct words_note *note = find_note(scratch, texts, count);
    struct making making = { .maker = maker, .note = note, .values = ret_values };

    if (note == NULL || count == 0)
        return false;
    making.first = texts - note->texts;
    making.numbers = note->numbers + making.first;
    making.memos = scratch_array(scratch, note->dictionary_count, sizeof *making.memos);
    for (uint32_t i = 0; i < note->dictionary_count; i++)
        if (note->dictionaries[i] != NULL) {
            making.memos[i] = memo_of(note->dictionaries[i], maker->key);
            making.word_count += note->dictionaries[i]->count;
        }
    for (int64_t begin = 0; begin < count; begin += WORDS_BLOCK) {
        int64_t end = begin + WORDS_BLOCK < count ? begin + WORDS_BLOCK : count;

        if (take_made(&making, begin, end) && take_known(&making, begin, end))
            make_unmade(&making, begin, end);
    }
    return true;
}
