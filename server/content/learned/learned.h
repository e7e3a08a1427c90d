/* learned.h - what `tundish analyze` learned, as content stages find it.
 *
 * Artifacts are plain files in the analysis folder, named after the result they belong to: a
 * vocabulary is lines or records (struct learned_form), every other one is a table in JSON.
 * learn/results/provenance.h decides beforehand which of them these stages may use with these
 * files.
 */
#ifndef CONTENT_LEARNED_LEARNED_H
#define CONTENT_LEARNED_LEARNED_H

#include "content/content.h"
#include "content/vocabulary/vocab.h"
#include "spec/column_list.h"

struct learned_name {
    char *name;
    uint64_t stage; /* learned_fingerprint of the stage that learned it */
};

/* A file that was written, and the hash of its content (learned_file.h). */
struct learned_result {
    char *file;
    uint64_t hash;
};

struct learned {
    char *folder;
    char *problem; /* why nothing may be used, for the user; NULL: everything that is listed may be
                      used */
    bool is_analyzing; /* `tundish analyze` itself: all files of the folder are from this run */
    uint32_t count;
    struct learned_name *names;
    uint32_t result_count;
    struct learned_result *results;
};

/* The kind of result that a stage learns, whatever its parameters; NULL: none. */
const struct content_learning *learned_learning_of(const struct spec_stage *stage);

/* Does the stage, with the parameters it has, need something learned? */
bool learned_is_needed(const struct spec_stage *stage);

/* Statistics depend on the stage's name and parameters, not on the columns. */
uint64_t learned_fingerprint(const struct spec_stage *stage);

/* The name of the learned results for a target: `statistics` if given, else the column. */
const char *learned_name_of(const struct stage_config *config, const char *output_column);

/* Complain if the results called `name` may not be used by this stage. */
tundish_status learned_require(const struct stage_config *config, const char *name);

/* Complain with the thread's last error about something learned, and name the remedy. */
tundish_status learned_complain_of(const struct stage_config *config);

/* FOLDER/NAMESUFFIX; the caller frees. */
char *learned_path(const struct learned *learned, const char *name, const char *suffix);

/* How a stage's vocabulary lies at FOLDER/NAMESUFFIX: a term a line, or a record of a gzipped
 * TFRecord file each; with has_frequency, a number and a blank before it. */
struct learned_form {
    bool is_records, has_frequency;
    const char *suffix;
};

struct learned_form learned_form_of(const struct spec_stage *stage);

/* Frequencies in lines: blanks of a term, here and where it is looked up, become __SPACE__ as
 * tf.Transform makes them. */
bool learned_form_needs_blanks(const struct learned_form *form);
struct byte_view learned_without_blanks(struct byte_view text, struct scratch *scratch);

/* The vocabulary called `name` of the config's stage: terms lose nothing and may be empty.
 * Complains if that fails. */
tundish_status learned_vocab_open(const struct stage_config *config, const char *name,
                                  enum vocab_keys keys, struct vocab **ret_vocab);

/* A table of numbers, for each of some keys if it was learned per key. */
struct learned_table {
    tundish_dtype dtype; /* int64, float32 or float64 */
    int rank;
    int64_t shape[RANK_MAX];
    int64_t value_count; /* the product of shape, so no more than the file had */
    void *values;
    bool has_keys;
    int64_t key_count; /* shape[0] then */
    struct byte_view *keys;
};

/* Parse a table from hostile text. E_DATA names the error and its position. */
tundish_status learned_table_parse(const char *text, size_t text_bytes,
                                   struct learned_table *ret_table);

/* The table FOLDER/NAMESUFFIX, its values as `dtype`. Complains if that fails. */
tundish_status learned_table_open(const struct stage_config *config, const char *name,
                                  const char *suffix, tundish_dtype dtype,
                                  struct learned_table *ret_table);
void learned_table_close(struct learned_table *table); /* accepts zeros */

#endif
