/* doctor.h - what usually goes wrong on a machine, looked at before it does.
 *
 * Each check looks at one thing, changes nothing that it does not put back, and reports one finding
 * or several. The server's behaviour there decides how bad a finding is, so checks ask the server's
 * own code where they can.
 */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "plan/plan.h"

enum doctor_level {
    DOCTOR_OK,
    DOCTOR_NOTE,    /* it works, and is worth knowing */
    DOCTOR_WARNING, /* it works, but worse than it could, or not for long */
    DOCTOR_FAULT    /* a server would not start, or would be of no use */
};

struct doctor_finding {
    enum doctor_level level;
    const char *about; /* "memory": a word, always the same for the same check */
    char *text;        /* a sentence */
    char *advice;      /* what to change; NULL: nothing */
};

struct doctor {
    const char *socket; /* NULL: the default */
    const char *cache;  /* NULL: the default */
    struct doctor_finding *findings;
    uint32_t count;
    /* The needs of a pipeline file's streams, once doctor_check_plan has seen them. */
    uint64_t shm_bytes;    /* of batches in /dev/shm */
    uint64_t memory_bytes; /* of batches, wherever they lie, and of what shuffles hold */
    uint64_t table_bytes;  /* of vocabulary tables */
    uint64_t *tables;      /* the fingerprints of those that are counted */
    uint32_t table_count;
    bool huge_pages, huge_pages_memfd; /* deliver.huge_pages is asked for, of either memory */
};

/* Add a finding. The advice may be NULL; it is not a format. */
void doctor_say(struct doctor *doctor, enum doctor_level level, const char *about,
                const char *advice, const char *format, ...) __attribute__((format(printf, 5, 6)));
void doctor_close(struct doctor *doctor);

enum doctor_level doctor_worst(const struct doctor *doctor);
void doctor_print_text(const struct doctor *doctor, FILE *file);
void doctor_print_json(const struct doctor *doctor, FILE *file);

/* A stream's plan: whether its files are there, and what it adds to the needs above. */
void doctor_check_plan(struct doctor *doctor, const struct plan *plan);

/* The machine. After the plans, so that the needs are known. */
void doctor_check_memory(struct doctor *doctor);
void doctor_check_shared_memory(struct doctor *doctor);
void doctor_check_huge_pages(struct doctor *doctor);
void doctor_check_processors(struct doctor *doctor);
void doctor_check_memory_nodes(struct doctor *doctor);
void doctor_check_limits(struct doctor *doctor);
void doctor_check_clock(struct doctor *doctor);
void doctor_check_calls(struct doctor *doctor);
void doctor_check_socket(struct doctor *doctor);
void doctor_check_cache(struct doctor *doctor);
void doctor_check_mpi(struct doctor *doctor);
void doctor_check_gpu(struct doctor *doctor);

#endif
