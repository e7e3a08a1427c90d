/* provenance.h - what the artifacts of an analysis folder came from.
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
#ifndef LEARN_PROVENANCE_H
#define LEARN_PROVENANCE_H

#include "content/learned/learned.h"
#include "learn/input_files.h"
#include "learn/learners.h"
#include "learn/results/artifact_folder.h"

/* The stream to learn from: learn_from, else the only one, else `train`; NULL: none of these. */
const struct spec_stream *provenance_stream(const struct spec_file *file);

/* ANALYSIS beside the pipeline file, or what was asked for. The caller frees. */
char *provenance_folder(const struct spec_file *file, const char *asked);

/* Does any stream of the file need something learned? */
bool provenance_is_needed(const struct spec_file *file);

/* Read the folder's origin and compare it with the pipeline file and, if asked to, with the files
 * it reads now. A difference goes into ret_learned->problem: stages that need something learned
 * complain about it. */
void provenance_open(const struct spec_file *file, const char *folder, bool check_files,
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
