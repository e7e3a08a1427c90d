/* vocab_map.c - from terms to the indices of a lookup stage. */
#include "content/vocabulary/vocab.h"

#include "content/vocabulary/vocab_lookup.h"
#include "core/hash_farm.h"
#include "core/hash_sip.h"
#include "core/must.h"

/* The index of an absent string among several: its hash modulo their number, as StringLookup
 * does. */
static int64_t
oov_string(const struct vocab_rule *rule, struct byte_view term)
{
    uint64_t hash = rule->oov == VOCAB_OOV_SIP ? tnd_hash_sip(rule->salt, term.data, term.size)
                                               : tnd_hash_farm(term.data, term.size);

    return rule->oov_first + (int64_t)(hash % rule->oov_count);
}

static int64_t
oov_integer(const struct vocab_rule *rule, int64_t term)
{
    const uint64_t count = rule->oov_count;
    uint64_t bin;

    switch (rule->oov) {
    case VOCAB_OOV_FLOORMOD:
        /* Floor modulo of a negative number. -(term + 1) cannot overflow, unlike -term. */
        bin = term >= 0 ? (uint64_t)term % count : count - 1 - (uint64_t)(-(term + 1)) % count;
        break;
    case VOCAB_OOV_SIP:
        bin = tnd_hash_sip_decimal(rule->salt, term) % count;
        break;
    default:
        bin = tnd_hash_farm_decimal(term) % count;
        break;
    }
    return rule->oov_first + (int64_t)bin;
}

/* Whether the index for absent terms differs from every line's. */
static bool
oov_is_apart(const struct vocab *vocab, const struct vocab_rule *rule)
{
    return rule->oov_first < rule->offset ||
           rule->oov_first - rule->offset >= (int64_t)vocab_count(vocab);
}

/* Whether a lookup yields all values but the mask's in one step: there is one index for all absent
 * terms. Their number can be counted afterwards if that index is unique. */
static bool
is_plain(const struct vocab *vocab, const struct vocab_rule *rule, const uint64_t *absent)
{
    return rule->oov_count == 1 && (absent == NULL || oov_is_apart(vocab, rule));
}

/* Store values with the output's dtype and stride. */
static void
put(const int64_t *values, size_t count, const struct vocab_output *output, size_t first)
{
    const size_t stride = output->stride;

    if (output->dtype == TUNDISH_INT64) {
        int64_t *to = (int64_t *)output->data + first * stride;

        for (size_t i = 0; i < count; i++)
            to[i * stride] = values[i];
    } else {
        int32_t *to = (int32_t *)output->data + first * stride;

        for (size_t i = 0; i < count; i++)
            to[i * stride] = (int32_t)values[i];
    }
}

/* Turn lines into values. Returns the position of the first refused term, or `count`. */
static size_t
apply_to_strings(const struct vocab_rule *rule, const struct byte_view *terms, size_t count,
                 int64_t *values, uint64_t *absent)
{
    for (size_t i = 0; i < count; i++) {
        if (rule->has_mask && bytes_are_equal(terms[i], rule->mask)) {
            values[i] = rule->mask_value;
        } else if (values[i] >= 0) {
            values[i] += rule->offset;
        } else {
            ++*absent;
            if (rule->oov_count == 0)
                return i;
            values[i] = rule->oov_count == 1 ? rule->oov_first : oov_string(rule, terms[i]);
        }
    }
    return count;
}

static size_t
apply_to_integers(const struct vocab_rule *rule, const int64_t *terms, size_t count,
                  int64_t *values, uint64_t *absent)
{
    for (size_t i = 0; i < count; i++) {
        if (rule->has_mask && terms[i] == rule->mask_integer) {
            values[i] = rule->mask_value;
        } else if (values[i] >= 0) {
            values[i] += rule->offset;
        } else {
            ++*absent;
            if (rule->oov_count == 0)
                return i;
            values[i] = rule->oov_count == 1 ? rule->oov_first : oov_integer(rule, terms[i]);
        }
    }
    return count;
}

