/* cache_folder.h - derived files that all processes of a user share.
 *
 * The folder is $TUNDISH_CACHE, else $XDG_CACHE_HOME/tundish, else ~/.cache/tundish; it is made
 * if missing (mode 0700), and refused unless it belongs to the user and no other may write to it. A
 * file in it is complete from the moment it has its name and is never changed in place: it is built
 * under a lock as NAME.building, synced, and renamed. A builder that was killed leaves only the
 * .building file, which the next one overwrites.
 */
#ifndef TND_CORE_CACHE_FOLDER_H
#define TND_CORE_CACHE_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "tundish/tundish.h"

#define TND_CACHE_NAME_BYTES 128 /* the longest name, with its NUL */

/* Open the cache folder; `path` names another one, NULL is the default. The caller closes the
 * descriptor. */
tundish_status tnd_cache_folder_open(const char *path, int *ret_folder);

/* A file being built. All zeros is a build that never began. */
struct tnd_cache_build {
    int folder; /* the caller's, must stay open */
    int file;   /* written to by the caller */
    char name[TND_CACHE_NAME_BYTES];
};

/* Wait for the lock on NAME's building file and open it empty. By then another process may have
 * published NAME: look again before building, and cancel. */
tundish_status tnd_cache_build_begin(int folder, const char *name,
                                     struct tnd_cache_build *ret_build);

/* Write at the end of the file, whole or not at all as far as the caller is concerned. */
tundish_status tnd_cache_build_write(struct tnd_cache_build *build, const void *data,
                                     uint64_t bytes);

/* Sync, rename to NAME, and end the build. *ret_file, if asked for, is the published file, open
 * for reading and writing; it must not be written to. On failure the build has been cancelled. */
tundish_status tnd_cache_build_publish(struct tnd_cache_build *build, int *ret_file);

/* Give up: remove the building file, leave NAME as it is. Does nothing to an ended build. */
void tnd_cache_build_cancel(struct tnd_cache_build *build);

#endif
