/* sample_output.h - files that the generators write; what goes wrong ends the program with a
 * sentence. */
#ifndef SAMPLE_OUTPUT_H
#define SAMPLE_OUTPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct output {
    FILE *file;
    char path[4096];
};

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

void output_open(struct output *output, const char *path_format, ...)
    __attribute__((format(printf, 2, 3)));
void output_close(struct output *output); /* fails if anything was not written */

/* Around `bytes` bytes the frame of a TFRecord: length and checksums. */
void output_record(struct output *output, const void *data, size_t bytes);

/* It may be there already. */
void make_folder(const char *path_format, ...) __attribute__((format(printf, 1, 2)));

/* The value of an option or argument called `name`. */
uint64_t parse_number(const char *name, const char *text, uint64_t low, uint64_t high);

#endif
