/* vocab.h - vocabulary tables: from a term to its line number, and back.
 *
 * A table is compiled once from its text, kept in the cache folder under the text's content hash,
 * and mapped read-only, so that all processes and all columns with the same vocabulary share one
 * copy. It holds lines only, counted from 0: out-of-vocabulary indices, mask and dtype belong to
 * the lookup (struct vocab_rule), so one table serves every stage.
 *
 * Threads: a table is constant; any number of threads may look up at once.
 */
#ifndef CONTENT_VOCABULARY_VOCAB_H
#define CONTENT_VOCABULARY_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bytes.h"
#include "tundish/tundish.h"

struct spec_remote;
struct vocab;
struct vocab_bucket;

enum vocab_keys {
    VOCAB_STRINGS = 1, /* terms are byte strings */
    VOCAB_INTEGERS = 2 /* terms are int64; in a text, decimal numbers */
};

/* The vocabulary of a text file: one term a line. A line ends at
 *
 *  or at the end of the file and loses one \r before it. An empty line, a repeated term, a file
 * without lines or a line that is not an integer where integers are asked for is
 * TUNDISH_E_PIPELINE, told with file and position. Nothing of the text is special: not "[UNK]", not
 * blanks. `cache_folder` NULL is the default one (core/cache_folder.h).
 */
tundish_status vocab_open_file(const char *cache_folder, const char *path, enum vocab_keys keys,
                               struct vocab **ret_vocab);

/* The same of a text at a URL. */
tundish_status vocab_open_url(const char *cache_folder, const struct spec_remote *remote,
                              const char *url, enum vocab_keys keys, struct vocab **ret_vocab);

/* The vocabulary of a list, under the same rules except that a term may hold any byte and be
 * empty, and that there may be none. `name` is what messages call it, for instance
 * "pipeline.yaml:12: vocabulary". */
tundish_status vocab_open_terms(const char *cache_folder, const char *name,
                                const struct byte_view *terms, size_t count,
                                struct vocab **ret_vocab);
tundish_status vocab_open_integers(const char *cache_folder, const char *name, const int64_t *terms,
                                   size_t count, struct vocab **ret_vocab);

/* Accepts NULL. */
void vocab_close(struct vocab *vocab);

enum vocab_keys vocab_keys(const struct vocab *vocab);
uint64_t vocab_count(const struct vocab *vocab); /* lines */
uint64_t vocab_bytes(const struct vocab *vocab); /* of the table, as it is mapped */

/* The same for the same terms in the same order, on every machine, from file or list. */
uint64_t vocab_fingerprint(const struct vocab *vocab);

/* The term of a line, valid until close; false if there is no such line. */
bool vocab_term(const struct vocab *vocab, int64_t line, struct byte_view *ret_term);
bool vocab_integer(const struct vocab *vocab, int64_t line, int64_t *ret_term);

/* Lines of `count` terms, -1 where a term is absent. Terms are read where they lie and nothing is
 * asked of the bytes around them. Call with a few hundred terms at a time: hashing, fetching and
 * comparing overlap between the terms of one call. */
void vocab_lookup(const struct vocab *vocab, const struct byte_view *terms, size_t count,
                  int64_t *ret_lines);
void vocab_lookup_integers(const struct vocab *vocab, const int64_t *terms, size_t count,
                           int64_t *ret_lines);

/* How absent terms are spread over more than one out-of-vocabulary index. */
enum vocab_oov {
    VOCAB_OOV_FARM = 0,    /* Fingerprint64 of the term; of its decimal text for an integer */
    VOCAB_OOV_SIP = 1,     /* SipHash of the same with the rule's salt */
    VOCAB_OOV_FLOORMOD = 2 /* integers: the value itself, remainder as in Python */
};

/* From a term to the value a stage gives. A term equal to the mask gives `mask_value`, whether
 * the table has it or not; a known one gives line + offset; an absent one gives
 * oov_first + hash % oov_count, without a hash if oov_count is 1, and is refused if it is 0.
 *
 *     Keras, int mode        offset = m + n, oov_first = m, oov_count = n, mask_value = 0
 *     Keras, other modes     offset = n, oov_first = 0, oov_count = n, mask_value = INT64_MAX
 *     default of a table     offset = 0, oov_first = default, oov_count = 1
 *     StaticVocabularyTable  offset = 0, oov_first = vocab_count, oov_count = n
 */
struct vocab_rule {
    int64_t offset;
    int64_t oov_first;
    uint64_t oov_count;
    enum vocab_oov oov;
    uint64_t salt[2];
    bool has_mask;
    struct byte_view mask; /* string tables; stays the caller's */
    int64_t mask_integer;  /* integer tables */
    int64_t mask_value;
};

/* Where values go: `stride` counts values from one to the next, so a column of a row-major
 * matrix can be filled. INT64 or INT32; values that int32 cannot hold lose their upper bits, so
 * the planner chooses INT32 only where they cannot occur. */
struct vocab_output {
    void *data;
    tundish_dtype dtype;
    size_t stride;
    uint64_t *absent; /* grows by the terms that were absent, masks not among them; NULL: unasked */
};

/* These terms will be mapped soon: prefetch their slots. Worth it before a few terms each of
 * several vocabularies, of which each would be waited for in turn. */
void vocab_expect(const struct vocab *vocab, const struct byte_view *terms, size_t count);

/* One term on its way: where several vocabularies are asked for one each, all are asked before the
 * first answer is waited for. */
struct vocab_asked {
    uint64_t key;
    const struct vocab_bucket *home; /* NULL: not asked */
};

/* False: this term or rule is vocab_map's. */
bool vocab_ask(const struct vocab *vocab, const struct vocab_rule *rule, struct byte_view term,
               struct vocab_asked *ret_asked);

/* The answer of vocab_map for the term, by the rule asked with. */
int64_t vocab_answer(const struct vocab *vocab, const struct vocab_rule *rule,
                     const struct vocab_asked *asked);

/* Look up and apply the rule, a block at a time, writing each value once. Returns `count`, or
 * the position of the first term that was refused; what follows it is then unspecified. */
size_t vocab_map(const struct vocab *vocab, const struct vocab_rule *rule,
                 const struct byte_view *terms, size_t count, const struct vocab_output *output);
size_t vocab_map_integers(const struct vocab *vocab, const struct vocab_rule *rule,
                          const int64_t *terms, size_t count, const struct vocab_output *output);

#endif
