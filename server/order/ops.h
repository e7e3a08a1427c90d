/* ops.h - all that the rest of the server knows of an order stage: its functions, and the facts
 * that the plan, the evaluation and other stages ask for. Nobody asks for its name.
 */
#ifndef ORDER_OPS_H
#define ORDER_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tundish/tundish.h"

struct order_counting;
struct order_iterator;
struct order_numbers;
struct order_planning;
struct plan_node;
struct spec_errors;
struct spec_stage;
struct stage_question;

enum order_result {
    ORDER_OK,    /* at least one element */
    ORDER_END,   /* none, and none will follow */
    ORDER_FAILED /* none; tnd_error_text says why. The next call goes on after the error, as
                    tf.data's iterators do, where the stage can; else ORDER_END */
};

/* How a stage's elements are made. */
enum order_form {
    ORDER_READS,     /* rows: a source's. Every order stage has another form */
    ORDER_PASSES,    /* its input's, as they are */
    ORDER_NUMBERS,   /* its input's, and in front a column that counts them */
    ORDER_BATCHES,   /* a run of its input's */
    ORDER_REBATCHES, /* a run of pieces of its input's runs */
    ORDER_UNBATCHES, /* a row of its input's */
    ORDER_SLICES,    /* some rows of its input's */
    ORDER_ZIPS,      /* one of each input's, side by side */
    ORDER_BRANCHES,  /* one input's: word 0 says which */
    ORDER_FUNCTION   /* those of a body's dataset, one for each of its input's */
};

/* How a stage treats the elements of its input where each must count once: while something is
 * learned from them, or where a program hands them in. */
enum order_selection {
    ORDER_MAKES_OTHERS, /* other elements come out, or fewer than a stage after it could tell */
    ORDER_CHOOSES,      /* some of them, each as it is */
    ORDER_KEEPS,        /* all of them, once and in order, perhaps in batches */
    ORDER_ONLY_ORDERS   /* the same ones, at another time, in another order or again */
};

/* How much alike two passes are, at most: if its inputs' passes are. Where the elements come in
 * another order, which of them a stage takes may change, but not how many. */
enum order_alike {
    ORDER_NOT_ALIKE,      /* it looks inside elements, or draws: nothing is known */
    ORDER_ALIKE_UNCUT,    /* as many elements, unless a function is before it: a pass may end early,
                             and how far it got depends on the lengths of its datasets */
    ORDER_ALIKE_COUNT,    /* as many elements */
    ORDER_ALIKE_FUNCTION, /* the same elements, if its input's are; else nothing is known */
    ORDER_ALIKE_ELEMENTS  /* the same elements, in any order */
};

/* Where TensorFlow looks for the files to deal, from this stage on (auto_shard.cc). */
enum order_search {
    ORDER_SEARCH_STOPS, /* it does not know the stage */
    ORDER_SEARCH_INPUT,
    ORDER_SEARCH_INPUTS, /* all of them must have files */
    ORDER_SEARCH_WINDOW  /* its input, but the stage itself is a function of datasets */
};

/* The size of the batches, as TensorFlow tells it from the stages (distribute.py). */
enum order_batch_size {
    ORDER_SIZE_UNKNOWN,
    ORDER_SIZE_OWN,   /* its parameter batch_size */
    ORDER_SIZE_INPUT, /* the input's */
    ORDER_SIZE_INPUTS /* that of all inputs, if it is the same */
};

/* How a batch's rows are put together. */
enum order_rows {
    ORDER_ROWS_STACKED, /* all have one shape */
    ORDER_ROWS_PADDED,  /* to the longest, or as the stage says */
    ORDER_ROWS_RAGGED   /* columns without a known shape become ragged */
};

/* Does it make content of its input, to decide the order? */
enum order_content_use {
    ORDER_READS_CONTENT_NEVER,
    ORDER_READS_CONTENT_ALWAYS,
    ORDER_READS_CONTENT_FOR_ROWS /* where only content has the rows (plan_node.cuts_content) */
};

enum order_seeds {
    ORDER_SEEDS_NONE,
    ORDER_SEEDS_TENSORFLOW, /* by its rule (plan/seeds.h) */
    ORDER_SEEDS_OWN         /* the parameter seed, or the job's */
};

/* The content of the runs in a word: elements of a node, or (in_pieces, see run.h) pieces of them.
 */
struct order_gathered {
    const struct plan_node *elements;
    bool in_pieces;
};

/* The plan's side of a stage whose columns are wanted. */
struct order_planning {
    struct spec_errors *errors;
    bool may_be_short; /* bad rows are left out, or rows handed in: no batch is sure to be whole */
};

struct order_ops {
    const char *name;
    size_t state_bytes;
    size_t arguments_bytes; /* of plan_node.arguments, which the plan gives it zeroed */

