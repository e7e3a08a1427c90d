/* digest.h - a hash over what an epoch's order has brought so far, for comparing nodes.
 *
 * Under DATA every node computes the whole order and keeps its share. The references that go
 * through the last shard are hashed; the hash is noted at every `interval` elements and at the end.
 * Where references do not say what is in a row, the source puts a word beside them that does, or
 * notes what all its rows are.
 */
#ifndef ORDER_DIGEST_H
#define ORDER_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct order_digest {
    uint64_t interval; /* elements; 0: nothing is hashed */
    uint64_t passed, hash;
    uint64_t from;       /* elements before this one are not hashed */
    uint64_t mark_count; /* intervals that are whole */
    uint64_t mark_hash;  /* at the end of the last of them */
    bool is_over;        /* `passed` elements are all, and `hash` is theirs */
    uint64_t whole;      /* a sum of the notes of this epoch */
    uint64_t numbering;  /* says which caches were found and which are made, and the numbers of
                            files: if they differ, so do references to the same rows; all epochs
                            so far count */
};

/* Begin again, at an epoch's start. */
void order_digest_start(struct order_digest *digest);

/* `count` elements of `width` words, of which those in run_words are runs. */
void order_digest_add(struct order_digest *digest, const uint64_t *words, size_t count,
                      uint32_t width, uint64_t run_words);

/* There are no more elements in this epoch. */
void order_digest_end(struct order_digest *digest);

/* A cache in a file was opened: content is what it holds; 0: it is being made. Its file has this
 * number here: another one on a node that made it, of a pass that another node found. */
void order_digest_note_cache(struct order_digest *digest, uint64_t content, uint32_t file);

/* Elements were passed over, and this many files are known then: fewer on a node whose cache folder
 * told it what the others looked up in files, so that the next file has another number there. */
void order_digest_note_files(struct order_digest *digest, uint32_t count);

/* Skip `count` elements that were not hashed. Nodes that resume at one step skip nearly equally
 * many, up to where each has its own share; so all hash again from the next interval on. */
void order_digest_pass_over(struct order_digest *digest, uint64_t count);

#endif
