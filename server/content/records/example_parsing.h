/* example_parsing.h - shared by the guessing parser and the plain one. */
#ifndef CONTENT_RECORDS_EXAMPLE_PARSING_H
#define CONTENT_RECORDS_EXAMPLE_PARSING_H

#include "content/records/example.h"
#include "content/records/example_wire.h"

enum { NOBODY = -1 };

/* The first sixteen bytes of a name, padded with zeros: most names are equal when these are. */
struct name_words {
    uint64_t low, high;
};

/* The first words of `size` bytes, where 16 bytes can be read from the beginning. */
static inline struct name_words
name_words(const uint8_t *bytes, uint64_t size)
{
    static const uint64_t masks[9] = { 0,          0xff,         0xffff,         0xffffff,
                                       0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
                                       ~0ul };

    return (struct name_words){
        .low = load_u64(bytes) & masks[size < 8 ? size : 8],
        .high = size <= 8 ? 0 : load_u64(bytes + 8) & masks[size < 16 ? size - 8 : 8]
    };
}

static inline uint64_t
name_hash(struct name_words words, const uint8_t *bytes, uint64_t size)
{
    uint64_t tail = size > 16 ? load_u64(bytes + size - 8) : 0;
    uint64_t hash = (words.low ^ size) * UINT64_C(0x9E3779B97F4A7C15);

    hash = (hash ^ (hash >> 32) ^ words.high) * UINT64_C(0xD6E8FEB86659FD93);
    hash = (hash ^ (hash >> 32) ^ tail) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 32);
}

enum { WINDOW_BYTES = 16 };

/* The tag of an entry, and its length if that has one byte. */
enum { ENTRY_HEADER_BYTES = 2 };

/* So many bytes of an entry: `base`, to which the entry's length is added where `plus_length` has
 * ones. Bytes where `mask` has none may be any. */
struct entry_window {
    uint8_t base[WINDOW_BYTES], plus_length[WINDOW_BYTES], mask[WINDOW_BYTES];
};

/* How an entry begins whose feature has one value, in the form that writers give it: up to the
 * value all follows from the name and the entry's length. Most names need the first cache line
 * only. */
struct single_head {
    struct entry_window first; /* at the entry's beginning */
    uint32_t feature;
    uint8_t header_bytes;
    uint8_t least; /* bytes of an entry whose value is empty */
    uint8_t room;  /* for the value, if all lengths have one byte; 0: the feature is not read so */
    uint8_t kind;  /* tag */
    uint64_t middle_bytes;
    struct entry_window last; /* before the value, if the header is longer than `first` */
    const uint8_t *middle;    /* of the name: what stands between the two */
    uint64_t reserved;        /* 128 bytes in all, so that finding one takes a shift */
};

enum { HINT_BITS = 10 };

/* For each entry the feature that is probably its, by four bytes at the beginning or the end of its
 * name: at `offset`, and further on by the name's length as far as `mask` allows. */
struct single_hints {
    uint64_t offset, mask;
    uint32_t factor;
    uint16_t slots[1 << HINT_BITS];
};

/* Entries of one kind that nearly always follow one another, each as long every time: all of their
 * bytes are known but the values. They are compared many at once. */
enum { RUN_ENTRIES = 64, RUN_BYTES = 2048, RUN_SLACK = 64 };

struct example_run {
    uint32_t count, bytes;
    uint32_t seen_word; /* the same of all features */
    uint8_t kind;       /* tag */
    struct run_entry {
        uint32_t feature;
        uint16_t value_at; /* from the beginning of the run */
        uint8_t value_bytes;
    } entries[RUN_ENTRIES];
    uint32_t begins[RUN_ENTRIES + 1];
    uint64_t bits[RUN_ENTRIES + 1];        /* in `seen`, of the entries before */
    uint8_t wanted[RUN_BYTES + RUN_SLACK]; /* zeros after `bytes` */
    uint8_t mask[RUN_BYTES + RUN_SLACK];   /* ones where nothing else may stand */
    uint8_t whole[RUN_BYTES + 1];          /* by a number of bytes: how many entries they hold */
};

/* Where in a run the next entry is expected. */
struct run_place {
    const struct example_run *run; /* NULL: nothing is expected */
    uint32_t position;
};

struct parsing;

/* Store entries that have one value in the usual form, from `at` on. Returns the first other one or
 * `end`. The last of a feature that comes twice counts, as in protobuf's maps. *previous is the
 * last feature taken. */
typedef const uint8_t *example_take_singles(struct parsing *parsing, const uint8_t *at,
                                            const uint8_t *end, uint32_t *previous);

