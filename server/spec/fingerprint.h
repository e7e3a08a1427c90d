/* fingerprint.h - a hash of stages as they are written, the same on every machine: what tells
 * whether a place, or something learned, belongs to a pipeline. */
#ifndef SPEC_FINGERPRINT_H
#define SPEC_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "spec/spec.h"

/* How a parameter's value counts. */
enum spec_counting {
    COUNTS_NOT,
    COUNTS_WHOLE,
    COUNTS_AS_PATH,    /* the last part of each path: folders may differ between machines */
    COUNTS_AS_MATCHES, /* a single pattern counts only as one; others as paths, since they decide
                        * the order of files from several folders, or stand for what is not known
                        * yet */
};

typedef enum spec_counting spec_counts(const struct parameter_info *parameter);

/* Fold the name and the parameters of a stage into `hash`, with the datasets inside. */
uint64_t spec_hash_stage(uint64_t hash, const struct spec_stage *stage, spec_counts *counts);

uint64_t spec_hash_dataset(uint64_t hash, const struct spec_dataset *dataset, spec_counts *counts);

#endif
