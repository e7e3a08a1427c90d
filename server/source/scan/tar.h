/* tar.h - the members of a tar archive, found by walking along its headers.
 *
 * The walker is fed an archive's bytes in order and says which it needs next, so that what lies in
 * members is passed over. It knows ustar, the headers for long names of GNU tar, and pax. Bytes
 * are hostile: a size, a name or a checksum that cannot be is an error, and nothing a header says
 * is used but to compute where the next one must be.
 */
#ifndef SOURCE_SCAN_TAR_H
#define SOURCE_SCAN_TAR_H

#include <stdbool.h>
#include <stddef.h>

#include "core/bytes.h"
#include "core/status.h"

enum { TAR_BLOCK_BYTES = 512, TAR_NAME_MAX = 4096 };

/* Where a header has its member's size and kind. */
enum { TAR_SIZE = 124, TAR_TYPE = 156 };

struct tar_member {
    struct byte_view name; /* the walker's, until it goes on */
    uint64_t begin;        /* of its first header */
    uint64_t data, size;
    bool is_file;   /* links, folders and devices have no bytes of their own */
    bool is_link;   /* hard or symbolic */
    bool is_sparse; /* what lies at `data` is for tar_sparse.h */
};

/* One record of a pax header: "LENGTH KEY=VALUE\n". */
struct tar_pax {
    uint32_t part;      /* which of the three is at hand */
    uint64_t length;    /* of the record, as far as it was read */
    uint64_t left;      /* bytes of the record still to come */
    uint64_t number;    /* the value, if it is one */
    char key[16];       /* its beginning */
    uint32_t key_bytes; /* all of it */
    uint32_t value_bytes;
};

/* All zeros is a walker at the archive's first byte. */
struct tar_walker {
    uint64_t wanted;    /* the next byte needed */
    uint64_t begin;     /* of the member's first header */
    uint64_t hash;      /* of the headers so far */
    uint64_t body_left; /* bytes of an extra header's body still to come */
    uint64_t body_end;  /* where the header after it begins */
    uint32_t have;      /* bytes of the header in `block` */
    char body_kind;     /* 'L', 'x', or 0: a header comes next */
    bool in_member;     /* extra headers were there, the header proper was not */
    bool has_size;      /* the extra headers gave the size */
    bool name_ended;    /* its NUL was there */
    bool is_sparse;
    bool has_sparse_name; /* which counts, whatever the path is */
    bool in_map;          /* blocks of GNU tar's sparse map come next, then the data */
    bool is_over;         /* the end was there */
    uint64_t size;
    uint32_t name_bytes; /* 0: not given */
    struct tar_pax pax;
    uint8_t block[TAR_BLOCK_BYTES];
    uint8_t name[TAR_NAME_MAX];
};

/* Take the bytes at `offset`, of which those before `wanted` are not looked at, up to the end of
 * the next member's headers: then *ret_found is true, and the same bytes are to be given again.
 * Sentences do not name the file. */
tundish_status tar_walk(struct tar_walker *walker, const uint8_t *data, size_t bytes,
                        uint64_t offset, struct tar_member *ret_member, bool *ret_found);

/* A number of a header: octal digits, or the bytes of a large one. */
bool tar_number(const uint8_t *field, size_t bytes, uint64_t *ret_number);

/* The archive ends at `size`; the last member's data at `data_end`. */
tundish_status tar_finish(const struct tar_walker *walker, uint64_t size, uint64_t data_end);

#endif
