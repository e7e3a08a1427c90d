/* provenance.h - what the artifacts of an analysis folder came from.
 *
 * Each pipeline file has a folder of its own, analysis/NAME beside it. Before, all files of a
 * folder shared analysis/ itself: what lies there is taken by a file that has no folder of its own
 * yet, if it was learned by the file's stages and from its files.
 *
 * The file `origin` in the folder, a word and its values a line:
 *
 *     tundish-analysis 2
 *     stream NAME
 *     learned STAGES STAGE NAME         a name's results: hashes of all stages up to the one that
 *                                       learned it, and of that one alone
 *     result HASH FILE                  a file with results, in the folder
 *     file HASH BYTES MODIFIED PATH     a file that was read; where size and time of change are
 *                                       still the same, its content is taken to be
 */
#ifndef LEARN_RESULTS_PROVENANCE_H
#define LEARN_RESULTS_PROVENANCE_H

#include "content/learned/learned.h"
#include "learn/input_files.h"
#include "learn/learners.h"
#include "learn/results/artifact_folder.h"

/* The stream to learn from: learn_from, else the only one, else `train`; NULL: none of these. */
const struct spec_stream *provenance_stream(const struct spec_file *file);

/* The folder that the file's results are written to: what was asked for, or analysis/NAME beside
 * the pipeline file. The caller frees. */
char *provenance_folder(const struct spec_file *file, const char *asked);

/* Does any stream of the file need something learned? */
bool provenance_is_needed(const struct spec_file *file);

/* Things that an origin is compared with, beside the stages. */
enum provenance_check {
    PROVENANCE_STAGES, /* nothing */
    PROVENANCE_NAMES,  /* the names and patterns of files in the pipeline file */
    PROVENANCE_FILES   /* the files that it reads now */
};

/* Read the folder's origin and compare it. A difference goes into ret_learned->problem: stages that
 * need something learned complain about it. */
void provenance_open(const struct spec_file *file, const char *folder, enum provenance_check check,
                     struct learned *ret_learned);

/* The same in the folder where the file's results are: the one asked for, its own, or analysis/ as
 * it was shared before. Without `check_files` files need not be there, as at inference. */
void provenance_find(const struct spec_file *file, const char *asked, bool check_files,
                     struct learned *ret_learned);
void provenance_close(struct learned *learned); /* accepts zeros */

/* A name that was learned somewhere in the stream. */
struct provenance_name {
    const char *name;
    const struct learner *learner;
};

/* `files`: those that the stream reads. */
tundish_status provenance_write(struct input_files files, const struct spec_stream *stream,
                                struct artifact_folder *folder, const struct provenance_name *names,
                                size_t count);

#endif
