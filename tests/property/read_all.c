/* read_all.c - several readers in one process: prints every value of every batch.
 *
 *     read_all [--in-turn] [--survive] [--steps N] [SESSION/]GROUP:REPLICA[:TOKEN] ...
 *
 * Each reader opens at the place of its TOKEN, if it has one, and has a thread of its own; with
 * --in-turn one thread reads one batch of each after the other. JSON lines, NAME being an argument
 * without its token, TOKEN where the reader stands after the batch:
 *
 *     ["batch", NAME, EPOCH, STEP, {COLUMN: {...}}, TOKEN, SHARD, SHARD_END]
 *     ["end", NAME]                 an epoch's
 *     ["status", NAME, STATUS, TEXT]
 *
 * With --survive a reader goes on after E_SERVER_GONE and E_PEER_LOST as long as batches follow.
 * It leaves after N steps. The exit status is 0 where every reader came to an end.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tundish/tundish.h>

#include "commands/print_batch.h"
#include "core/memory.h"
#include "core/must.h"

enum { READERS_MAX = 64, NAME_BYTES = 64, TOKEN_BYTES = 4096 };

static const int64_t SERVER_TIMEOUT_NS = 300 * INT64_C(1000000000); /* a machine may be slow */

struct wishes {
    bool in_turn, survives;
    uint64_t steps;
};

struct one {
    const struct wishes *wishes;
    char name[NAME_BYTES], session[NAME_BYTES], group[NAME_BYTES];
    int32_t replica;
    const char *token; /* NULL: none */
    tundish_reader *reader;
    uint64_t taken;
    unsigned told_count; /* losses that it survived, since its last batch */
    bool is_over;
    tundish_status status;
};

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static void
print_tensor(struct json *json, const tundish_tensor *tensor)
{
    struct column_spec spec = { .dtype = tensor->dtype,
                                .kind = tensor->kind,
                                .ragged_rank = (int)tensor->ragged_rank };
    struct output_column column = { .spec = &spec,
                                    .rank = (int)tensor->rank,
                                    .value_count = (int64_t)tensor->element_count,
                                    .values = tensor->data,
                                    .splits_count = tensor->ragged_rank,
                                    .indices = tensor->indices };
    struct byte_view *texts = NULL;

    must(tensor->rank <= TUNDISH_RANK_MAX);
    for (uint32_t k = 0; k < tensor->rank; k++)
        column.shape[k] = tensor->shape[k];
    for (uint32_t k = 0; k < tensor->ragged_rank; k++) {
        column.splits[k] = tensor->row_splits[k];
        column.splits_lengths[k] = (int64_t)tensor->row_split_counts[k];
    }
    if (tensor->dtype == TUNDISH_STRING) {
        texts = tnd_zalloc(tensor->element_count + 1, sizeof *texts);
        for (uint64_t i = 0; i < tensor->element_count; i++)
            texts[i] = (struct byte_view){
                (const uint8_t *)tensor->data + tensor->string_offsets[i],
                (size_t)(tensor->string_offsets[i + 1] - tensor->string_offsets[i]),
            };
        column.values = texts;
    }
    print_column(json, &column);
    free(texts);
}

