/* fuzz_helper_ask.c - a helper against a server that knows the key and asks for anything at all:
 * rows of the stream are made, and nothing is read outside of its files, tensors and the message.
 *
 * The input is the stream's number, how many names there are, flags, the rows asked for, and what
 * follows the head of an ask.
 */
#include "helper_streams.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

enum { HEAD_BYTES = 4, PACKED = 1, IN_ANOTHER_WAY = 2, DIFFERENT_ROWS = 4, MORE = 8 };

/* What an earlier input has named. */
static void
forget_names(struct helper_connection *connection)
{
    free(connection->files.table);
    free(connection->paths.table);
    connection->files = connection->paths = (struct numbers){ 0 };
    connection->different = NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    static struct portable_bytes ask, answer;
    struct helper_made made = { 0 };
    struct helper_pair *pair;
    struct helper_ask head;

    /* Files at URLs would be asked for. */
    if (data_bytes < HEAD_BYTES || memmem(data, data_bytes, "://", 3) != NULL)
        return 0;
    pair = helper_stream(data[0]);
    head = helper_pair_head(pair);
    head.name_count = data[1];
    head.packed = (data[2] & PACKED) != 0;
    if ((data[2] & IN_ANOTHER_WAY) != 0)
        head.in_place = !head.in_place;
    if ((data[2] & DIFFERENT_ROWS) != 0)
        head.rows = data[3];
    if ((data[2] & MORE) != 0)
        head.more = data[3];
    data += HEAD_BYTES;
    data_bytes -= HEAD_BYTES;
    head.bytes = data_bytes;
    ask.used = 0;
    portable_add(&ask, &head, sizeof head);
    portable_add(&ask, data, data_bytes);
    forget_names(&pair->connection);
    /* What came of it may not fit the part that the line waits for. */
    if (helper_pair_answer(pair, (struct byte_view){ ask.bytes, ask.used }, &answer) == TUNDISH_OK)
        (void)helper_pair_take(pair, (struct byte_view){ answer.bytes, answer.used }, true, &made);
    helper_line_hang_up(&pair->line);
    return 0;
}
