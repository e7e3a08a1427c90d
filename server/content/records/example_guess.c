/* example_guess.c - the fast path for records that resemble the record before. All others go to the
 * plain parser. Features with one value are taken first (example_single.c). Each of the
 * others, and each name that nobody wants, remembers which one followed it, since writers put
 * features into every record in the same order; a guessed name is confirmed by one comparison. */
#include <string.h>

#include "content/records/example_parsing.h"
#include "core/memory.h"

/* Records in which runs are looked for, where none are known. */
enum { WATCHED = 32 };

enum { LEARNED_MAX = 192, LEARNED_SLOTS = 512, HEAD_BYTES = 16, NAME_MAX_BYTES = 127 };

/* In an entry, bytes before a name (tag and length) and around it (the value's tag, too). */
enum { BEFORE_NAME = 2, AROUND_NAME = 3 };

/* Prepare a name for the comparison. `words` are its first bytes. A name longer than NAME_MAX_BYTES
 * has a length of two bytes and never matches here. */
static struct known_name
known_name(struct name_words words, const uint8_t *bytes, uint64_t size)
{
    struct known_name known = { .bytes = bytes, .size = UINT32_MAX, .feature = NOBODY };
    const uint64_t around = size + AROUND_NAME;
    uint8_t head[HEAD_BYTES + AROUND_NAME] = { TAG_KEY, (uint8_t)size };

    if (size > NAME_MAX_BYTES)
        return known;
    known.size = (uint32_t)size;
    memcpy(head + BEFORE_NAME, &words.low, sizeof words.low);
    memcpy(head + BEFORE_NAME + 8, &words.high, sizeof words.high);
    if (around <= HEAD_BYTES)
        head[around - 1] = TAG_VALUE;
    known.head = name_words(head, HEAD_BYTES);
    memset(head, 0xff, sizeof head);
    known.mask = name_words(head, around);
    return known;
}

/* Whether the entry of `length` bytes at `at` starts with this name and has a value. Readable bytes
 * follow every record, so the head needs no check before its load. */
static inline bool
begins_with(const struct known_name *known, const uint8_t *at, uint32_t length)
{
    const uint64_t low = (load_u64(at) ^ known->head.low) & known->mask.low;
    const uint64_t high = (load_u64(at + 8) ^ known->head.high) & known->mask.high;
    const uint64_t around = (uint64_t)known->size + AROUND_NAME;

    if ((low | high) != 0 || around >= length)
        return false;
    return around <= HEAD_BYTES || (memcmp(at + HEAD_BYTES, known->bytes + HEAD_BYTES - BEFORE_NAME,
                                           around - 1 - HEAD_BYTES) == 0 &&
                                    at[around - 1] == TAG_VALUE);
}

/* Look up a name that was not guessed, learn it if no feature wants it, and expect it next time.
 * False: not a plain case. */
static bool __attribute__((noinline))
look_up(struct parsing *parsing, uint32_t previous, const uint8_t *at, uint32_t length,
        uint32_t *ret_found)
{
    const uint8_t *name = at + BEFORE_NAME;
    const uint64_t size = at[1];
    struct name_words words;
    uint32_t found, *learned;
    int32_t feature;
    uint64_t hash;

    if (length < 4 || at[0] != TAG_KEY || size > NAME_MAX_BYTES || size + AROUND_NAME >= length ||
        name[size] != TAG_VALUE)
        return false;
    words = name_words(name, size);
    hash = name_hash(words, name, size);
    feature = example_find_feature(parsing->parser, words, hash, name, size);
    learned = &parsing->learned[hash >> 16 & (LEARNED_SLOTS - 1)];
    if (feature != NOBODY) {
        found = (uint32_t)feature;
    } else if (*learned != 0 && begins_with(&parsing->known[*learned], at, length)) {
        found = *learned;
    } else {
        found = parsing->known_count;
        if (found == parsing->parser->count + 1 + LEARNED_MAX)
            /* The memory is bounded: with hostile names, new ones replace old ones. */
            found = parsing->parser->count + 1 + (uint32_t)(hash >> 40) % LEARNED_MAX;
        else
            parsing->known_count++;
        parsing->known[found] = known_name(words, name, size);
        parsing->known[found].next = previous;
        *learned = found;
    }
    parsing->known[previous].next = found;
    *ret_found = found;
    return true;
}

