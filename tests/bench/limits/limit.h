/* limit.h - what every limit program shares: threads, passes, reading, and a ring to write to.
 *
 * A limit program is one loop for one fixed input, with none of the checks a product needs: it
 * shows what this machine allows, so that nobody takes a slow figure for the limit. It reads its
 * files from the page cache with pread and leaves batches in a ring of slots, as the server does,
 * and prints {"rows": ..., "bytes": ..., "costs": [one for each pass]}.
 *
 * Needs AVX2 and SSE4.2; exits with 77, saying so, where the processor has not got them.
 */
#ifndef LIMIT_H
#define LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMIT_FAST __attribute__((target("avx2,bmi,sse4.2")))

enum { LIMIT_SLOTS = 8, LIMIT_SLACK = 64 };

/* Bytes of one file, taken in pieces. After the last byte there are LIMIT_SLACK more that may be
 * read. */
struct input {
    int file;
    uint64_t at; /* of what comes next from the file */
    uint64_t end;
    uint8_t *buffer;
    size_t capacity;
    size_t begin; /* what has not been used yet: buffer[begin .. used) */
    size_t used;
};

/* Keep what has not been used and add to it from the file. False if nothing could be added. */
bool input_fill(struct input *input);

/* One thread's part of a pass. */
struct share {
    uint32_t thread;
    uint32_t thread_count;
    uint8_t *slots; /* LIMIT_SLOTS of slot_bytes */
    size_t slot_bytes;
    uint64_t batches; /* the next one goes to slot batches % LIMIT_SLOTS */
    uint64_t rows;
    uint64_t bytes; /* written to slots */
    struct input input;
};

struct limit {
    size_t slot_bytes;
    size_t buffer_bytes;
    bool cuts_lines; /* each file between the threads, at line ends; else whole files */
    void (*pass)(struct share *share);
};

uint8_t *share_slot(struct share *share); /* where the next batch goes */

/* Take passes over the files, print the figures and return the exit status. Each share reads what
 * is its part of each file; with no files, `pass` is called once for each share. */
int limit_measure(const struct limit *limit, const char *const *paths, size_t path_count,
                  uint32_t thread_count);

/* The arguments of every program: DIR [THREADS]. Ends the program if they are wrong. */
const char *limit_folder(int argc, char **argv);
uint32_t limit_threads(int argc, char **argv);

/* snprintf into memory that is never freed. */
const char *limit_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
