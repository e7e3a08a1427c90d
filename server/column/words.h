/* words.h - texts out of a dictionary, so that stages work once for each word instead of each text.
 *
 * A source that has texts by their numbers in a dictionary gives them as any other, and notes the
 * numbers in the task's scratch. A stage that makes an integer of a text asks for the note, and
 * keeps what it made of each word beside the dictionary, for all tasks. A note is about an array of
 * texts: it goes with the array, through whatever stages hand that on.
 *
 * Where the plan knows that stages only ask so (plan/words.c), the texts are left out, since they
 * are most of the bytes of a row of words. Code that needs one nevertheless calls words_fill first.
 */
#ifndef COLUMN_WORDS_H
#define COLUMN_WORDS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "column/scratch.h"
#include "core/bytes.h"

struct words_memo;

/* A dictionary, owned by the source, which sets the first three fields. Zeros: no memos. */
struct words {
    uint32_t count;
    struct byte_view (*text)(const struct words *words, uint32_t number);
    void (*expect)(const struct words *words, uint32_t number); /* its text is asked for soon; or
                                                                   NULL */
    struct words_memo *_Atomic memos;
    struct words_memo *room;   /* for the memo of one stage, which is not freed; or NULL */
    _Atomic bool room_is_used; /* by one that was begun */
};

void words_close(struct words *words); /* accepts zeros; nobody uses it any more */

/* Give a dictionary what stages keep beside another: word i of that is word numbers[i] - 1 here, or
 * is not here where that is 0. */
void words_carry(const struct words *from, struct words *to, const uint32_t *numbers);

/* Room for words_memo_bytes, before a stage has a memo. It outlives the dictionary. */
void words_give_room(struct words *words, void *room);

/* Bytes of what one stage keeps beside it. */
uint64_t words_memo_bytes(uint32_t count);

/* A text's number: the word's, and in the upper bits which of the note's dictionaries it is in. */
enum { WORDS_DICTIONARIES = 128, WORDS_SHIFT = 24 };
#define WORDS_MAX (UINT32_C(1) << WORDS_SHIFT)
#define WORDS_NONE UINT32_MAX /* the text is in no dictionary */

/* Made of no word, or not to be memoised. */
#define WORDS_UNMADE INT32_MIN

struct words_note {
    struct words_note *next;
    struct byte_view *texts;
    int64_t count;
    bool lacks_texts;            /* those that have a number are not there yet */
    const uint32_t *numbers;     /* of each text */
    uint32_t dictionary_count;   /* at most WORDS_DICTIONARIES */
    struct words **dictionaries; /* those that are not used may be NULL */
    const void *key;             /* of the maker that made: */
    const int32_t *made;         /* of each text, or WORDS_UNMADE; NULL: of none */
};

/* Note it. All that it refers to lives until the scratch is reset. */
void words_tell(struct scratch *scratch, const struct words_note *note);

/* Make every `step`th of these texts, if a note about them lacks them. */
void words_fill(struct scratch *scratch, const struct byte_view *texts, int64_t count,
                int64_t step);

enum { WORDS_BLOCK = 256 };

/* A pure function from at most WORDS_BLOCK texts to integers. Results outside int32, and
 * WORDS_UNMADE, are not memoised. */
struct words_maker {
    const void *key; /* of the memo: nothing else makes other integers by this address */
    void (*make)(const void *context, const struct byte_view *texts, size_t count,
                 int64_t *ret_values);
    const void *context;
};

/* Make the integers of all words of a dictionary side by side, before rows here and there ask for
 * them. Any thread. */
void words_make_all(struct words *words, const struct words_maker *maker, int32_t *ret_made);

/* Make the integers of texts, of each word once. False: there is no note about them. */
bool words_make(struct scratch *scratch, const struct words_maker *maker,
                const struct byte_view *texts, int64_t count, int64_t *ret_values);

#endif
