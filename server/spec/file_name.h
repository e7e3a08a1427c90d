/* file_name.h - a user's name for a result as the name of its file. */
#ifndef SPEC_FILE_NAME_H
#define SPEC_FILE_NAME_H

#include "spec/spec_memory.h"

/* Room is left for what is put after it while it is written. */
enum { FILE_NAME_BYTES_MAX = 200 };

/* The name that tf.Transform gives the file: blanks around are cut off, those inside become one
 * hyphen, with the hyphens beside them; what is neither letter, digit, _ nor - becomes _. So it
 * holds no slash and no dot; it may be empty. */
char *file_name_of(const char *text, size_t bytes, struct spec_memory *memory);

#endif
