/* control.c - send one command to the server and wait for its answer. */
#include "control.h"

#include <stdio.h>
#include <unistd.h>

#include "core/status.h"

/* The server's loop never blocks for long. If it does not answer in this time, it hangs. */
static const int64_t ANSWER_NS = 2000000000;

static tundish_status
ask(int socket, enum tnd_control what, struct tnd_message *ret_answer)
{
    struct tnd_message_head head = { .magic = TND_CHANNEL_MAGIC,
                                     .type = TND_CONTROL,
                                     .id = (uint64_t)what };
    tundish_status status = tnd_channel_send(socket, head, NULL, NULL, 0);

    if (status == TUNDISH_OK)
        status = tnd_channel_wait(socket, ANSWER_NS);
    if (status == TUNDISH_OK)
        status = tnd_channel_receive(socket, ret_answer, NULL);
    if (status == TUNDISH_OK && ret_answer->head.type != TND_ANSWER)
        return tnd_fail(TUNDISH_E_CORRUPT, "the server did not answer");
    return status;
}

tundish_status
control_ask(const char *socket_path, enum tnd_control what, char *text, size_t text_bytes)
{
    struct tnd_message answer;
    int socket;
    tundish_status status = tnd_channel_connect(socket_path, &socket);

    if (status == TUNDISH_OK) {
        status = ask(socket, what, &answer);
        close(socket);
    }
    if (status != TUNDISH_OK) {
        snprintf(text, text_bytes, "%s", tnd_error_text());
        return status;
    }
    snprintf(text, text_bytes, "%.*s", (int)answer.head.bytes, (const char *)answer.bytes);
    return (tundish_status)answer.head.status;
}
