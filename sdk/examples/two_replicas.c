/* two_replicas.c - two training processes in step: two_replicas STREAM.
 *
 * Each reads its slice of every global batch; where one has no rows left it gets an empty slice, so
 * both take the same number of steps and a collective between them always finds both there. The
 * place is saved at each step, as a training program would do with its checkpoint.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tundish/tundish.h>

enum { REPLICAS = 2, TOKEN_BYTES = 1 << 16 };

static tundish_status
train(const char *stream, int replica)
{
    static char token[TOKEN_BYTES] = "none";
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader = NULL;
    const tundish_batch *batch;
    size_t token_bytes;
    uint64_t steps = 0;
    tundish_status status;

    options.stream = stream;
    options.replica = replica;
    status = tundish_open(&options, &reader);
    while (status == TUNDISH_OK &&
           (status = tundish_next(reader, TUNDISH_FOREVER, &batch)) == TUNDISH_OK) {
        /* Here is where the model would take its step, and where replicas would meet. */
        steps++;
        tundish_release(reader, batch);
        status = tundish_place_token(reader, token, sizeof token, &token_bytes);
    }
    printf("replica %d: %" PRIu64 " steps, then %s\n", replica, steps, tundish_status_name(status));
    if (status < TUNDISH_OK)
        fprintf(stderr, "replica %d: %s\n", replica, tundish_last_error());
    else if (replica == 0)
        printf("to go on from here: %.40s...\n", token);
    tundish_close(reader);
    return status;
}

int
main(int argc, char **argv)
{
    const char *stream = argc > 1 ? argv[1] : NULL;
    int failed = 0, result;

    /* Fork first, open after: a reader belongs to the process that opened it. */
    for (int replica = 0; replica < REPLICAS; replica++)
        if (fork() == 0)
            exit(train(stream, replica) < TUNDISH_OK);
    while (wait(&result) > 0)
        failed |= result != 0;
    return failed;
}
