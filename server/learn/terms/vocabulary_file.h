/* vocabulary_file.h - the file of a vocabulary being written: lines, or gzipped records, as
 * content/learned/learned.h reads them. */
#ifndef LEARN_TERMS_VOCABULARY_FILE_H
#define LEARN_TERMS_VOCABULARY_FILE_H

#include "content/learned/learned.h"
#include "learn/results/artifact.h"

struct vocabulary_file;

tundish_status vocabulary_file_begin(struct artifact_folder *folder, const char *name,
                                     const struct learned_form *form,
                                     struct vocabulary_file **ret_file);

/* The next term. Its frequency is written if the form has it: a whole number, or as Python prints a
 * float. E_DATA: the form cannot hold it. */
tundish_status vocabulary_file_put(struct vocabulary_file *file, struct byte_view term,
                                   double frequency, bool is_whole);

/* Give it its name. The file is still to be closed. */
tundish_status vocabulary_file_publish(struct vocabulary_file *file);
void vocabulary_file_close(struct vocabulary_file *file); /* accepts NULL; unpublished: no trace */

#endif
