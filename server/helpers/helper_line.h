/* helper_line.h - one connection to a helper: calls it, asks for parts, and checks what comes. */
#ifndef HELPERS_HELPER_LINE_H
#define HELPERS_HELPER_LINE_H

#include "batch/portable.h"
#include "helpers/helper_sums.h"
#include "helpers/helper_wire.h"
#include "session/session_private.h"

/* Numbers that the other side has been told. */
struct told_numbers {
    uint64_t *bits;
    uint32_t room; /* words */
};

struct helper_line {
    struct session *session;
    struct byte_view key;
    struct helper_wire wire;
    struct told_numbers files, paths, sums;
    struct helper_sums *made_sums; /* of the session's files */
    uint64_t sums_seen;            /* of those that were made later */
    uint64_t asked;                /* on this connection */
    struct portable_bytes names, elements, answer, reads;
    uint32_t name_count;
    uint64_t row_count;   /* of sources, in the part that was sent */
    uint32_t slice_count; /* of the part that was sent */
    struct slot *slots;   /* of the whole slices that came; at least one */
    uint32_t slot_count;
    struct iovec *places;
};

/* `sums` stays the caller's. */
void helper_line_open(struct helper_line *line, struct session *session, struct byte_view key,
                      struct helper_sums *sums);
void helper_line_close(struct helper_line *line);

/* Call the helper. Waits at most until its server has opened the stream, some minutes. */
tundish_status helper_line_call(struct helper_line *line, const char *address,
                                uint32_t *ret_threads);
void helper_line_hang_up(struct helper_line *line);

/* Take a message that is a sentence, as it may come into the log. */
tundish_status helper_line_take_sentence(struct helper_line *line, uint64_t bytes,
                                         char ret_text[HELPER_TEXT_BYTES]);

/* A part, made elsewhere. */
struct helper_made {
    uint64_t skipped, busy_ns;
    uint32_t flags; /* enum helper_flag */
    char skipped_text[HELPER_TEXT_BYTES];
};

/* Ask for a part. E_PLACE: its references cannot be sent, now or ever. Others, as below: the
 * connection is of no use any more. */
tundish_status helper_line_ask(struct helper_line *line, const struct part *part,
                               int64_t deadline_ns);

/* Has the answer begun to come? E_TIMEOUT: not until then. */
tundish_status helper_line_await(struct helper_line *line, int64_t until_ns);

/* Take it. In place: the rows are then in the slot, or if `apart`, in line->answer. Whole: the
 * slices are line->slots. E_CORRUPT: the answer does not fit; E_DATA: the helper could not make it
 * (the connection is good). */
tundish_status helper_line_take(struct helper_line *line, const struct part *part, bool apart,
                                int64_t deadline_ns, struct helper_made *ret_made);

/* Wait for an answer that nobody wants any more, and drop it. */
tundish_status helper_line_drop(struct helper_line *line, int64_t deadline_ns);

/* Were the files that rows name the same there as here, as far as any were read for the part that
 * was taken last? As helper_reads_compare. */
tundish_status helper_line_compare_reads(const struct helper_line *line, bool *ret_differs);

/* Is the part in its slots the one that came? */
bool helper_line_is_same(const struct helper_line *line, const struct part *part);

#endif
