/* own_file.h - files and folders that are read back: whose they are, and who may write to them.
 *
 * A user who writes to them decides which rows a job trains on. So a folder that only Tundish
 * writes to belongs to its user, and no other user may write to it; what it has of other users is
 * not taken. A file that the user has named may lie anywhere.
 */
#ifndef TND_CORE_OWN_FILE_H
#define TND_CORE_OWN_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "tundish/tundish.h"

/* A folder that is open: of this user, writable by no other. Others may look into it. E_SYSTEM says
 * "WHAT PATH must ...; REMEDY". */
struct tnd_own_folder {
    int folder;
    const char *path, *what, *remedy;
};
tundish_status tnd_own_folder_check(const struct tnd_own_folder *folder);

/* A regular file of this user, which no other may write to. */
bool tnd_own_file_is_ours(const struct stat *about);

/* A file that a user has named: could any user have put it there? One of this user, of root or of
 * the folder's owner is taken, and each one in a folder that not everybody may write to. */
bool tnd_own_file_is_planted(const char *path, const struct stat *about);

#endif
