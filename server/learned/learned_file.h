/* learned_file.h - a file of the analysis folder in memory. */
#ifndef LEARNED_LEARNED_FILE_H
#define LEARNED_LEARNED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct learned_file {
    uint8_t *bytes; /* 64 zeros behind them */
    size_t byte_count;
};

tundish_status learned_file_read(const char *path, struct learned_file *ret_file);
void learned_file_close(struct learned_file *file);

struct content_config;

/* The stage that is being opened uses this: count it in config->learned_hash. */
void learned_file_note(const struct content_config *config, const struct learned_file *file);

#endif