struct example_parser {
    uint32_t count;
    struct example_feature *features;
    struct name_words *words;
    int32_t *first; /* the first feature of this one's name */
    int32_t *same;  /* the next feature of the same name, or NOBODY */
    uint32_t list_count;
    uint32_t *lists;     /* the features that are lists */
    uint32_t slot_mask;  /* of `slots` */
    int32_t *slots;      /* open addressing by name: the first feature of that name, or NOBODY */
    uint32_t seen_words; /* words of a bit set over the features */
    struct known_name *known;    /* what every call begins with */
    struct single_head *singles; /* of each feature */
    struct single_hints hints;
    struct example_runs *runs;
    example_take_singles *take_singles;
    struct json_paths *paths;
    uint64_t *required; /* the features that every record must have or get from the fallback */
};

/* A name met in the records, wanted or not, and what came next after it. */
struct known_name {
    struct name_words head, mask; /* of an entry of it, up to the value's tag, as far as they go */
    const uint8_t *bytes;
    uint32_t size;   /* UINT32_MAX: matches nothing */
    uint32_t next;   /* index of a known name */
    int32_t feature; /* NOBODY: not wanted */
};

struct parsing {
    const struct example_parser *parser;
    const struct example_input *input;
    struct frame *frame;
    struct example_values *values;
    uint8_t **targets; /* of each feature: its values */
    uint64_t *seen;
    int64_t row;
    const struct run_place *places; /* after each feature, at the beginning, after anything else */
    struct known_name *known;       /* the features', then those learned */
    uint32_t known_count;
    uint32_t *learned; /* by hash: index of a learned name, 0 if none */

    struct example_entry *entries; /* of the record that is read plainly */
    uint64_t entry_count, entry_capacity;
};

/* Features in the order they were asked for; after them the place before the first one, whose name
 * matches nothing. The caller frees them. */
struct known_name *example_known_names(const struct example_parser *parser);

/* The tag of a dtype's list. */
static inline uint8_t
example_kind_tag(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING  ? TAG_BYTES_LIST
           : dtype == TUNDISH_INT64 ? TAG_INT64_LIST
                                    : TAG_FLOAT_LIST;
}

/* Prepare the parser for take_singles. */
void example_singles_open(struct example_parser *parser);
void example_singles_close(struct example_parser *parser);

/* The feature of the entry at `at`, if take_singles would take it but for its value; else
 * NOBODY. */
int32_t example_single_at(const struct example_parser *parser, const uint8_t *at,
                          const uint8_t *end);

/* All that stands before the value of such a feature in an entry of `length` bytes. */
void example_single_header(const struct example_parser *parser, uint32_t feature, uint8_t length,
                           uint8_t *ret_header);

/* The places after each feature, at a record's beginning, and after anything else
 * (example_runs.c): nothing is expected as long as nothing has been learned. */
struct example_runs *example_runs_open(const struct example_parser *parser);
void example_runs_close(struct example_runs *runs); /* accepts NULL */
const struct run_place *example_runs_places(const struct example_runs *runs);

/* Unless it has been done: find runs in records of the usual form, for all later parsings. */
void example_runs_learn(const struct example_parser *parser, const struct byte_view *records,
                        int64_t count);

/* The best for this processor. */
example_take_singles *example_take_singles_best(void);

/* The first feature of this name, or NOBODY. `words` and `hash` are of the name. */
int32_t example_find_feature(const struct example_parser *parser, struct name_words words,
                             uint64_t hash, const uint8_t *bytes, uint64_t size);

size_t example_value_bytes(tundish_dtype dtype);

/* Make room for `more` values of a list. */
void example_reserve(struct parsing *parsing, uint32_t feature, int64_t used, int64_t more);

/* Where the feature's values of this record go (not a list). */
void *example_target(const struct parsing *parsing, uint32_t feature);

/* The values of a list of the dtype's kind (example_wire.h). */
bool example_read_list(tundish_dtype dtype, const uint8_t *at, const uint8_t *end, void *values,
                       int64_t capacity, int64_t *ret_count);

/* Append this record's values to a list, whose end splits[row + 1] moves. False: they cannot be
 * read, or are not a multiple of what the shape holds. */
bool example_take_list(struct parsing *parsing, uint32_t feature, const uint8_t *at,
                       const uint8_t *end);

/* Give a record that lacks the feature its fallback. */
void example_take_fallback(struct parsing *parsing, uint32_t feature);

/* Read one record by the plain parser. */
void example_read_plainly(struct parsing *parsing, struct byte_view record);

#endif
