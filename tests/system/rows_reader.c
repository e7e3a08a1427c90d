/* rows_reader.c - a trainer for the system tests: prints what it is given, a line a batch.
 *
 *     first EPOCH STEP | first       where the server let it in, if it knows
 *     batch EPOCH STEP VALUE ...     the int64 column "value", or of strings a sum of each
 *     again VISITS | shard NUMBER [end]   behind a batch that says so
 *     floats VALUE ...               with --widen: what the consumer makes of it
 *     end EPOCH | end_of_stream | stopped | status NAME TEXT
 *     place TOKEN                    where it stands, after --batches
 *     left TOKEN                     the same with --places, after --restart-after
 *
 * --batches N     stop after N batches, print the place and end
 * --until EPOCH:STEP  the same after that batch, or a later one
 * --server-timeout S  take it for gone after so long without a sign of life (300)
 * --hold          then wait for ever with the last batch unreleased
 * --place TOKEN   open there
 * --delay-ms N    after each batch
 * --pause-ms N    after each twentieth batch
 * --paced         take a batch for each line of standard input; at its end, leave
 * --survive       go on after E_SERVER_GONE and E_PEER_LOST, as long as something follows
 * --widen         print "value" as the float32 that deliver.widen makes of it
 * --keep N        never give the first N batches back
 * --late          give each batch back only after the next call of tundish_next
 * --places        print the place after each batch
 * --no-close      end without tundish_close
 * --restart       ask for the next epoch at once
 * --restart-after N  after N batches, with the last given back
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tundish/tundish.h>

struct wishes {
    unsigned long batches; /* 0: all */
    unsigned long until_epoch, until_step;
    int has_until;
    unsigned long delay_ms, pause_ms, keep;
    unsigned long restart_after; /* 0: never */
    int hold, late, paced, survive, places, widen, no_close, restart;
    const char *place;
};

enum { PAUSE_EVERY = 20 };
static const int64_t SECOND_NS = 1000000000;

static void
rest(unsigned long ms)
{
    const struct timespec time = { .tv_sec = (time_t)(ms / 1000),
                                   .tv_nsec = (long)(ms % 1000) * 1000000 };

    nanosleep(&time, NULL);
}

/* Tells texts apart by their length and every SAMPLE-th byte. */
static unsigned long
sum_of(const uint8_t *text, uint64_t bytes)
{
    enum { SAMPLE = 97 };
    uint32_t sum = (uint32_t)bytes;

    for (uint64_t i = 0; i < bytes; i += SAMPLE)
        sum = sum * 31 + text[i];
    return bytes > 0 ? sum * 31UL + text[bytes - 1] : sum;
}

static void
print_values(const tundish_tensor *tensor)
{
    const uint8_t *texts = tensor->data;
    const int64_t *offsets = tensor->string_offsets;

    for (uint64_t i = 0; i < tensor->element_count; i++)
        if (tensor->dtype == TUNDISH_STRING)
            printf(" %lu", sum_of(texts + offsets[i], (uint64_t)(offsets[i + 1] - offsets[i])));
        else
            printf(" %lld", (long long)((const int64_t *)tensor->data)[i]);
}

static void
print_batch(const tundish_batch *batch)
{
    const tundish_tensor *tensor;

    printf("batch %llu %llu", (unsigned long long)batch->epoch, (unsigned long long)batch->step);
    if (tundish_tensor_named(batch, "value", &tensor) == TUNDISH_OK)
        print_values(tensor);
    putchar('\n');
    if (batch->visits > 0)
        printf("again %llu\n", (unsigned long long)batch->visits);
    if (batch->shard >= 0)
        printf("shard %lld%s\n", (long long)batch->shard,
               (batch->flags & TUNDISH_BATCH_SHARD_END) != 0 ? " end" : "");
}