/* Give terms that equal the mask its value. Those among them that were absent are not counted as
 * such. */
static void
put_mask(const struct vocab_rule *rule, const struct byte_view *terms, size_t count,
         int64_t *values, uint64_t *absent)
{
    for (size_t i = 0; i < count; i++)
        if (__builtin_expect(terms[i].size == rule->mask.size, 0) &&
            bytes_are_equal(terms[i], rule->mask)) {
            if (absent != NULL)
                *absent -= values[i] == rule->oov_first;
            values[i] = rule->mask_value;
        }
}

/* Map one block. `absent` may be NULL: then absent terms are not counted. */
static size_t
map_strings(const struct vocab *vocab, const struct vocab_rule *rule, const struct byte_view *terms,
            size_t count, int64_t *values, uint64_t *absent)
{
    uint64_t nobody_asks = 0;

    if (is_plain(vocab, rule, absent)) {
        const uint64_t shortest =
            vocab_lookup_block(vocab, terms, count, rule->offset, rule->oov_first, values);

        if (absent != NULL)
            *absent += vocab_count_equal(values, count, rule->oov_first);
        if (rule->has_mask && rule->mask.size >= shortest)
            put_mask(rule, terms, count, values, absent);
        return count;
    }
    vocab_lookup_block(vocab, terms, count, 0, -1, values);
    return apply_to_strings(rule, terms, count, values, absent != NULL ? absent : &nobody_asks);
}

static size_t
map_integers(const struct vocab *vocab, const struct vocab_rule *rule, const int64_t *terms,
             size_t count, int64_t *values, uint64_t *absent)
{
    uint64_t nobody_asks = 0;

    if (!rule->has_mask && is_plain(vocab, rule, absent)) {
        vocab_lookup_integer_block(vocab, terms, count, rule->offset, rule->oov_first, values);
        if (absent != NULL)
            *absent += vocab_count_equal(values, count, rule->oov_first);
        return count;
    }
    vocab_lookup_integer_block(vocab, terms, count, 0, -1, values);
    return apply_to_integers(rule, terms, count, values, absent != NULL ? absent : &nobody_asks);
}

/* Whether values can be written in place: contiguous int64. */
static bool
goes_straight(const struct vocab_output *output)
{
    return output->dtype == TUNDISH_INT64 && output->stride == 1;
}

/* One of the terms is NULL: a vocabulary has keys of one kind. */
static size_t
map_blocks(const struct vocab *vocab, const struct vocab_rule *rule,
           const struct byte_view *strings, const int64_t *integers, size_t count,
           const struct vocab_output *output)
{
    int64_t aside[VOCAB_BLOCK];

    must(output->dtype == TUNDISH_INT64 || output->dtype == TUNDISH_INT32);
    for (size_t from = 0; from < count; from += VOCAB_BLOCK) {
        size_t block = count - from < VOCAB_BLOCK ? count - from : VOCAB_BLOCK;
        int64_t *values = goes_straight(output) ? (int64_t *)output->data + from : aside;
        size_t done =
            strings != NULL
                ? map_strings(vocab, rule, strings + from, block, values, output->absent)
                : map_integers(vocab, rule, integers + from, block, values, output->absent);

        if (values == aside)
            put(values, done, output, from);
        if (done < block)
            return from + done;
    }
    return count;
}

size_t
vocab_map(const struct vocab *vocab, const struct vocab_rule *rule, const struct byte_view *terms,
          size_t count, const struct vocab_output *output)
{
    must(vocab->keys == VOCAB_STRINGS);
    return map_blocks(vocab, rule, terms, NULL, count, output);
}

size_t
vocab_map_integers(const struct vocab *vocab, const struct vocab_rule *rule, const int64_t *terms,
                   size_t count, const struct vocab_output *output)
{
    must(vocab->keys == VOCAB_INTEGERS);
    return map_blocks(vocab, rule, NULL, terms, count, output);
}
