/* records.h - where the records of a file lie: written by a scan, kept in an index.
 *
 * Records are written in a row, each as (length * 2 + unusual), then, if unusual is 1, the bytes
 * between the record before and this one; both as base-128 numbers. The usual number of bytes
 * between is the format's. So a record takes two bytes as a rule. Readers check every bound: the
 * bytes may come from a file.
 */
#ifndef SOURCE_SCAN_RECORDS_H
#define SOURCE_SCAN_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer records are refused by all scanners: they would not fit a batch. */
#define RECORD_BYTES_MAX INT32_MAX

struct record_writer {
    uint8_t *bytes;
    size_t used, room;
    uint64_t count;
    uint64_t usual_gap;
    uint64_t end;  /* where the last record ended */
    uint64_t hash; /* of the bytes read, for the file's identity */
};

/* Append a record that begins at or after the end of the last one. */
void record_writer_add(struct record_writer *writer, uint64_t offset, uint64_t length);

/* A cursor in written records. */
struct record_reader {
    const uint8_t *at, *limit;
    uint64_t left; /* records */
    uint64_t usual_gap;
    uint64_t end;       /* of the record before */
    uint64_t end_limit; /* no record ends after this */
};

/* Read up to `max` records as references: words[2 * i] is the offset, words[2 * i + 1] is
 * `high` | length. False: the record is damaged. */
bool record_reader_next(struct record_reader *reader, uint64_t high, uint64_t *words, size_t max,
                        size_t *ret_count);

/* Pass over `count` records, of which that many are left. */
bool record_reader_pass_over(struct record_reader *reader, uint64_t count);

enum { RECORD_GROUP = 64 }; /* records between entries of the table for random access */

struct record_group {
    uint64_t end;      /* of the record before the group */
    uint64_t position; /* of the group's first record in bytes */
};

struct record_list {
    uint64_t count;
    uint64_t hash;      /* identity of the file's content */
    uint64_t end_limit; /* no record ends after this */

    /* Records of one length without gaps need no bytes: stride is not 0 then. */
    uint64_t stride, first_offset;

    uint64_t usual_gap;
    uint64_t byte_count;
    const uint8_t *bytes;
    const struct record_group *groups; /* one for each RECORD_GROUP records */
    void *owned;                       /* bytes and groups in one allocation, or NULL */
    struct tnd_mapped *map;            /* ... or in an index file */
    size_t map_bytes;
    bool is_refused; /* it is worth an index file, and the cache folder could not take it */
};

/* A reader that stands at record `index` (at most count). Not for a list with a stride. */
bool record_list_seek(const struct record_list *list, uint64_t index,
                      struct record_reader *ret_reader);

/* References of up to `max` records from `index` on, for either kind of list; steps of any size. */
bool record_list_at(const struct record_list *list, uint64_t index, uint64_t high,
                    uint64_t *ret_words);

/* The size of the groups' table. */
static inline uint64_t
record_group_count(uint64_t record_count)
{
    return record_count / RECORD_GROUP + (record_count % RECORD_GROUP != 0);
}

/* The number of the record that begins at `offset`. False: none does. */
bool record_list_find(const struct record_list *list, uint64_t offset, uint64_t *ret_index);

void record_list_close(struct record_list *list);

#endif
