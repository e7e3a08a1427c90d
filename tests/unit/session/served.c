/* served.c - a stream served, and read through the SDK. */
#include "session/served.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../remove_tree.h"
#include "core/memory.h"
#include "deliver/wakeup.h"
#include "session/checkpoint/session_state.h"
#include "session/nodes/agreement.h"
#include "stats/stats_writer.h"
#include "unit/cluster.h"

enum { TEXT_BYTES = 4096, TOKEN_BYTES = 2048 };

char served_folder[64];

int
served_make_folder(void **state)
{
    (void)state;
    strcpy(served_folder, "/tmp/tundish-test-XXXXXX");
    return mkdtemp(served_folder) == NULL;
}

int
served_remove_folder(void **state)
{
    (void)state;
    return remove_tree(served_folder);
}

void
served_write(const char *name, const char *text)
{
    char *path = tnd_sprintf("%s/%s", served_folder, name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(path);
}

void
served_remove(const char *name)
{
    char *path = tnd_sprintf("%s/%s", served_folder, name);

    assert_int_equal(unlink(path), 0);
    free(path);
}

static tundish_status
read_pipeline(struct served *served)
{
    const struct served_options *options = &served->options;
    char *text =
        tnd_sprintf("streams: {s: {dataset: [%s], distribute: {%s}, deliver: {%s}}}",
                    options->stages, options->distribute != NULL ? options->distribute : "",
                    options->deliver != NULL ? options->deliver : "");
    tundish_status status = spec_open_text(text, strlen(text), "case.yaml",
                                           options->root != NULL ? options->root : served_folder,
                                           &served->errors, &served->file);

    free(text);
    return status;
}

static tundish_status
join(struct served *served)
{
    if (served->options.link == NULL)
        return link_open(&(struct link_options){ 0 }, &served->own_link);
    return TUNDISH_OK;
}

static tundish_status
reach_agreement(struct served *served)
{
    const struct agreement_options wanted = {
        .file = served->file,
        .plan = &served->session_options.plan,
        .catalogue = &served->catalogue,
        .timeout_ns = PATIENCE_NS,
    };
    struct peers_options peers = {
        .transport = peer_link_transport(served->link, &served->peer_link),
        .catalogue = &served->catalogue,
        .root = served->file->root,
        .cache_folder = served->session_options.plan.cache_folder,
    };
    tundish_status status = agreement_reach(served->link, &wanted, &served->errors);

    if (status == TUNDISH_OK && served->catalogue.is_made)
        status = peers_open(&peers, &served->peers);
    served->session_options.peers = served->peers;
    return status;
}

static tundish_status
make_session(void *user, const struct hub_request *request, struct feed **ret_feed)
{
    return named_sessions_make(((struct served *)user)->named, request, ret_feed);
}

/* Nodes of one process write into the same file, since what is logged goes to one in a process. */
static struct {
    pthread_mutex_t lock;
    struct stats *stats;
    unsigned users;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static tundish_status
share_stats(struct served *served)
{
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&shared.lock);
    if (shared.users == 0)
        status = stats_open(served->path, 8, &shared.stats);
    if (status == TUNDISH_OK) {
        shared.users++;
        served->stats = shared.stats;
    }
    pthread_mutex_unlock(&shared.lock);
    return status;
}

static void
unshare_stats(const struct served *served)
{
    pthread_mutex_lock(&shared.lock);
    if (served->stats != NULL && --shared.users == 0)
        stats_close(shared.stats);
    pthread_mutex_unlock(&shared.lock);
}

static tundish_status
open_hub(struct served *served)
{
    struct hub_config config = {
        .socket_path = served->path, .hello_ns = PATIENCE_NS, .make = make_session, .user = served
    };
    tundish_status status = hub_open(&config, &served->hub);

    if (status == TUNDISH_OK)
        status = share_stats(served);
    if (status == TUNDISH_OK)
        status = wakeup_open(&served->wakeup);
    served->session_options.stats = served->stats;
    served->session_options.wakeup = served->wakeup;
    return status;
}

static void
note_abandoned(void *user)
{
    ((struct served *)user)->abandoned++;
}

static void
open_extras(struct served *served)
{
    struct named_sessions_options options = { .file = served->file,
                                              .base = served->session_options };

    served->trackers = shard_trackers_open(served->file, served->link);
    options.trackers = served->trackers;
    options.hub = served->hub;
    options.abandoned = note_abandoned;
    options.user = served;
    served->named = named_sessions_open(&options);
}

static tundish_status
open_session(struct served *served)
{
    struct session_options options = served->session_options;
    tundish_status status;

    if (served->file->streams[0].distribute.evaluation_shards != 0)
        return TUNDISH_OK;
    options.stream = &served->file->streams[0];
    options.state = served->options.state;
    status = session_open(&options, &served->errors, &served->session);
    if (status == TUNDISH_OK)
        status = session_state_restore(served->session);
    if (status == TUNDISH_OK)
        status = hub_add(served->hub, session_feed(served->session));
    return status;
}

static void
hear(void *user, uint32_t from, const struct link_key *key, struct byte_view bytes)
{
    struct served *served = user;

    if (served->session != NULL)
        session_link_hear(served->session, from, key, bytes);
    named_sessions_link_hear(served->named, from, key, bytes);
}

static tundish_status
start(struct served *served)
{
    tundish_status status = hub_start(served->hub);

    if (status == TUNDISH_OK && served->session != NULL)
        status = session_start(served->session);
    if (status == TUNDISH_OK)
        link_subscribe(served->link, hear, served);
    return status;
}

static tundish_status
open_all(struct served *served)
{
    static _Atomic uint64_t generations;
    tundish_status status = read_pipeline(served);

    if (status == TUNDISH_OK)
        status = join(served);
    if (status != TUNDISH_OK)
        return status;
    served->link = served->options.link != NULL ? served->options.link : served->own_link;
    served->session_options = (struct session_options){
        .file = served->file,
        .plan = { .worker = link_rank(served->link),
                  .worker_count = link_size(served->link),
                  .root_seed = served->options.seed,
                  .cache_folder =
                      served->options.cache != NULL ? served->options.cache : served_folder,
                  .catalogue = &served->catalogue },
        .thread_count = served->options.threads != 0 ? served->options.threads : 2,
        .reader_count = 1,
        .server_generation = ++generations,
        .link = served->link,
    };
    status = reach_agreement(served);
    if (status == TUNDISH_OK)
        status = open_hub(served);
    if (status != TUNDISH_OK)
        return status;
    open_extras(served);
    status = open_session(served);
    return status == TUNDISH_OK ? start(served) : status;
}

tundish_status
served_try(const struct served_options *options, struct served **ret_served)
{
    static _Atomic unsigned count;
    struct served *served = tnd_zalloc(1, sizeof *served);
    tundish_status status;

    served->options = *options;
    if (options->name != NULL)
        snprintf(served->path, sizeof served->path, "%s/%s", served_folder, options->name);
    else
        snprintf(served->path, sizeof served->path, "%s/%u", served_folder, ++count);
    status = open_all(served);
    if (status != TUNDISH_OK) {
        char *text = served->errors.count > 0 ? spec_errors_text(&served->errors)
                                              : tnd_strdup(tnd_error_text());

        served_kill(served);
        status = tnd_fail(status, "%s", text);
        free(text);
        return status;
    }
    *ret_served = served;
    return TUNDISH_OK;
}

struct served *
served_open(const struct served_options *options)
{
    struct served *served;

    if (served_try(options, &served) != TUNDISH_OK)
        fail_msg("%s: %s", options->stages, tnd_error_text());
    return served;
}

struct opening {
    struct served_options options;
    struct served *served;
    pthread_t thread;
    char text[512];
};

static void *
open_in_thread(void *argument)
{
    struct opening *opening = argument;

    if (served_try(&opening->options, &opening->served) != TUNDISH_OK)
        snprintf(opening->text, sizeof opening->text, "%s", tnd_error_text());
    return NULL;
}

void
served_open_all(uint32_t count, const struct served_options *options, struct link *const *links,
                struct served **ret_served)
{
    struct opening openings[CLUSTER_NODES] = { 0 };

    for (uint32_t i = 0; i < count; i++) {
        openings[i].options = *options;
        openings[i].options.link = links[i];
        assert_int_equal(pthread_create(&openings[i].thread, NULL, open_in_thread, &openings[i]),
                         0);
    }
    for (uint32_t i = 0; i < count; i++)
        pthread_join(openings[i].thread, NULL);
    for (uint32_t i = 0; i < count; i++) {
        if (openings[i].served == NULL)
            fail_msg("node %u: %s", i, openings[i].text);
        ret_served[i] = openings[i].served;
    }
}

void
served_kill(struct served *served)
{
    if (served->link != NULL)
        link_subscribe(served->link, NULL, NULL);
    hub_close(served->hub);
    session_close(served->session);
    named_sessions_close(served->named);
    unshare_stats(served);
    wakeup_close(served->wakeup);
    shard_trackers_close(served->trackers);
    peers_close(served->peers);
    catalogue_close(&served->catalogue);
    link_close(served->own_link);
    spec_close(served->file);
    spec_errors_close(&served->errors);
    free(served);
}

void
served_close(struct served *served)
{
    if (served == NULL)
        return;
    link_subscribe(served->link, NULL, NULL);
    named_sessions_stop(served->named);
    if (served->session != NULL) {
        session_stop(served->session);
        session_state_keep(served->session);
        hub_shut(served->hub);
        hub_remove(served->hub, session_feed(served->session));
    }
    hub_stop(served->hub);
    served_kill(served);
}

tundish_status
served_try_reader(const struct served *served, const struct wanted *wanted,
                  tundish_reader **ret_reader)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;

    options.server = served->path;
    options.session = wanted->session;
    options.group = wanted->group;
    options.replica = wanted->replica;
    options.place_token = wanted->token;
    options.server_timeout_ns = PATIENCE_NS;
    return tundish_open(&options, ret_reader);
}

