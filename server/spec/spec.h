/* spec.h - the pipeline file, parsed once, checked, into one const tree.
 *
 * spec_open reads the YAML, checks every name, type and range against the table of stages
 * (stages.def), fills in defaults and resolves named datasets and environment variables. Its
 * result is never changed afterwards and may be read by any thread. Everything keeps its position
 * in the file, so that later checks (plan, stages) can complain about the right line.
 */
#ifndef SPEC_SPEC_H
#define SPEC_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/dtype.h"
#include "spec/errors.h"
#include "spec/stages.h"

enum spec_kind {
    SPEC_NULL,
    SPEC_BOOL,
    SPEC_INTEGER, /* fits int64 */
    SPEC_NATURAL, /* fits only uint64 */
    SPEC_NUMBER,  /* a float literal, also .inf and .nan */
    SPEC_TEXT,
    SPEC_LIST,
    SPEC_MAP,      /* keys in the order written; no key twice */
    SPEC_VARIABLE, /* $name or $name(integer), known when the stage's iterator is made */
    SPEC_DATASET,  /* stages, inline or by name */
    SPEC_BROKEN    /* complained about already; never in a file that spec_open returned */
};

struct spec_value {
    enum spec_kind kind;
    bool quoted;
    bool has_argument; /* VARIABLE: $name(integer) */
    uint32_t line, column;
    bool boolean;
    int64_t integer;  /* INTEGER; VARIABLE: the argument */
    uint64_t natural; /* NATURAL; INTEGER >= 0 too */
    double number;    /* NUMBER, INTEGER and NATURAL as double */
    const char *text; /* TEXT: NUL-terminated; VARIABLE: the name without $;
                         numbers and booleans too: as written */
    size_t text_bytes;
    uint32_t count;                   /* LIST, MAP */
    const struct spec_value *items;   /* LIST: items; MAP: the values */
    const struct spec_value *keys;    /* MAP: TEXT */
    const struct spec_value **sorted; /* MAP: the keys by text; those that are not TEXT come last */
    const struct spec_dataset *dataset;
};

/* One stage as written. `arguments` has one entry for each parameter of the stage, in the table's
 * order: the value given, else the table's default, else NULL. */
struct spec_stage {
    const struct stage_info *info;
    const struct spec_value **arguments;
    uint64_t given; /* bit i: arguments[i] was written in the file */
    const struct spec_file *file;
    uint32_t line, column;
};

/* A list of stages. A dataset mentioned by name is one object however often it is mentioned; the
 * plan builds a new one at each mention. */
struct spec_dataset {
    const char *name; /* NULL when inline */
    uint32_t line, column;
    uint32_t stage_count;
    const struct spec_stage *stages;
    uint32_t depth;       /* 1, and more for each level of datasets inside */
    uint32_t stage_total; /* with those of the datasets inside, counted at each mention */
};

enum spec_auto_shard { SHARD_AUTO, SHARD_FILE, SHARD_DATA, SHARD_HINT, SHARD_OFF };
enum spec_rebatch { REBATCH_SPLIT, REBATCH_CARRY, REBATCH_TENSORFLOW };
enum spec_delivery { DELIVER_LANES, DELIVER_QUEUE, DELIVER_BROADCAST };

struct spec_distribute {
    uint32_t replicas;
    enum spec_auto_shard auto_shard;
    enum spec_rebatch rebatch;
    bool from_function;
    enum spec_delivery delivery;
    bool files_local;
    uint32_t groups;
    bool drop_remainder_step;
    bool even_repeat;
    const char *mask;          /* the column that even_repeat adds */
    int32_t evaluation_shards; /* 0: off; -1: auto */
    uint32_t line, column;
};

enum spec_compression { COMPRESS_AUTO, COMPRESS_NONE, COMPRESS_NARROW, COMPRESS_ZSTD };

struct spec_deliver {
    uint32_t slots;
    uint64_t lane_bytes;      /* 0: computed */
    uint64_t max_batch_bytes; /* 0: computed */
    uint64_t memory_limit;    /* 0: none */
    bool memory_memfd;
    bool huge_pages;
    enum spec_compression compression;
    int zstd_level;
    bool checksums;
    bool skip_errors;
    uint64_t skip_limit; /* UINT64_MAX: none */
    bool detach_slow_group;
    int64_t group_wait_ns; /* -1: no limit */
    int64_t rejoin_ns;
    uint64_t epochs;                /* 0: no limit */
    const struct spec_value *widen; /* NULL or a MAP, checked */
    uint32_t line, column;
};

struct spec_stream {
    const char *name;
    uint32_t line, column;
    struct spec_dataset dataset;
    struct spec_distribute distribute;
    struct spec_deliver deliver;
};

/* How files at URLs are read. */
struct spec_remote {
    const char *endpoint, *region; /* NULL: the environment's, else the store's own */
    const char *credentials;       /* auto, environment, none, or a file's path */
    const char *cache;             /* the folder where parts stay, or NULL */
    uint32_t part_bytes, connections, retries;
    uint64_t cache_bytes;
    bool fetch_once; /* one node of a job fetches a file for all */
};

extern const struct spec_remote spec_remote_default;

struct spec_file {
    const char *path;
    const char *root; /* relative paths start here */
    bool has_seed;
    int64_t seed;
    const char *learn_from; /* NULL: not given */
    uint32_t stream_count;
    const struct spec_stream *streams;
    struct spec_remote remote;
    struct spec_memory *memory; /* owns everything above */
};

/* Read and check a pipeline file. root NULL: the file's folder. On failure every error found is
 * in `errors` and E_PIPELINE (or E_SYSTEM: the file cannot be read) is returned. */
tundish_status spec_open(const char *path, const char *root, struct spec_errors *errors,
                         struct spec_file **ret_file);

/* The same from memory; `path` is for messages only and root must be given. */
tundish_status spec_open_text(const char *text, size_t text_bytes, const char *path,
                              const char *root, struct spec_errors *errors,
                              struct spec_file **ret_file);
void spec_close(struct spec_file *file);

/* Without its level. */
const char *spec_compression_name(const struct spec_deliver *deliver);

const struct spec_stream *spec_find_stream(const struct spec_file *file, const char *name);

/* The value of a parameter by name: as given, else its default, else NULL; SPEC_NULL only where
 * null means something (stages.def says NULL_VALUE). The name must be one of the stage's (else a
 * bug). */
const struct spec_value *spec_get(const struct spec_stage *stage, const char *parameter);

/* Was it written in the file, rather than taken from the table's defaults? */
bool spec_given(const struct spec_stage *stage, const char *parameter);

/* Does the stage have this parameter, with a value? */
bool spec_has_value(const struct spec_stage *stage, const char *parameter);

/* Typed forms for parameters whose type the table has checked and that have a value (else a bug).
 * Where stages.def says VARYING the value may be a variable: read it with spec_get. */
int64_t spec_int(const struct spec_stage *stage, const char *parameter);
double spec_number(const struct spec_stage *stage, const char *parameter);
bool spec_bool(const struct spec_stage *stage, const char *parameter);
const char *spec_text(const struct spec_stage *stage, const char *parameter);
tundish_dtype spec_dtype(const struct spec_stage *stage, const char *parameter);

/* Look up a key of a MAP; NULL if absent. */
const struct spec_value *spec_map_get(const struct spec_value *map, const char *key);

/* Is it a URL rather than a path? */
bool spec_is_url(const char *path);

/* `path` if absolute or a URL, else below the file's root. The caller frees. */
char *spec_path(const struct spec_file *file, const char *path);

#endif
