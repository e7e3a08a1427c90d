/* samples.h - which members of a tar are one sample, and their names: webdataset's rules.
 *
 * A member's key is its name up to the first dot of the last part, its extension what follows that
 * dot. Neighbours with the same key are one sample.
 */
#ifndef SOURCE_SCAN_SAMPLES_H
#define SOURCE_SCAN_SAMPLES_H

#include "source/scan/tar.h"

enum { SAMPLE_COLUMNS_MAX = 64 };

/* The extensions that columns take, written by the plan and never changed. */
struct sample_columns {
    uint32_t count;
    struct sample_column {
        uint32_t first, extension_count; /* of the extensions below; earlier ones are preferred */
    } columns[SAMPLE_COLUMNS_MAX];
    uint32_t extension_count;
    struct byte_view *extensions;
    bool skip_missing; /* a sample without one of the columns is not a row */
};

/* A hash of all that decides which samples there are: 0 if every sample is a row, whatever the
 * columns. */
int64_t sample_columns_hash(const struct sample_columns *columns);

/* Key and extension of a member. False: it belongs to no sample (no file, no dot, a hidden file, or
 * one about the archive: __NAME__). */
bool sample_name(const struct tar_member *member, struct byte_view *ret_key,
                 struct byte_view *ret_extension);

/* The next extension from `from` on that this is, whatever the case of its letters; the count if
 * there is none. */
uint32_t sample_extension(const struct sample_columns *columns, uint32_t from,
                          struct byte_view extension);

#endif
