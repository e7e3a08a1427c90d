/* file_source.h - shared by the sources that read files: their parameters, and an order
 * side that goes through one file after another.
 *
 * Words of an element are a reference, as scan.h says.
 */
#ifndef SOURCE_FILE_SOURCE_H
#define SOURCE_FILE_SOURCE_H

#include "source/scan/scan.h"
#include "source/source.h"

/* First in the state of each of these sources. */
struct reader {
    struct record_format format;
    const struct spec_value *filenames; /* NULL: the nearest `value` */
    bool packing_by_name; /* .gz, .zst ... at the end of a name say how it is packed */
};

struct reader_state {
    size_t next; /* of the names */
    struct scan_cursor cursor;

    /* All files, once somebody asked for elements by number. */
    size_t file_count;
    struct reader_part {
        struct source_file *file;
        const struct record_list *list;
        uint64_t first; /* element of the iterator */
    } * parts;          /* one more than files: its `first` is the count */
};

/* Read `filenames` and `compression_type` of the stage; the scanner and its numbers are the
 * caller's. */
tundish_status file_source_open(struct reader *reader, const struct stage_config *config,
                                const struct scanner_ops *scanner);

/* The file of that name in the table, to be read as the reader does. Any thread. */
struct source_file *file_source_enter(const struct reader *reader, struct source_files *files,
                                      struct byte_view name);

/* Was the file entered to be read as the reader does? */
bool file_source_reads(const struct reader *reader, const struct source_file *file);

/* For struct order_ops, the node's state beginning with a reader. */
tundish_status file_source_iterate(struct order_iterator *iterator);
enum order_result file_source_next(struct order_iterator *iterator, uint64_t *words, size_t max,
                                   size_t *ret_count);
void file_source_iterate_close(struct order_iterator *iterator);
tundish_status file_source_count(struct order_iterator *iterator, uint64_t *ret_count);
tundish_status file_source_at(struct order_iterator *iterator, const uint64_t *indices,
                              size_t index_count, uint64_t *words);
enum order_result file_source_pass_over(struct order_iterator *iterator, uint64_t count,
                                        uint64_t *ret_passed);

/* Add to a failure which stage it is of: a pipeline may have several readers. */
tundish_status file_source_fail_at_stage(const struct order_iterator *iterator,
                                         tundish_status status);

tundish_status file_source_check(struct order_iterator *iterator);
bool file_source_expect(struct order_iterator *iterator);

/* needs_cache: packed files are unpacked there, and objects are kept there, but for the ranges of
 * them that Parquet is read by. */
bool file_source_needs_cache(const void *state, bool has_urls);

/* row_bytes of sources whose rows are what the reference says, byte for byte. */
uint64_t file_source_row_bytes(const uint64_t *words);

#define READER_ORDER(stage)                                                                        \
    {                                                                                              \
        .name = stage, .state_bytes = sizeof(struct reader_state), .open = file_source_iterate,    \
        .next = file_source_next, .close = file_source_iterate_close, .count = file_source_count,  \
        .at = file_source_at, .pass_over = file_source_pass_over, .check = file_source_check,      \
        .expect = file_source_expect,                                                              \
    }

#endif