/* Store the feature in [at, end), which is not empty. */
static inline bool
guess_values(struct parsing *parsing, uint32_t f, const uint8_t *at, const uint8_t *end)
{
    const struct example_feature *feature = &parsing->parser->features[f];
    int64_t count;

    if (*at != example_kind_tag(feature->dtype))
        return false;
    if (feature->is_list)
        return example_take_list(parsing, f, at + 1, end);
    return example_read_list(feature->dtype, at + 1, end, example_target(parsing, f),
                             feature->value_count, &count) &&
           count == feature->value_count;
}

/* Store the value for all features with this name. False: not a plain case. */
static inline bool
guess_feature(struct parsing *parsing, int32_t f, const uint8_t *at, const uint8_t *end)
{
    for (; f != NOBODY; f = parsing->parser->same[f]) {
        uint64_t *seen = &parsing->seen[f / 64];
        uint64_t bit = UINT64_C(1) << f % 64;

        if (*seen & bit)
            return false;
        if (at == end) {
            /* A feature without a kind is missing. FastParseExample counts it as seen only for
             * lists of a batch. */
            if (parsing->input->is_batch && parsing->parser->features[f].is_list)
                *seen |= bit;
            continue;
        }
        *seen |= bit;
        if (!guess_values(parsing, (uint32_t)f, at, end))
            return false;
    }
    return true;
}

/* Read an entry's value, which starts with the length of its feature. */
static inline bool
guess_value(struct parsing *parsing, const struct known_name *known, const uint8_t *at,
            const uint8_t *end)
{
    uint32_t length;

    at = wire_length(at, end, &length);
    if (at == NULL || length != (size_t)(end - at))
        return false;
    return known->feature == NOBODY || guess_feature(parsing, known->feature, at, end);
}

/* Read one map entry after its tag. Returns its end; NULL: not a plain case. */
static inline const uint8_t *
guess_entry(struct parsing *parsing, const uint8_t *at, const uint8_t *end, uint32_t *previous)
{
    uint32_t guess = parsing->known[*previous].next, length;

    at = wire_length(at, end, &length);
    if (at == NULL || length > (size_t)(end - at))
        return NULL;
    if (!begins_with(&parsing->known[guess], at, length)) {
        /* If only one feature is missing, the next guess holds. */
        guess = parsing->known[guess].next;
        if (!begins_with(&parsing->known[guess], at, length) &&
            !look_up(parsing, *previous, at, length, &guess))
            return NULL;
    }
    *previous = guess;
    if (!guess_value(parsing, &parsing->known[guess], at + parsing->known[guess].size + AROUND_NAME,
                     at + length))
        return NULL;
    return at + length;
}

static bool
guess_missing(struct parsing *parsing)
{
    const struct example_parser *parser = parsing->parser;

    for (uint32_t w = 0; w < parser->seen_words; w++)
        for (uint64_t missing = parser->required[w] & ~parsing->seen[w]; missing != 0;
             missing &= missing - 1) {
            uint32_t f = 64 * w + (uint32_t)__builtin_ctzll(missing);

            if (parser->features[f].fallback == NULL)
                return false;
            example_take_fallback(parsing, f);
        }
    return true;
}

/* Read a record in its usual form. Whatever looks unusual is left to the plain parser, which reads
 * the record from the start; so this path never decides that a record is bad. */