static void
print_first(tundish_reader *reader)
{
    tundish_info info = { .size = sizeof info };

    if (tundish_get_info(reader, &info) != TUNDISH_OK || info.first_step == UINT64_MAX)
        puts("first");
    else
        printf("first %llu %llu\n", (unsigned long long)info.first_epoch,
               (unsigned long long)info.first_step);
    fflush(stdout);
}

/* The column "value" is the only one. */
static void
print_floats(const tundish_batch *batch)
{
    static float values[65536];
    size_t bytes;
    tundish_status status = tundish_tensor_widen(batch, 0, values, sizeof values, &bytes);

    if (status != TUNDISH_OK) {
        printf("status %s %s\n", tundish_status_name(status), tundish_last_error());
        return;
    }
    fputs("floats", stdout);
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        printf(" %.9g", (double)values[i]);
    putchar('\n');
}

static void
print_place(tundish_reader *reader, const char *word)
{
    char token[1024];
    size_t bytes;

    if (tundish_place_token(reader, token, sizeof token, &bytes) == TUNDISH_OK)
        printf("%s %s\n", word, token);
    else
        printf("status %s\n", tundish_last_error());
}

static void
print_status(tundish_status status)
{
    printf("status %s %s\n", tundish_status_name(status), tundish_last_error());
    fflush(stdout);
}

/* Told once, after which batches may follow: the same again is final. */
static int
is_survived(const struct wishes *wishes, tundish_status status, tundish_status *told)
{
    if (!wishes->survive || status == *told ||
        (status != TUNDISH_E_SERVER_GONE && status != TUNDISH_E_PEER_LOST))
        return 0;
    print_status(status);
    *told = status;
    return 1;
}

/* Late, it is the one before that goes back. */
static void
give_back(tundish_reader *reader, const struct wishes *wishes, const tundish_batch *batch)
{
    static const tundish_batch *before;

    tundish_release(reader, wishes->late ? before : batch);
    before = batch;
}

static int
is_last(const struct wishes *wishes, const tundish_batch *batch, unsigned long taken)
{
    if (taken == wishes->batches)
        return 1;
    return wishes->has_until &&
           (batch->epoch > wishes->until_epoch ||
            (batch->epoch == wishes->until_epoch && batch->step >= wishes->until_step));
}

/* Returns what ended it; OK: as many batches as wished for. */
static tundish_status
read_all(tundish_reader *reader, const struct wishes *wishes)
{
    unsigned long taken = 0;
    tundish_status told = TUNDISH_OK;

    for (;;) {
        const tundish_batch *batch;
        tundish_status status;
        char line[16];

        if (wishes->paced && fgets(line, sizeof line, stdin) == NULL)
            return TUNDISH_OK;
        status = tundish_next(reader, TUNDISH_FOREVER, &batch);
        if (is_survived(wishes, status, &told))
            continue;
        told = TUNDISH_OK;
        if (status == TUNDISH_END) {
            puts("end");
            give_back(reader, wishes, NULL);
            fflush(stdout);
            continue;
        }
        if (status != TUNDISH_OK)
            return status;
        if (wishes->widen)
            print_floats(batch);
        else
            print_batch(batch);
        if (wishes->places)
            print_place(reader, "place");
        /* Killed at any moment it has told all that it gave back; paced, it gave back all it told.
         */
        if (!wishes->paced)
            fflush(stdout);
        if (is_last(wishes, batch, ++taken)) {
            print_place(reader, "place");
            fflush(stdout);
            while (wishes->hold)
                pause();
            give_back(reader, wishes, batch);
            return TUNDISH_OK;
        }
        if (taken > wishes->keep)
            give_back(reader, wishes, batch);
        fflush(stdout);
        if (taken == wishes->restart_after) {
            status = tundish_restart(reader);
            if (status != TUNDISH_OK)
                return status;
            if (wishes->places)
                print_place(reader, "left");
            fflush(stdout);
        }
        rest(wishes->delay_ms);
        if (taken % PAUSE_EVERY == 0)
            rest(wishes->pause_ms);
    }
}

