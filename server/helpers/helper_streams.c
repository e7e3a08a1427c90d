/* helper_streams.c - the streams that servers named: each is opened once for all its connections.
 */
#include <stdlib.h>
#include <string.h>

#include "batch/content_budget.h"
#include "content/content.h"
#include "core/log.h"
#include "core/memory.h"
#include "helpers/helper_serve_private.h"

/* As the pipeline file may say. */
enum { REPLICAS_MAX = 4096 };

static void
close_stream(struct helped *stream)
{
    budget_close(stream->budget);
    allowed_files_close(stream->allowed);
    helper_sums_close(stream->sums);
    source_files_close(stream->files);
    session_spec_close(&stream->spec);
    for (int i = 0; i < 2; i++)
        if (stream->fills[i].columns != NULL)
            fill_close(&stream->fills[i]);
    plan_close(stream->plan);
    free(stream->hello);
    free(stream);
}

static tundish_status
open_plan(const struct helper_server *server, const struct helper_hello *hello,
          struct helped *stream)
{
    const struct spec_stream *found = spec_find_stream(server->options.file, hello->stream);
    struct plan_options options = {
        .worker = hello->worker,
        .worker_count = hello->worker_count,
        .replicas = hello->replicas,
        .root_seed = hello->root_seed,
        .cache_folder = server->options.cache_folder,
        .learned = server->options.learned,
    };
    struct spec_errors errors = { 0 };
    struct place_files files = { 0 };
    tundish_status status;

    if (found == NULL)
        return tnd_fail(TUNDISH_E_DATA, "there is no stream '%s' in this pipeline file",
                        hello->stream);
    if (hello->worker >= hello->worker_count || hello->worker_count > UINT16_MAX ||
        hello->replicas > REPLICAS_MAX)
        return helper_makes_no_sense();
    status = plan_open(server->options.file, found, &options, &errors, &stream->plan);
    if (status != TUNDISH_OK && errors.count > 0) {
        char *text = spec_errors_text(&errors);

        status = tnd_fail(TUNDISH_E_DATA, "%s", text);
        free(text);
    }
    spec_errors_close(&errors);
    if (status == TUNDISH_OK)
        status = place_files_open(stream->plan, &files);
    if (status == TUNDISH_OK && helper_identity(stream->plan, &files) != hello->identity)
        status = tnd_fail(TUNDISH_E_DATA,
                          "its version of Tundish, pipeline file, statistics, vocabularies or data "
                          "differ from the server's");
    place_files_close(&files);
    return status;
}

static tundish_status
open_stream(const struct helper_server *server, struct byte_view from, struct helped **ret_stream)
{
    struct helped *stream = tnd_zalloc(1, sizeof *stream);
    struct helper_hello hello;
    struct source_files_options files = {
        .root = server->options.file->root,
        .cache_folder = server->options.cache_folder,
        .remote = &server->options.file->remote,
    };
    struct tnd_codec *codecs;
    tundish_status status;

    memcpy(&hello, from.data, sizeof hello);
    stream->hello = tnd_alloc(from.size);
    stream->hello_bytes = from.size;
    memcpy(stream->hello, from.data, from.size);
    codecs = (struct tnd_codec *)(void *)(stream->hello + sizeof hello);
    status = open_plan(server, &hello, stream);
    if (status == TUNDISH_OK && stream->plan->element_spec.count != hello.columns)
        status = helper_makes_no_sense();
    for (uint32_t i = 0; status == TUNDISH_OK && i < 1 + (hello.has_packed != 0); i++)
        status = fill_open_stored(stream->plan, codecs + i * hello.columns, &stream->fills[i]);
    if (status == TUNDISH_OK)
        status = session_spec_open(stream->plan, &stream->spec);
    if (status == TUNDISH_OK) {
        files.skip_damage = stream->plan->stream->deliver.skip_errors;
        status = source_files_open(&files, &stream->files);
    }
    if (status == TUNDISH_OK) {
        stream->reads_whole_files = plan_find_whole_files(stream->plan->graph) != NULL;
        stream->sums = helper_sums_open();
        stream->allowed = allowed_files_open(stream->plan);
        stream->budget = content_budget_open(stream->plan, server->options.thread_count);
        *ret_stream = stream;
    } else {
        close_stream(stream);
    }
    return status;
}

/* Under the lock. */
static tundish_status
enter(struct helper_connection *connection, struct byte_view hello)
{
    struct helper_server *server = connection->server;
    struct helped *stream = server->streams;
    tundish_status status = TUNDISH_OK;

    while (stream != NULL && (stream->hello_bytes != hello.size ||
                              memcmp(stream->hello, hello.data, hello.size) != 0))
        stream = stream->next;
    if (stream == NULL) {
        status = open_stream(server, hello, &stream);
        if (status != TUNDISH_OK)
            return status;
        stream->next = server->streams;
        server->streams = stream;
        tnd_log(TND_LOG_NOTICE, "helper", "makes parts of stream '%s'", stream->plan->stream->name);
    }
    stream->users++;
    connection->stream = stream;
    return status;
}

static void
leave(struct helper_connection *connection)
{
    struct helped *stream = connection->stream, **at = &connection->server->streams;

    if (stream == NULL || --stream->users > 0)
        return;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    close_stream(stream);
}

static void
ready_to_make(struct helper_connection *connection)
{
    struct helped *stream = connection->stream;

    lane_slot_init_as(&stream->spec, &connection->slot);
    /* Each column, or buffer; what is before them; a sentence; notes. */
    connection->places = tnd_zalloc(connection->slot.buffer_count + 3, sizeof *connection->places);
    connection->notes = helper_reads_notes(&connection->reads);
    connection->evaluation = (struct evaluation){
        .files = stream->files,
        .scratch = scratch_open(),
        .skip_bad = stream->plan->stream->deliver.skip_errors,
        .file_notes = &connection->notes,
    };
    connection->memory.budget = stream->budget;
    scratch_share(connection->evaluation.scratch, &connection->memory);
}

tundish_status
helper_enter_stream(struct helper_connection *connection, struct byte_view hello)
{
    struct helper_server *server = connection->server;
    tundish_status status;

    pthread_mutex_lock(&server->lock);
    status = enter(connection, hello);
    pthread_mutex_unlock(&server->lock);
    if (status == TUNDISH_OK)
        status = tnd_codec_context_open(true, &connection->context);
    if (status == TUNDISH_OK)
        ready_to_make(connection);
    return status;
}

void
helper_leave_stream(struct helper_connection *connection)
{
    struct helper_server *server = connection->server;

    scratch_close(connection->evaluation.scratch);
    tnd_codec_context_close(connection->context);
    lane_slot_fini(&connection->slot);
    free(connection->files.table);
    free(connection->paths.table);
    free(connection->asked.bytes);
    free(connection->answer.bytes);
    free(connection->reads.bytes);
    free(connection->places);
    pthread_mutex_lock(&server->lock);
    leave(connection);
    pthread_mutex_unlock(&server->lock);
}
