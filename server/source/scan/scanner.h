/* scanner.h - how the records of a format are found: a machine that is fed a file's bytes in order
 * and writes down where records lie.
 *
 * A scanner that knows where it must look next says so, and the bytes before are not read.
 */
#ifndef SOURCE_SCAN_SCANNER_H
#define SOURCE_SCAN_SCANNER_H

#include "content/records/unpacker.h"
#include "source/scan/records.h"

struct parquet_columns;
struct sample_columns;
struct scanner_ops;
struct source_file;

/* Two scans of the same bytes are the same if these are equal. */
struct record_format {
    const struct scanner_ops *scanner;
    enum packing packing;
    int64_t numbers[3];                    /* the scanner's own parameters */
    const struct sample_columns *samples;  /* webdataset: numbers[0] is a hash of them */
    const struct parquet_columns *parquet; /* the same for parquet */
};

enum { SCANNER_STATE_BYTES = 9216 };

struct scanner_ops {
    const char *name;
    uint64_t usual_gap;  /* bytes between records */
    bool hash_bytes;     /* identity is a hash over all bytes; else the scanner adds to it */
    bool is_text;        /* what is packed is not: it is refused, if the stage does not unpack it */
    bool may_be_packed;  /* the content says whether it is, if the name does not */
    uint32_t jump_bytes; /* read this much if the next record lies far ahead */

    /* The numbers of a format whose parameters nobody has said, for `tundish index`. NULL: without
     * them it is unknown where records are. */
    const int64_t *usual_numbers;

    /* Ready a zeroed state of SCANNER_STATE_BYTES. */
    void (*begin)(void *state, const struct record_format *format);

    /* Take the bytes that lie at `offset`: next to those before, or where `wanted` asked. On
     * failure the sentence does not name the file, and records before the damage are written. */
    tundish_status (*feed)(void *state, const uint8_t *data, size_t bytes, uint64_t offset,
                           struct record_writer *writer);

    /* The first byte not seen yet that is needed; never less than what feed has got to. */
    uint64_t (*wanted)(const void *state);

    /* The file ends at `size`. */
    tundish_status (*finish)(void *state, uint64_t size, struct record_writer *writer);

    /* Fill count, stride and first_offset from the size alone; NULL: it takes a scan. */
    tundish_status (*measure)(const struct record_format *format, uint64_t size,
                              struct record_list *list);

    /* The same for a format whose files say it themselves, where they are read: none is scanned,
     * and there is nothing above but the name. NULL: it takes a scan, or the size. */
    tundish_status (*contents)(struct source_file *file, int descriptor, struct record_list *list);
};

extern const struct scanner_ops scanner_tfrecord;
extern const struct scanner_ops scanner_text_line;
extern const struct scanner_ops scanner_fixed_length_record;
extern const struct scanner_ops scanner_csv;
extern const struct scanner_ops scanner_webdataset;
extern const struct scanner_ops scanner_parquet;

/* The one of this name, or NULL. */
const struct scanner_ops *scanner_find(const char *name);

/* numbers of fixed_length_record and csv */
enum { LINES_WITHOUT_BLANK };
enum { FIXED_RECORD, FIXED_HEADER, FIXED_FOOTER };
enum { CSV_DELIMITER, CSV_QUOTES, CSV_HEADER };

/* "the record at OFFSET is too long" */
tundish_status scanner_too_long(uint64_t offset, uint64_t length);

#endif