static bool
guess_record(struct parsing *parsing, struct byte_view record)
{
    const struct example_parser *parser = parsing->parser;
    const uint8_t *at = record.data;
    const uint8_t *end = record.data + record.size;
    uint32_t previous = parser->count;
    uint32_t length;

    for (uint32_t w = 0; w < parser->seen_words; w++)
        parsing->seen[w] = 0;
    for (uint32_t i = 0; i < parser->list_count; i++) {
        int64_t *splits = parsing->values[parser->lists[i]].splits;

        splits[parsing->row + 1] = splits[parsing->row];
    }
    if (record.size > 0) {
        if (*at != TAG_FEATURES)
            return false;
        at = wire_length(at + 1, end, &length);
        if (at == NULL || length != (size_t)(end - at))
            return false;
    }
    while (at != NULL && at < end) {
        at = parser->take_singles(parsing, at, end, &previous);
        if (at == end)
            break;
        at = *at == TAG_ENTRY ? guess_entry(parsing, at + 1, end, &previous) : NULL;
    }
    return at != NULL && guess_missing(parsing);
}

struct known_name *
example_known_names(const struct example_parser *parser)
{
    struct known_name *all = tnd_alloc((parser->count + 1) * sizeof *all);

    for (uint32_t f = 0; f < parser->count; f++) {
        all[f] = known_name(parser->words[f], (const uint8_t *)parser->features[f].name,
                            parser->features[f].name_bytes);
        all[f].feature = parser->first[f];
        all[f].next = f + 1 < parser->count ? f + 1 : 0;
    }
    all[parser->count] = (struct known_name){ .size = UINT32_MAX, .feature = NOBODY };
    return all;
}

/* Learned names follow the features' names, and live as long as this call. */
static void
know_features(struct parsing *parsing)
{
    const struct example_parser *parser = parsing->parser;
    struct scratch *scratch = parsing->frame->scratch;

    parsing->known =
        scratch_array(scratch, parser->count + 1 + LEARNED_MAX, sizeof *parsing->known);
    parsing->known_count = parser->count + 1;
    memcpy(parsing->known, parser->known, parsing->known_count * sizeof *parsing->known);
    parsing->learned = scratch_array(scratch, LEARNED_SLOTS, sizeof *parsing->learned);
    memset(parsing->learned, 0, LEARNED_SLOTS * sizeof *parsing->learned);
}

static struct parsing
begin(const struct example_parser *parser, const struct example_input *input, struct frame *frame,
      struct example_values *values)
{
    struct parsing parsing = { .parser = parser, .input = input, .frame = frame, .values = values };

    parsing.seen = scratch_array(frame->scratch, parser->seen_words + 1, sizeof *parsing.seen);
    for (uint32_t i = 0; i < parser->list_count; i++) {
        struct example_values *list = &values[parser->lists[i]];

        *list = (struct example_values){ 0 };
        list->splits =
            scratch_array(frame->scratch, (size_t)input->count + 1, sizeof *list->splits);
        list->splits[0] = 0;
        example_reserve(&parsing, parser->lists[i], 0, input->count);
    }
    return parsing;
}

void
example_parse(const struct example_parser *parser, const struct example_input *input,
              struct frame *frame, struct example_values *values)
{
    struct parsing parsing = begin(parser, input, frame, values);

    know_features(&parsing);
    parsing.targets = scratch_array(frame->scratch, parser->count + 1, sizeof *parsing.targets);
    for (uint32_t f = 0; f < parser->count; f++)
        parsing.targets[f] = values[f].values;
    parsing.places = example_runs_places(parser->runs);
    for (int64_t i = 0; i < input->count; i++) {
        parsing.row = i;
        if (!guess_record(&parsing, input->records[i]))
            example_read_plainly(&parsing, input->records[i]);
    }
    /* Afterwards: a frame may have no more records than are watched. */
    if (input->count >= WATCHED)
        example_runs_learn(parser, input->records, WATCHED);
}

void
example_parse_plainly(const struct example_parser *parser, const struct example_input *input,
                      struct frame *frame, struct example_values *values)
{
    struct parsing parsing = begin(parser, input, frame, values);

    for (int64_t i = 0; i < input->count; i++) {
        parsing.row = i;
        example_read_plainly(&parsing, input->records[i]);
    }
}
