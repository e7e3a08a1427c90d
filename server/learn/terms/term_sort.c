/* term_sort.c - terms by the words of their keys.
 *
 * Most pairs differ in their keys, which lie side by side, so that sorting reads neither the terms
 * nor their texts.
 */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "learn/terms/term_runs.h"

struct keyed {
    uint64_t key[2];
    struct term *term;
};

int
term_compare_text(const struct term *a, const struct term *b)
{
    uint64_t shorter = a->text.size < b->text.size ? a->text.size : b->text.size;
    int order = shorter == 0 ? 0 : memcmp(a->text.data, b->text.data, shorter);

    return order != 0 ? order : (a->text.size > b->text.size) - (a->text.size < b->text.size);
}

uint64_t
term_text_word(struct byte_view text, uint64_t at)
{
    uint64_t left = text.size > at ? text.size - at : 0, word = 0;

    if (left > 0)
        memcpy(&word, text.data + at, left < sizeof word ? left : sizeof word);
    return __builtin_bswap64(word);
}

static void
key_of_text(const struct term *term, uint64_t ret_key[2])
{
    ret_key[0] = term_text_word(term->text, 0);
    ret_key[1] = term_text_word(term->text, 8);
}

const struct term_order term_order_text = { term_compare_text, key_of_text };

static bool
comes_before(const struct keyed *a, const struct keyed *b, const struct term_order *order)
{
    if (a->key[0] != b->key[0])
        return a->key[0] < b->key[0];
    if (a->key[1] != b->key[1])
        return a->key[1] < b->key[1];
    return order->compare(a->term, b->term) < 0;
}

/* Merge sort, since it compares least. `room` is for half of the list. */
static void
sort_keyed(struct keyed *list, size_t count, struct keyed *room, const struct term_order *order)
{
    size_t half = count / 2, left = 0, right = half, to = 0;

    if (count < 2)
        return;
    sort_keyed(list, half, room, order);
    sort_keyed(list + half, count - half, room, order);
    memcpy(room, list, half * sizeof *list);
    while (left < half && right < count)
        list[to++] = comes_before(&list[right], &room[left], order) ? list[right++] : room[left++];
    memcpy(&list[to], &room[left], (half - left) * sizeof *list);
}

/* Put each term where its key is, along the cycles of the permutation. */
static void
move_terms(struct term *list, uint32_t count, struct keyed *keyed)
{
    for (uint32_t i = 0; i < count; i++) {
        struct term first = list[i];
        uint32_t at = i;

        while (keyed[at].term != &list[i]) {
            struct term *from = keyed[at].term;

            list[at] = *from;
            keyed[at].term = &list[at];
            at = (uint32_t)(from - list);
        }
        list[at] = first;
        keyed[at].term = &list[at];
    }
}

void
term_sort(struct term *list, uint32_t count, const struct term_order *order)
{
    struct keyed *keyed = tnd_alloc(((size_t)count + count / 2 + 1) * sizeof *keyed);

    for (uint32_t i = 0; i < count; i++) {
        order->key(&list[i], keyed[i].key);
        keyed[i].term = &list[i];
    }
    sort_keyed(keyed, count, keyed + count, order);
    move_terms(list, count, keyed);
    free(keyed);
}
