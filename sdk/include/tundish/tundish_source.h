/* tundish_source.h - a source of your own, which gives its rows as Arrow data.
 *
 *     - arrow_stream: {library: ./libmine.so, arguments: {table: clicks}}
 *
 * A shared object exports tundish_source_open, which opens an ArrowArrayStream of Arrow's C Stream
 * Interface. No library is needed: the interface is the three structs below, which all libraries
 * that speak Arrow have. An example: sdk/examples/source_count.c.
 *
 * The stream is opened once when the pipeline is planned, for its schema, and once for each epoch.
 * It must give the same rows on every worker. One thread calls it at a time, and waits in get_next.
 */
#ifndef TUNDISH_SOURCE_H
#define TUNDISH_SOURCE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As Arrow's C Data Interface and C Stream Interface define them, guards included. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif

/* Open the stream. `arguments` are the stage's as JSON ("null" if it has none). Return 0, or an
 * errno; after an error `out` may be a stream whose get_last_error says why, or stay as it is: all
 * zeros. */
__attribute__((visibility("default"))) int tundish_source_open(const char *arguments,
                                                               struct ArrowArrayStream *out);

#ifdef __cplusplus
}
#endif

#endif