static void
print_batch(const struct one *one, const tundish_batch *batch)
{
    char token[TOKEN_BYTES] = "";
    struct json json;
    size_t bytes;

    pthread_mutex_lock(&output);
    json_start(&json, stdout);
    json_array(&json);
    json_text(&json, "batch");
    json_text(&json, one->name);
    json_uint(&json, batch->epoch);
    json_uint(&json, batch->step);
    json_object(&json);
    for (uint32_t i = 0; i < batch->tensor_count; i++) {
        const tundish_tensor *tensor;

        must(tundish_tensor_at(batch, i, &tensor) == TUNDISH_OK);
        json_key(&json, tensor->name);
        print_tensor(&json, tensor);
    }
    json_object_end(&json);
    must(tundish_place_token(one->reader, token, sizeof token, &bytes) == TUNDISH_OK);
    json_text(&json, token);
    json_int(&json, batch->shard);
    json_bool(&json, (batch->flags & TUNDISH_BATCH_SHARD_END) != 0);
    json_array_end(&json);
    putchar('\n');
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

static void
print_line(const struct one *one, const char *kind, tundish_status status)
{
    struct json json;

    pthread_mutex_lock(&output);
    json_start(&json, stdout);
    json_array(&json);
    json_text(&json, kind);
    json_text(&json, one->name);
    if (strcmp(kind, "status") == 0) {
        json_text(&json, tundish_status_name(status));
        json_text(&json, status < 0 ? tundish_last_error() : "");
    }
    json_array_end(&json);
    putchar('\n');
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

static void
open_one(struct one *one)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;

    options.session = one->session[0] != '\0' ? one->session : NULL;
    options.group = one->group;
    options.replica = one->replica;
    options.place_token = one->token;
    options.server_timeout_ns = SERVER_TIMEOUT_NS;
    one->status = tundish_open(&options, &one->reader);
    one->is_over = one->status != TUNDISH_OK;
    if (one->is_over)
        print_line(one, "status", one->status);
}

/* A server may die again before this reader has anything from it. So many in a row are final. */
enum { TOLD_MAX = 8 };

static bool
is_survived(struct one *one, tundish_status status)
{
    if (!one->wishes->survives || one->told_count == TOLD_MAX ||
        (status != TUNDISH_E_SERVER_GONE && status != TUNDISH_E_PEER_LOST))
        return false;
    print_line(one, "status", status);
    one->told_count++;
    return true;
}

/* One batch, the end of an epoch, or what ends it. */
static void
take(struct one *one)
{
    const tundish_batch *batch;
    tundish_status status = tundish_next(one->reader, TUNDISH_FOREVER, &batch);

    if (is_survived(one, status))
        return;
    one->told_count = 0;
    if (status == TUNDISH_END) {
        print_line(one, "end", status);
    } else if (status == TUNDISH_OK) {
        print_batch(one, batch);
        tundish_release(one->reader, batch);
        one->is_over = ++one->taken == one->wishes->steps;
    } else {
        print_line(one, "status", status);
        one->status = status;
        one->is_over = true;
    }
}

static void *
read_one(void *argument)
{
    struct one *one = argument;

    open_one(one);
    while (!one->is_over)
        take(one);
    tundish_close(one->reader);
    return NULL;
}

static void
read_in_turn(struct one *all, int count)
{
    bool goes_on = true;

    for (int i = 0; i < count; i++)
        open_one(&all[i]);
    while (goes_on) {
        goes_on = false;
        for (int i = 0; i < count; i++) {
            if (!all[i].is_over)
                take(&all[i]);
            goes_on |= !all[i].is_over;
        }
    }
    for (int i = 0; i < count; i++)
        tundish_close(all[i].reader);
}

static void
read_at_once(struct one *all, int count)
{
    pthread_t threads[READERS_MAX];

    for (int i = 0; i < count; i++)
        must(pthread_create(&threads[i], NULL, read_one, &all[i]) == 0);
    for (int i = 0; i < count; i++)
        must(pthread_join(threads[i], NULL) == 0);
}

/* Cuts [SESSION/]GROUP:REPLICA[:TOKEN] up. */
static bool
take_name(char *text, struct one *one)
{
    char *slash = strchr(text, '/'), *colon = strchr(text, ':'), *token;

    if (colon == NULL)
        return false;
    token = strchr(colon + 1, ':');
    if (token != NULL)
        *token = '\0';
    one->token = token != NULL ? token + 1 : NULL;
    if (snprintf(one->name, sizeof one->name, "%s", text) >= NAME_BYTES)
        return false;
    if (slash != NULL && slash < colon) {
        snprintf(one->session, sizeof one->session, "%.*s", (int)(slash - text), text);
        text = slash + 1;
    }
    snprintf(one->group, sizeof one->group, "%.*s", (int)(colon - text), text);
    one->replica = (int32_t)strtol(colon + 1, NULL, 10);
    return true;
}

int
main(int argc, char **argv)
{
    enum { IN_TURN = 256, SURVIVE, STEPS };
    static const struct option options[] = {
        { "in-turn", no_argument, NULL, IN_TURN },
        { "survive", no_argument, NULL, SURVIVE },
        { "steps", required_argument, NULL, STEPS },
        { 0 },
    };
    static struct one all[READERS_MAX];
    struct wishes wishes = { 0 };
    int count = 0, result = 0;

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == '?')
            return 2;
        wishes.in_turn |= option == IN_TURN;
        wishes.survives |= option == SURVIVE;
        if (option == STEPS)
            wishes.steps = strtoull(optarg, NULL, 10);
    }
    for (; optind < argc; optind++, count++) {
        if (count == READERS_MAX || !take_name(argv[optind], &all[count]))
            return 2;
        all[count].wishes = &wishes;
    }
    (wishes.in_turn ? read_in_turn : read_at_once)(all, count);
    for (int i = 0; i < count; i++)
        result |= all[i].status < 0;
    return result;
}
