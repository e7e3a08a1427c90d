/* vocab_note.h - what is known about a text file without reading it.
 *
 * A note in the cache folder says that the file with this path, device, inode, size and times had
 * that content. None is made for a file younger than two seconds, whose times could stay the same
 * when it changes once more.
 */
#ifndef CONTENT_VOCAB_NOTE_H
#define CONTENT_VOCAB_NOTE_H

#include <sys/stat.h>

#include "content/vocabulary/vocab_table.h"

/* False if there is no note, or not about this state of the file. */
bool vocab_note_find(int folder, const char *path, const struct stat *about,
                     struct vocab_content *ret_content);

/* Only saves time later, so failing is no failure. */
void vocab_note_make(int folder, const char *path, const struct stat *about,
                     const struct vocab_content *content);

/* Is this the same file, unchanged? */
bool vocab_note_is_same(const struct stat *a, const struct stat *b);

#endif
