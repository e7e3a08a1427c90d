/* analyze.h - full passes over a stream's data, for what its stages learn.
 *
 * Stages that learn from the results of others wait for the next pass; the results of a pass are in
 * the folder when the next one begins.
 */
#ifndef LEARN_ANALYZE_H
#define LEARN_ANALYZE_H

#include "spec/spec.h"

#define ANALYZE_MEMORY_BYTES (INT64_C(1) << 30)

struct analyze_options {
    const struct spec_file *file;
    const struct spec_stream *stream;
    const char *folder;       /* the analysis folder */
    const char *cache_folder; /* NULL: the default one */
    uint32_t thread_count;
    int64_t memory_bytes; /* for terms, approximately; more goes to the cache folder */
    bool is_quiet;        /* no progress on standard error */
    struct spec_errors *errors;
};

/* Learn all that the stream's stages need. E_PIPELINE: the errors say why it cannot be. */
tundish_status analyze_run(const struct analyze_options *options);

#endif
