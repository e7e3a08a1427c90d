/* example_runs.c - runs of entries, learned from the first records that are many enough. Writers
 * put features into every record in the same order, and values of many features are always equally
 * long: hashes, flags, floats. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "content/records/example_parsing.h"
#include "core/memory.h"

enum {
    RUN_ENTRIES_MIN = 3, /* fewer are not worth the comparison */
    RUNS_MAX = 256
};

/* Things once learned stay: other threads read them. */
struct learned {
    struct example_run *runs[RUNS_MAX];
    uint32_t count;
    struct run_place places[];
};

struct example_runs {
    _Atomic(struct learned *) learned;
    struct learned *nothing;
};

/* The majority of the things counted: those like the candidate count for it, others against it. */
struct vote {
    uint32_t candidate;
    int32_t all, lead;
};

/* A feature's: the length of its entries, and the feature that comes next. */
struct habit {
    struct vote length, next;
    int32_t follower; /* or NOBODY */
    bool is_placed;
};

static void
cast_vote(struct vote *vote, uint32_t candidate)
{
    vote->all++;
    if (vote->lead == 0)
        vote->candidate = candidate;
    vote->lead += vote->candidate == candidate ? 1 : -1;
}

/* Seven of eight: what is expected in vain costs more than what is not expected. */
static bool
is_usual(const struct vote *vote)
{
    return vote->all > 0 && 4 * vote->lead >= 3 * vote->all;
}

static void
watch(const struct example_parser *parser, struct byte_view record, struct habit *habits)
{
    const uint8_t *at = record.data, *end = at + record.size;
    int32_t before = (int32_t)parser->count;
    uint32_t length;

    if (record.size == 0)
        return;
    at = wire_length(at + 1, end, &length);
    while (at != NULL && at < end) {
        const int32_t feature = example_single_at(parser, at, end);

        at = wire_length(at + 1, end, &length);
        if (at == NULL || length > (size_t)(end - at))
            return;
        if (feature != NOBODY)
            cast_vote(&habits[feature].length, length);
        if (feature != NOBODY && before != NOBODY)
            cast_vote(&habits[before].next, (uint32_t)feature);
        before = feature;
        at += length;
    }
}

static void
choose_followers(struct habit *habits, uint32_t count)
{
    for (uint32_t f = 0; f <= count; f++) {
        const struct vote *next = &habits[f].next;

        habits[f].follower = NOBODY;
        if (is_usual(next) && is_usual(&habits[next->candidate].length))
            habits[f].follower = (int32_t)next->candidate;
    }
}

/* Put an entry of that length at the end of the run. False: it does not fit. */
static bool
append(const struct example_parser *parser, uint32_t f, uint32_t length, struct example_run *run)
{
    const struct single_head *head = &parser->singles[f];
    const uint32_t begin = run->bytes, bytes = length + ENTRY_HEADER_BYTES;

    if (run->count == 0) {
        run->seen_word = f / 64;
        run->kind = head->kind;
    }
    if (run->count == RUN_ENTRIES || begin + bytes > RUN_BYTES || run->seen_word != f / 64 ||
        run->kind != head->kind)
        return false;
    run->entries[run->count] =
        (struct run_entry){ .feature = f,
                            .value_at = (uint16_t)(begin + head->header_bytes),
                            .value_bytes = (uint8_t)(length - head->least) };
    example_single_header(parser, f, (uint8_t)length, run->wanted + begin);
    memset(run->mask + begin, 0xff, head->header_bytes);
    memset(run->whole + begin, (int)run->count, bytes);
    run->bytes += bytes;
    run->bits[run->count + 1] = run->bits[run->count] | UINT64_C(1) << f % 64;
    run->count++;
    run->begins[run->count] = run->bytes;
    run->whole[run->bytes] = (uint8_t)run->count;
    return true;
}

/* Make a run of the feature and those that follow it. Returns the next one that has no place. */
static int32_t
make_run(const struct example_parser *parser, int32_t f, struct habit *habits,
         struct run_place *places, struct learned *learned)
{
    struct example_run *run = tnd_zalloc(1, sizeof *run);

    while (f != NOBODY && !habits[f].is_placed &&
           append(parser, (uint32_t)f, habits[f].length.candidate, run)) {
        habits[f].is_placed = true;
        f = habits[f].follower;
    }
    if (run->count < RUN_ENTRIES_MIN || learned->count == RUNS_MAX) {
        free(run);
        return f;
    }
    learned->runs[learned->count++] = run;
    for (uint32_t i = 0; i < run->count; i++)
        places[run->entries[i].feature] = (struct run_place){ run, i };
    return f;
}

/* Runs from the record's beginning on, then from each feature that has no place in one. */
static void
make_runs(const struct example_parser *parser, struct habit *habits, struct learned *learned)
{
    struct run_place *places = tnd_zalloc(parser->count + 1, sizeof *places);

    for (uint32_t k = 0; k <= parser->count; k++) {
        int32_t next = habits[k == 0 ? parser->count : k - 1].follower;

        while (next != NOBODY && !habits[next].is_placed)
            next = make_run(parser, next, habits, places, learned);
    }
    for (uint32_t f = 0; f <= parser->count; f++)
        if (habits[f].follower != NOBODY)
            learned->places[f] = places[habits[f].follower];
    free(places);
}

static struct learned *
learned_open(const struct example_parser *parser)
{
    return tnd_zalloc(1, sizeof(struct learned) + (parser->count + 2) * sizeof(struct run_place));
}

static void
learned_close(struct learned *learned)
{
    for (uint32_t i = 0; learned != NULL && i < learned->count; i++)
        free(learned->runs[i]);
    free(learned);
}

struct example_runs *
example_runs_open(const struct example_parser *parser)
{
    struct example_runs *runs = tnd_zalloc(1, sizeof *runs);

    runs->nothing = learned_open(parser);
    return runs;
}

void
example_runs_close(struct example_runs *runs)
{
    if (runs == NULL)
        return;
    learned_close(atomic_load(&runs->learned));
    learned_close(runs->nothing);
    free(runs);
}

const struct run_place *
example_runs_places(const struct example_runs *runs)
{
    /* Pairs with the exchange in example_runs_learn. */
    const struct learned *learned = atomic_load_explicit(&runs->learned, memory_order_acquire);

    return learned != NULL ? learned->places : runs->nothing->places;
}

void
example_runs_learn(const struct example_parser *parser, const struct byte_view *records,
                   int64_t count)
{
    struct learned *learned, *none = NULL;
    struct habit *habits;

    if (atomic_load_explicit(&parser->runs->learned, memory_order_relaxed) != NULL)
        return;
    habits = tnd_zalloc(parser->count + 1, sizeof *habits);
    learned = learned_open(parser);
    for (int64_t i = 0; i < count; i++)
        watch(parser, records[i], habits);
    choose_followers(habits, parser->count);
    make_runs(parser, habits, learned);
    free(habits);
    if (!atomic_compare_exchange_strong(&parser->runs->learned, &none, learned))
        learned_close(learned); /* another thread was faster */
}
