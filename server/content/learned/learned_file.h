/* learned_file.h - a file of the analysis folder in memory. */
#ifndef CONTENT_LEARNED_LEARNED_FILE_H
#define CONTENT_LEARNED_LEARNED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct learned_file {
    uint8_t *bytes; /* 64 zeros after them */
    size_t byte_count;
};

tundish_status learned_file_read(const char *path, struct learned_file *ret_file);
void learned_file_close(struct learned_file *file);

/* The hash of a file's content, written or not yet. */
tundish_status learned_file_hash(const char *path, uint64_t *ret_hash);
uint64_t learned_bytes_hash(const uint8_t *bytes, size_t byte_count);

struct stage_config;

/* The stage that is being opened uses this: count it in config->learned_hash. */
void learned_file_note(const struct stage_config *config, const struct learned_file *file);

/* E_DATA: the file at `path` is not the one that was written. */
tundish_status learned_file_check(const struct stage_config *config, const char *path,
                                  uint64_t hash);

#endif
