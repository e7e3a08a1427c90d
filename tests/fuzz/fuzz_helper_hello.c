/* fuzz_helper_hello.c - a helper against a server that knows the key and says anything at all of
 * its stream: what is opened makes a part whose columns can be read, or is refused.
 *
 * The input is the stream's number, what of the hello is to be changed, the change, and codecs.
 */
#include "helper_streams.h"

#include "core/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

enum { HEAD_BYTES = 4, CHANGE_BYTES = 8 };

static struct helper_hello
hello_of(const struct helper_pair *pair)
{
    struct helper_hello hello = {
        .worker_count = 1,
        .columns = pair->session.plan->element_spec.count,
        .stream = "s",
    };
    struct place_files files;

    must(place_files_open(pair->session.plan, &files) == TUNDISH_OK);
    hello.identity = helper_identity(pair->session.plan, &files);
    place_files_close(&files);
    return hello;
}

/* As helper_serve.c has it: as many codecs as the hello says. */
static bool
is_heard(const struct helper_hello *hello)
{
    return hello->columns <= HELPER_COLUMNS_MAX && hello->has_packed <= 1 &&
           memchr(hello->stream, '\0', sizeof hello->stream) != NULL;
}

static tundish_status
enter(struct helper_pair *pair, const struct helper_hello *hello, struct byte_view codecs)
{
    size_t bytes = (1 + hello->has_packed) * hello->columns * sizeof(struct tnd_codec);
    uint8_t *said = tnd_zalloc(sizeof *hello + bytes, 1);
    tundish_status status;

    memcpy(said, hello, sizeof *hello);
    memcpy(said + sizeof *hello, codecs.data, codecs.size < bytes ? codecs.size : bytes);
    helper_leave_stream(&pair->connection);
    pair->connection = (struct helper_connection){ .server = &pair->server };
    pair->connection.wire = (struct helper_wire){ .socket = -1, .stop = &pair->stop };
    status =
        helper_enter_stream(&pair->connection, (struct byte_view){ said, sizeof *hello + bytes });
    free(said);
    return status;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    static struct portable_bytes ask, answer;
    struct helper_hello hello;
    struct helper_pair *pair;

    if (data_bytes < HEAD_BYTES + CHANGE_BYTES)
        return 0;
    pair = helper_stream(data[0]);
    hello = hello_of(pair);
    /* Some bytes of it, if any. */
    if (data[1] > 0) {
        size_t at = (data[2] | (size_t)data[3] << 8) % (sizeof hello - CHANGE_BYTES);

        memcpy((uint8_t *)&hello + at, data + HEAD_BYTES,
               data[1] < CHANGE_BYTES ? data[1] : CHANGE_BYTES);
    }
    data += HEAD_BYTES + CHANGE_BYTES;
    data_bytes -= HEAD_BYTES + CHANGE_BYTES;
    if (!is_heard(&hello))
        return 0;
    if (enter(pair, &hello, (struct byte_view){ data, data_bytes }) == TUNDISH_OK) {
        helper_line_hang_up(&pair->line);
        helper_pair_ask(pair, &ask);
        (void)helper_pair_answer(pair, (struct byte_view){ ask.bytes, ask.used }, &answer);
    }
    helper_pair_reconnect(pair);
    return 0;
}
