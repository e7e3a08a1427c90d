/* artifact_folder.h - the folder that results are written into.
 *
 * A file in it is whole from the moment it has its name: until then it is called
 * NAME.PROCESS.building. A process that learns holds the folder, so every other unfinished file was
 * left by one that was killed.
 */
#ifndef LEARN_RESULTS_ARTIFACT_FOLDER_H
#define LEARN_RESULTS_ARTIFACT_FOLDER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

/* A file that was written, and the hash of what is in it (content/learned/learned_file.h). */
struct artifact_file {
    char *name;
    uint64_t hash;
};

struct artifact_folder {
    char *path;
    int held; /* the folder, locked; -1: anybody may write into it */
    pthread_mutex_t building;
    struct artifact_file *files;
    size_t file_count;
};

/* Make the folder, and the one that it lies in, if they are not there. All that is in it stays. */
tundish_status artifact_folder_open(const char *path, struct artifact_folder **ret_folder);
void artifact_folder_close(struct artifact_folder *folder); /* accepts NULL */

/* Wait until no other process holds it, hold it until it is closed, and clear away what was left
 * half done. */
tundish_status artifact_folder_hold(struct artifact_folder *folder);

/* Open the file that is called `building` until it is whole. Any thread. */
tundish_status artifact_folder_begin(struct artifact_folder *folder, const char *building,
                                     FILE **ret_file);

/* The file is whole: give it its name in the folder and, if the folder is held, note it. */
tundish_status artifact_folder_publish(struct artifact_folder *folder, const char *building,
                                       const char *name);

/* From now on no file of the folder is begun or finished, and none is left unfinished: a thread
 * that tries waits until the process ends. For a process that is about to end. */
void artifact_folder_freeze(struct artifact_folder *folder);

#endif