    /* Its kind. */
    enum order_form form;
    enum order_selection selection;
    enum order_alike alike;
    enum order_search search;
    enum order_batch_size batch_size;
    enum order_rows rows; /* of its batches, if that does not depend on parameters */
    enum order_content_use content_use;
    bool adds_word;        /* a number, after the words of its input */
    bool remembers;        /* a later iterator yields what an earlier one was given */
    bool counts_elements;  /* the dataset object uses its element_counts: what is pulled from it is
                              remembered */
    bool counts_iterators; /* what it yields depends on how many of its iterators came before: a
                              place has their count */
    bool counts_through;   /* passes over elements, but only by counting its inputs' */
    bool by_position;      /* it chooses elements, or numbers them, by how many came before */
    bool is_list;          /* of a source: a list held in memory, of files above all */
    bool is_noted;         /* may note landmarks: see order_is_noted */
    bool foresees;         /* its state is an order_peek, which answers for those right after it */

    /* Names of parameters; NULL: it has no such thing. */
    const struct stage_question
        *questions;          /* expressions, which content answers for order/peek.h */
    const char *gathers;     /* how many elements (or rows of them) it waits for; a list: at most */
    const char *shuffles_in; /* in a buffer of how many elements it draws its order */
    const char *decides;     /* the dataset, its last input, that says which comes next */
    const char *in_file;     /* "" or a file that keeps its elements: then it is the source
                                `file_source`, unless its input is endless */
    const char *file_source;
    const char *numbers; /* a file of numbers (.npy), which the plan reads for take_numbers */

    /* Ready the state (zeroed). May fail half-way: close is called either way. */
    tundish_status (*open)(struct order_iterator *iterator);

    /* Write at most max elements (max >= 1) of node->width words each to `words`; *ret_count is 0
     * before. OK brings at least one. END and FAILED may bring some too, which come before them:
     * order_next sorts that out. Not called again after END. */
    enum order_result (*next)(struct order_iterator *iterator, uint64_t *words, size_t max,
                              size_t *ret_count);

    /* Free everything, elements held included. Must accept a state that is all zeros. */
    void (*close)(struct order_iterator *iterator);

    /* The rest may be NULL: the stage has no such thing. */

    /* Go through the input `count` times (-1: endlessly) as tf.data's fused shuffle and repeat do.
     * Called once, before next. */
    void (*repeat)(struct order_iterator *iterator, int64_t count);

    /* Elements by number, for permute and for skipping: how many there are from the first to the
     * end, and those at `indices` (each below that count) in the order asked for. A source scans
     * here what it has not scanned yet. Neither depends on where next stands, or moves it. Usable
     * if order_is_indexed says so. */
    tundish_status (*count)(struct order_iterator *iterator, uint64_t *ret_count);
    tundish_status (*at)(struct order_iterator *iterator, const uint64_t *indices,
                         size_t index_count, uint64_t *words);

    /* As order_pass_over, in less time than pulling takes. OK may also bring fewer than `count`: it
     * is called again for the rest, or, if it has passed over none, some are pulled first. */
    enum order_result (*pass_over)(struct order_iterator *iterator, uint64_t count,
                                   uint64_t *ret_passed);

    /* Where content decides: how many elements an iterator has that has brought none, at least, as
     * is known from an earlier run; none of them fails. */
    uint64_t (*surely)(struct order_iterator *iterator);

    /* Sources of files, or of their names: see that those they will read are there, without reading
     * any. */
    tundish_status (*check)(struct order_iterator *iterator);

    /* Sources of files: those it will read first are needed soon. Returns at once; false: none of
     * them is far away, so that it need not be told of others. */
    bool (*expect)(struct order_iterator *iterator);

    /* The content of the runs in this word. NULL: the same as in that word of the only input. */
    struct order_gathered (*gathered)(const struct plan_node *node, uint32_t word);

    /* While the plan is made. */

    /* Can the stage be built as it is written? */
    tundish_status (*check_stage)(const struct spec_stage *stage, struct spec_errors *errors);

    /* For a stage that combines datasets: does dataset `dataset` become an input? Its seeds are
     * drawn either way. If a single dataset remains, the plan drops the stage. NULL: all do. */
    bool (*takes)(const struct spec_stage *stage, uint32_t dataset);

    /* Which seeds does it draw? NULL: none. */
    enum order_seeds (*seeds)(const struct spec_stage *stage);

    /* State the columns, and the depth, of node's elements: of a source they are the source's own
     * (source.h). NULL: the only input's. */
    tundish_status (*columns)(const struct order_planning *planning, struct plan_node *node);

    /* Make plan_node.table of the file's numbers, before `columns` is called. */
    tundish_status (*take_numbers)(const struct order_planning *planning, struct plan_node *node,
                                   const struct order_numbers *numbers);

    /* Once all words are laid out: does the stage accept its inputs? */
    tundish_status (*check_inputs)(const struct order_planning *planning,
                                   const struct plan_node *node);

    /* Is it endless, if its input has any element? NULL: if any input is. */
    bool (*is_endless)(const struct plan_node *node);

    /* tf.data's Cardinality (order/cardinality.h). NULL: it is not known. */
    int64_t (*cardinality)(const struct plan_node *node, const struct order_counting *counting);

    /* Print the parameters that the plan has chosen because the user did not write them. */
    void (*print)(const struct plan_node *node, FILE *file);
};

/* The table's entry for a stage, or NULL: not in this build. */
const struct order_ops *order_find(const char *name);

#endif