tundish_reader *
served_reader(const struct served *served, const struct wanted *wanted)
{
    tundish_reader *reader = NULL;

    if (served_try_reader(served, wanted, &reader) != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
    return reader;
}

struct text {
    char *bytes;
    size_t room;
    int size;
};

static void __attribute__((format(printf, 2, 3))) append(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    text->size +=
        vsnprintf(text->bytes + text->size, text->room - (size_t)text->size, format, arguments);
    va_end(arguments);
    assert_true((size_t)text->size < text->room);
}

static void
append_numbers(struct text *text, const int64_t *numbers, uint64_t count)
{
    append(text, "[");
    for (uint64_t i = 0; i < count; i++)
        append(text, "%s%" PRId64, i > 0 ? "," : "", numbers[i]);
    append(text, "]");
}

static void
append_value(struct text *text, const tundish_tensor *tensor, uint64_t i)
{
    switch (tensor->dtype) {
    case TUNDISH_INT32:
        append(text, "%" PRId32, ((const int32_t *)tensor->data)[i]);
        break;
    case TUNDISH_INT64:
        append(text, "%" PRId64, ((const int64_t *)tensor->data)[i]);
        break;
    case TUNDISH_FLOAT32:
        append(text, "%g", (double)((const float *)tensor->data)[i]);
        break;
    case TUNDISH_STRING:
        append(text, "%.*s", (int)(tensor->string_offsets[i + 1] - tensor->string_offsets[i]),
               (const char *)tensor->data + tensor->string_offsets[i]);
        break;
    default:
        fail_msg("no words for %s", tundish_dtype_name(tensor->dtype));
    }
}

static void
append_tensor(struct text *text, const tundish_tensor *tensor)
{
    append(text, " %s=", tensor->name);
    for (uint32_t k = 0; k < tensor->ragged_rank; k++)
        append_numbers(text, tensor->row_splits[k], tensor->row_split_counts[k]);
    if (tensor->kind == TUNDISH_SPARSE)
        append_numbers(text, tensor->indices, tensor->element_count * tensor->rank);
    for (uint64_t i = 0; i < tensor->element_count; i++) {
        append(text, "%s", i > 0 ? "," : "");
        append_value(text, tensor, i);
    }
}

void
served_write_text(const tundish_batch *batch, char *text, size_t text_bytes)
{
    struct text out = { .bytes = text, .room = text_bytes };

    append(&out, "%" PRIu64 ".%" PRIu64, batch->epoch, batch->step);
    for (uint32_t i = 0; i < batch->tensor_count; i++) {
        const tundish_tensor *tensor;

        if (tundish_tensor_at(batch, i, &tensor) != TUNDISH_OK)
            fail_msg("%s", tundish_last_error());
        append_tensor(&out, tensor);
    }
}

const char *
served_text(const tundish_batch *batch)
{
    static char text[TEXT_BYTES];

    served_write_text(batch, text, sizeof text);
    return text;
}

const char *
served_next(tundish_reader *reader)
{
    const tundish_batch *batch;
    tundish_status status = tundish_next(reader, PATIENCE_NS, &batch);
    const char *text;

    if (status != TUNDISH_OK)
        return tundish_status_name(status);
    text = served_text(batch);
    tundish_release(reader, batch);
    return text;
}

bool
served_is_quiet(tundish_reader *reader)
{
    const tundish_batch *batch;

    return tundish_next(reader, 0, &batch) == TUNDISH_E_TIMEOUT;
}

void
served_expect(tundish_reader *reader, const char *const *texts)
{
    for (; *texts != NULL; texts++) {
        const char *text = served_next(reader);

        if (strcmp(text, *texts) != 0)
            fail_msg("'%s' instead of '%s' (%s)", text, *texts, tundish_last_error());
    }
}

const char *
served_token(tundish_reader *reader)
{
    static char token[TOKEN_BYTES];
    size_t bytes;

    if (tundish_place_token(reader, token, sizeof token, &bytes) != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
    return token;
}
