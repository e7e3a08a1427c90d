/* artifact.h - files of the analysis folder, written whole or not at all. */
#ifndef LEARN_RESULTS_ARTIFACT_H
#define LEARN_RESULTS_ARTIFACT_H

#include "core/bytes.h"
#include "learn/results/artifact_folder.h"

/* A file being written. All zeros is none. */
struct artifact {
    struct artifact_folder *folder;
    FILE *file;
    char *name, *building; /* in the folder; the path it has until it is whole */
};

/* Begin FOLDER/NAMESUFFIX. A name may hold no slash, and not begin with a dot. */
tundish_status artifact_begin(struct artifact_folder *folder, const char *name, const char *suffix,
                              struct artifact *ret_artifact);

/* Give it its name; or, without having done so, leave no trace. */
tundish_status artifact_publish(struct artifact *artifact);
void artifact_cancel(struct artifact *artifact); /* accepts zeros, and what was published */

/* A whole table: the product of shape numbers of dtype int64 (from integers) or else from numbers;
 * with `keys`, shape[0] of them. */
struct artifact_table {
    tundish_dtype dtype;
    uint32_t rank;
    const int64_t *shape;
    const double *numbers;
    const int64_t *integers;
    const struct byte_view *keys;
};

tundish_status artifact_write_table(struct artifact_folder *folder, const char *name,
                                    const char *suffix, const struct artifact_table *table);

#endif
