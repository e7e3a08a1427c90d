/* content.h - a content stage computes columns of elements.
 *
 * open runs once, when the plan is made: it checks the parameters against the columns that come in,
 * states the columns that go out and prepares tables. apply maps the columns of some elements; any
 * thread may call it, several at a time, so the state is const by then. It is pure: the same
 * elements give the same bits on every CPU path, whatever other elements are in the frame.
 *
 * A stage works on the element where it stands: before `batch` an element is a row, after it a
 * batch, whose columns have one more dimension (level) in front. Stages that work value by value
 * need not care.
 */
#ifndef CONTENT_CONTENT_H
#define CONTENT_CONTENT_H

#include "column/frame.h"
#include "plan/stage.h"

struct column_wise_ops;
struct content_learning;
struct words_maker;
struct vocab;

typedef void content_say_vocabulary(void *context, const char *name, const struct vocab *vocab);

/* A content stage of a plan, as the stages before it in a row see it. */
struct content_step {
    const struct spec_stage *stage;
    const struct content_ops *ops;
    const void *state;
    const struct schema *input, *output;
    bool follows; /* directly on the step before it, so that both may be run as one */
};

/* Stages that are run as one: the first `count` of the steps. */
struct content_fused {
    uint32_t count;                /* 0: none */
    const struct content_ops *ops; /* `apply` takes the first one's input, and gives what the last
                                      one's output; `close` */
    void *state;                   /* freed by the caller that it is given to, after `close` */
};

/* A number that a stage has drawn, for people. */
struct content_drawn {
    const char *name;
    double value;
};

enum { CONTENT_DRAWN_MAX = 4 };

struct content_ops {
    const char *name;
    size_t state_bytes;

    /* Draws random numbers while its parameter `training` is true: frames then have ordinals. */
    bool draws;

    /* Report what it draws for row `row` of the `rows` of an element, by the element's ordinal (row
     * 0 of 1 where elements are not batched), and return how many numbers that is. NULL: it draws
     * nothing, or its numbers depend on the element's content too. */
    uint32_t (*drawn)(const void *state, uint64_t ordinal, int64_t row, int64_t rows,
                      struct content_drawn ret_drawn[CONTENT_DRAWN_MAX]);

    /* Works on each of its columns by itself, and so takes stage_config.missing. */
    bool takes_missing;

    /* Its result depends on no pixel's neighbours, or on no pixel at all: the image may have come
     * in another size. */
    bool keeps_pixels;

    /* Does it leave the values of this column of its input alone, or ask of them nothing but
     * words_make? By which maker, then. NULL: it reads some. */
    bool (*takes_words)(const void *state, uint32_t column, struct words_maker *ret_maker);

    /* Are texts of this column of its input that are blank no records of it, and does it read no
     * other column? NULL: each is one. */
    bool (*passes_blank)(const void *state, uint32_t column);

    /* Gives its columns in the dtypes of its output, and does nothing else. */
    bool converts;

    const struct content_learning *learning; /* content/learned/learning.h; NULL: nothing */

    /* In a stage that reads files as they are: the column of its input with the paths of its column
     * `column`, or -1. NULL: it reads none. */
    int32_t (*paths_of)(const void *state, uint32_t column);

    /* The same wherever the code of the user's own that it runs is the same. Nodes compare it, and
     * a place does not depend on it. NULL: it runs none. */
    uint64_t (*code_hash)(const void *state);

    /* A parameter that is not written and was learned instead, as it would be written. The caller
     * frees it. NULL, or returns NULL: there is none. */
    char *(*learned)(const void *state);

    /* For a stage that maps each of its columns by itself (content/column_wise.h): its open, apply
     * and close read it. NULL: they are the stage's own. */
    const struct column_wise_ops *columns;

    /* Prepare the state (zeroed) and fill `ret_schema` (empty) with every column that goes out.
     * Sets *ret_batch_wide (false) if depth > 0 and rows of one batch influence each other, so that
     * a slice cannot be made from its own rows alone. May fail half-way: close is called either
     * way. */
    tundish_status (*open)(void *state, const struct stage_config *config,
                           struct schema *ret_schema, bool *ret_batch_wide);

    /* Fill output->columns (output->column_count of them, as the schema says; those with
     * passed_from >= 0 are there already). A bad element is frame_reject's; a status other than
     * OK is for what concerns no single element. */
    tundish_status (*apply)(const void *state, const struct frame *input, struct frame *output);

    /* Free everything. Must accept a state that is all zeros. */
    void (*close)(void *state);

    /* Look at the steps that follow, once the plan is made: steps[0] is this stage, the others have
     * steps before them as their only input. It may take over some of them (*ret_fused is zeroed),
     * or complain. NULL: what follows does not matter. */
    tundish_status (*look_ahead)(void *state, const struct content_step *steps, uint32_t count,
                                 struct spec_errors *errors, struct content_fused *ret_fused);

    /* Report the files that the results depend on, by the names that the user gave, with a hash of
     * each content that is the same on every machine. NULL: there are none. */
    void (*files)(const void *state,
                  void (*say)(void *context, const char *name, uint64_t content_hash),
                  void *context);

    /* Report the vocabularies that it looks up in, by names for people, one for each target in the
     * order of frame.vocabularies. NULL: it has none. */
    void (*vocabularies)(const void *state, content_say_vocabulary *say, void *context);
};

/* Does this stage need ordinals? */
bool content_draws(const struct content_ops *ops, const struct spec_stage *stage);

/* The expressions of an order stage (stage_config.questions). */
extern const struct content_ops content_answers;

/* The table's entry for a stage, or NULL: not in this build. */
const struct content_ops *content_find(const char *name);

/* For stages that only choose, order or rename columns: all of them are passed on. */
tundish_status content_apply_passing(const void *state, const struct frame *input,
                                     struct frame *output);
void content_close_stateless(void *state);

/* takes_words of a stage that leaves all values alone. */
bool content_takes_words(const void *state, uint32_t column, struct words_maker *ret_maker);

/* Where each column of the input goes in the output. */
struct content_target {
    uint32_t input, output;
};

struct content_targets {
    uint32_t count;
    struct content_target *list;
};

/* Expand the stage's `columns` (default: the only column) and `output` (a name, or a list as long
 * as columns; absent: in place) and pass everything else through. The schema's target columns are
 * copies of the input's with passed_from -1: the stage then sets dtype, shape and so on. */
tundish_status content_targets_open(const struct stage_config *config, struct schema *ret_schema,
                                    struct content_targets *ret_targets);
void content_targets_close(struct content_targets *targets);

/* tf.Transform's stages give their columns in the order of their names: sort what a stage of its
 * group has described so far. */
void content_sort_columns(struct schema *schema, struct content_targets *targets);

/* A column named by a parameter of the stage, for instance `key`: its index, or a complaint. */
tundish_status content_column_named(const struct stage_config *config, const char *parameter,
                                    uint32_t *ret_index);

#endif