int
main(int argc, char **argv)
{
    enum {
        BATCHES = 256,
        UNTIL,
        HOLD,
        PLACE,
        DELAY,
        PAUSE,
        PACED,
        SURVIVE,
        PLACES,
        WIDEN,
        NO_CLOSE,
        RESTART,
        RESTART_AFTER,
        KEEP,
        LATE,
        SERVER_TIMEOUT
    };
    static const struct option options[] = {
        { "batches", required_argument, NULL, BATCHES },
        { "until", required_argument, NULL, UNTIL },
        { "hold", no_argument, NULL, HOLD },
        { "place", required_argument, NULL, PLACE },
        { "delay-ms", required_argument, NULL, DELAY },
        { "pause-ms", required_argument, NULL, PAUSE },
        { "keep", required_argument, NULL, KEEP },
        { "late", no_argument, NULL, LATE },
        { "paced", no_argument, NULL, PACED },
        { "survive", no_argument, NULL, SURVIVE },
        { "places", no_argument, NULL, PLACES },
        { "no-close", no_argument, NULL, NO_CLOSE },
        { "restart", no_argument, NULL, RESTART },
        { "restart-after", required_argument, NULL, RESTART_AFTER },
        { "widen", no_argument, NULL, WIDEN },
        { "server-timeout", required_argument, NULL, SERVER_TIMEOUT },
        { 0 },
    };
    tundish_options wanted = TUNDISH_OPTIONS_INIT;
    struct wishes wishes = { 0 };
    tundish_reader *reader;
    tundish_status status;

    wanted.server_timeout_ns = 300 * SECOND_NS; /* a machine may be slow */
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case BATCHES:
            wishes.batches = strtoul(optarg, NULL, 10);
            break;
        case UNTIL:
            wishes.has_until =
                sscanf(optarg, "%lu:%lu", &wishes.until_epoch, &wishes.until_step) == 2;
            break;
        case HOLD:
            wishes.hold = 1;
            break;
        case PLACE:
            wanted.place_token = optarg;
            break;
        case DELAY:
            wishes.delay_ms = strtoul(optarg, NULL, 10);
            break;
        case PAUSE:
            wishes.pause_ms = strtoul(optarg, NULL, 10);
            break;
        case KEEP:
            wishes.keep = strtoul(optarg, NULL, 10);
            break;
        case LATE:
            wishes.late = 1;
            break;
        case PACED:
            wishes.paced = 1;
            break;
        case SURVIVE:
            wishes.survive = 1;
            break;
        case NO_CLOSE:
            wishes.no_close = 1;
            break;
        case RESTART:
            wishes.restart = 1;
            break;
        case RESTART_AFTER:
            wishes.restart_after = strtoul(optarg, NULL, 10);
            break;
        case PLACES:
            wishes.places = 1;
            break;
        case SERVER_TIMEOUT:
            wanted.server_timeout_ns = (int64_t)strtoul(optarg, NULL, 10) * SECOND_NS;
            break;
        case WIDEN:
            wishes.widen = 1;
            break;
        default:
            return 2;
        }
    status = tundish_open(&wanted, &reader);
    if (status == TUNDISH_OK) {
        print_first(reader);
        if (wishes.restart)
            status = tundish_restart(reader);
        if (status == TUNDISH_OK)
            status = read_all(reader, &wishes);
        /* Said before it closes: what it holds goes to others then. */
        if (status == TUNDISH_STOPPED)
            puts("stopped");
        fflush(stdout);
        if (!wishes.no_close)
            tundish_close(reader);
    } else if (status == TUNDISH_STOPPED) {
        puts("stopped");
    }
    if (status == TUNDISH_END_OF_STREAM)
        puts("end_of_stream");
    else if (status != TUNDISH_OK && status != TUNDISH_STOPPED)
        print_status(status);
    return status < 0 ? 1 : 0;
}
