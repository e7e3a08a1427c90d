/* source.h - where elements come from: an order side that yields references, a content side that
 * makes rows of them.
 *
 * A source's element is two words. Only the source knows their meaning. One rule applies: they
 * hold no address and own nothing, so that they may be copied, dropped and kept at any time.
 */
#ifndef SOURCE_SOURCE_H
#define SOURCE_SOURCE_H

#include "column/frame.h"
#include "core/bytes.h"
#include "order/order.h"
#include "plan/stage.h"

struct matching_files;
struct path_base;
struct source_files;

enum { SOURCE_WIDTH = 2 };

/* The meaning of an element's words to another process that has the same plan. */
enum source_words {
    WORDS_OF_HERE,      /* nothing */
    WORDS_ARE_THE_SAME, /* the same as here */
    WORDS_HAVE_FILE,    /* the same, but for the upper half of word 1, the number of a file */
    WORDS_HAVE_PATH     /* the same, but for word 0, the number of a path */
};

/* Where an element of a source comes from, for people. Texts live as long as the files. */
struct whereabouts {
    struct byte_view file; /* as the pipeline names it; data NULL: in no file */
    const char *path;      /* of that file on this machine, or NULL */
    const char *packing; /* offsets count the bytes that this unpacks to; NULL: those of the file */
    bool has_bytes;      /* it is `length` bytes at `offset` */
    uint64_t offset, length;
    bool has_record; /* it is this record of the file, from 0 */
    uint64_t record;
    const char *number_name; /* what else numbers it, or NULL */
    int64_t number;
    const char *note; /* a sentence about what cannot be named, or NULL */
};

/* The destination of rows. */
struct source_read {
    const struct plan_node *node;
    struct source_files *files;
    const uint64_t *words; /* the first row's */
    size_t stride;         /* from a row's words to the next one's */
    int64_t count;
    struct frame *output; /* columns to fill; outer is set inside functions */
    bool skips_bad; /* rows that cannot be read are left out: nobody waits for their sentences */
};

struct source_ops {
    const char *name;
    struct order_ops order;
    size_t state_bytes; /* of what open makes; the iterator's is order.state_bytes */

    /* Check the parameters, state the columns, parse what lies in the pipeline file itself.
     * config->input is empty. May fail half-way: close is called either way. */
    tundish_status (*open)(void *state, const struct stage_config *config,
                           struct schema *ret_schema);

    /* Fill output->columns for `count` rows. Any thread, several at a time. A row that cannot be
     * read is frame_reject's, with file and offset in the sentence. */
    tundish_status (*read)(const void *state, const struct source_read *read);

    /* Say where an element is from. NULL: refers_to_records says it. */
    void (*tell)(const void *state, struct source_files *files, const uint64_t *words,
                 struct whereabouts *ret_where);

    /* Say in a sentence what the plan should show of its files; the caller frees. NULL: nothing. */
    char *(*describe)(const void *state);

    char *(*learned)(const void *state); /* as content_ops.learned */

    /* As content_ops.files: what a place depends on, beside files. NULL: nothing. */
    void (*files)(const void *state,
                  void (*say)(void *context, const char *name, uint64_t content_hash),
                  void *context);

    /* As content_ops.code_hash. */
    uint64_t (*code_hash)(const void *state);

    /* Can it begin? Asked before anything runs; `root` is the folder of relative paths. NULL: yes.
     */
    tundish_status (*can_begin)(const void *state, const char *root);

    /* Does it keep what it reads in the cache folder while it reads? `has_urls`: names or patterns
     * of the stream are URLs. NULL: no. */
    bool (*needs_cache)(const void *state, bool has_urls);

    /* Bytes of the only column, a string, as the row's reference says. NULL: not known before it
     * is read. */
    uint64_t (*row_bytes)(const uint64_t *words);

    /* Where each node has some files: those that this node has of those that a folder names, or
     * (base->catalogue) all nodes have; the caller closes the list. NULL: its parameters name the
     * files, by name or by pattern. */
    tundish_status (*own_files)(const void *state, const struct path_base *base,
                                struct matching_files *ret_found);

    /* A hash of the paths, below its folder, of the files that a folder has. NULL: its parameters
     * name the files. */
    tundish_status (*list_hash)(const void *state, const struct path_base *base,
                                uint64_t *ret_hash);

    /* All texts of a column that lies in memory, and how many they are. NULL: it has none. */
    const struct byte_view *(*texts)(const void *state, uint32_t column, int64_t *ret_count);

    /* Leave out records that are blank: the plan has found that nobody takes them. NULL: it has
     * none. */
    void (*leave_out_blank)(void *state);

    /* A hash over all that lies in memory of files. NULL: nothing does. */
    uint64_t (*files_hash)(const void *state);

    /* As TensorFlow sees it: a reader of files that FILE sharding can cut, or not. */
    bool reads_files;

    bool lists_files;        /* the names of files that were found */
    bool shares_index;       /* where its records lie follows from a file's bytes alone */
    bool whole_files;        /* reads files as they are, by their paths, not records */
    const char *path_column; /* the path of the file that a row is; NULL: it tells none */
    enum source_words words; /* to another process */
    bool words_are_values;   /* an element's words say all that is in its row */
    bool may_yield_batches;  /* it may yield rows or batches */
    bool of_replicas;        /* yields one element for each replica, by its number */

    /* An element's words are a reference to a record of a file (scan.h). */
    bool refers_to_records;
    bool tells_records; /* ... or to one that `tell` names, without bytes of its own */

    bool is_csv; /* its records are rows of CSV (csv_fields.h), whatever they are read from */

    /* Another run may bring other rows, on another node too: a third word says what is in the row,
     * for comparing the elements that nodes deal. */
    bool tells_content;
    uint32_t extra_bytes; /* bytes after a record that are read with it */

    void (*close)(void *state);
};

/* The table's entry for a stage, or NULL: not in this build. */
const struct source_ops *source_find(const char *name);

#endif
