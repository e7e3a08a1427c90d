/* digest.c - one multiplication per word, since hashing must cost less than making the order. */
#include "order/digest.h"

#include "order/run.h"

enum { LANES = 4 };

static const uint64_t FACTOR = UINT64_C(0x9e3779b97f4a7c15);

void
order_digest_start(struct order_digest *digest)
{
    *digest = (struct order_digest){ .interval = digest->interval, .numbering = digest->numbering };
}

static uint64_t
mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * FACTOR;
    return hash ^ (hash >> 29);
}

/* Each multiplication of `mix` waits for the one before it. Long arrays (a batch has thousands of
 * words) therefore use four independent hashes, each of every fourth word. */
static uint64_t
mix_words(uint64_t hash, const uint64_t *words, uint64_t count)
{
    uint64_t lanes[LANES] = { hash, ~hash, hash ^ FACTOR, hash + FACTOR };
    uint64_t i = 0;

    if (count < 4 * LANES) {
        for (; i < count; i++)
            hash = mix(hash, words[i]);
        return hash;
    }
    for (; i + LANES <= count; i += LANES)
        for (uint32_t lane = 0; lane < LANES; lane++)
            lanes[lane] = mix(lanes[lane], words[i + lane]);
    for (; i < count; i++)
        lanes[0] = mix(lanes[0], words[i]);
    hash = lanes[0];
    for (uint32_t lane = 1; lane < LANES; lane++)
        hash = mix(hash, lanes[lane]);
    return hash;
}

/* Hash what runs hold, recursively. The addresses of runs differ between nodes and must not be
 * hashed. */
static uint64_t
mix_elements(uint64_t hash, const uint64_t *words, uint64_t count, uint32_t width,
             uint64_t run_words)
{
    if (run_words == 0)
        return mix_words(hash, words, count * width);
    for (uint64_t i = 0; i < count; i++)
        for (uint32_t w = 0; w < width; w++) {
            uint64_t word = words[i * width + w];
            const struct run *run;

            if (((run_words >> w) & 1) == 0) {
                hash = mix(hash, word);
                continue;
            }
            run = run_of_word(word);
            if (run == NULL)
                continue;
            hash = mix(hash, run->element_count);
            hash = mix_elements(hash, run->words, run->element_count, run->width, run->run_words);
        }
    return hash;
}

void
order_digest_add(struct order_digest *digest, const uint64_t *words, size_t count, uint32_t width,
                 uint64_t run_words)
{
    for (size_t i = 0; i < count; i++) {
        if (digest->passed >= digest->from)
            digest->hash = mix_elements(digest->hash, words + i * width, 1, width, run_words);
        if (++digest->passed % digest->interval == 0) {
            digest->mark_count = digest->passed / digest->interval;
            digest->mark_hash = digest->hash;
        }
    }
}

void
order_digest_end(struct order_digest *digest)
{
    digest->is_over = true;
}

/* A sum does not depend on order: each node may open its caches in another order. */
void
order_digest_note_cache(struct order_digest *digest, uint64_t content, uint32_t file)
{
    digest->whole += content;
    digest->numbering += mix(content != 0, file);
}

void
order_digest_note_files(struct order_digest *digest, uint32_t count)
{
    digest->numbering += mix(2, count);
}

/* Nodes that resume pass over slightly different numbers of elements. All of them hash again from
 * the next interval on, so that their marks can be compared. */
void
order_digest_pass_over(struct order_digest *digest, uint64_t count)
{
    uint64_t rest;

    digest->passed += count;
    rest = digest->passed % digest->interval;
    digest->from = rest == 0 ? digest->passed : digest->passed + digest->interval - rest;
    digest->hash = 0;
    digest->mark_count = digest->passed / digest->interval;
    digest->mark_hash = 0;
}
