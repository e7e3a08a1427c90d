/* serve_sessions.c - a session for each stream that is served. */
#include "commands/serve.h"

#include <string.h>
#include <sys/random.h>

#include "batch/inputs.h"
#include "batch/sample.h"
#include "commands/serve_signals.h"
#include "core/clock.h"
#include "core/memory.h"
#include "deliver/wakeup.h"
#include "plan/memory_cost.h"

static bool
is_served(const struct serve *serve, const struct spec_stream *stream)
{
    return serve->pipeline_options.stream == NULL ||
           strcmp(serve->pipeline_options.stream, stream->name) == 0;
}

struct session_options
serve_session_options(const struct serve *serve)
{
    return (struct session_options){
        .file = serve->file,
        .plan = {
            .worker = link_rank(serve->link),
            .worker_count = link_size(serve->link),
            .replicas = serve->pipeline_options.replicas,
            .root_seed = serve->pipeline_options.seed,
            .cache_folder = serve->pipeline_options.cache,
            .catalogue = &serve->catalogue,
            .seen = serve->seen,
            .learned = serve->learned,
            .sample = sample_input,
        },
        .thread_count = serve->thread_count,
        .pin = serve->pin,
        .stop = &serve_stop_signal,
        .reader_count = 2,
        .link = serve->link,
        .peers = serve->peers,
        .stats = serve->stats,
    };
}

/* A few streams have batches ready before trainers come. Where there are many, most may be read by
 * nobody. Nodes agree about steps that all of them deal. */
enum { AWAKE_STREAMS_MAX = 4 };

static tundish_status
open_session(struct serve *serve, const struct spec_stream *stream)
{
    struct session_options options = serve_session_options(serve);
    struct session *session;
    tundish_status status = wakeup_open(&serve->wakeups[serve->session_count]);

    if (status != TUNDISH_OK)
        return status;
    /* Trainers learn from it that the server they come back to is another one. */
    if (getrandom(&options.server_generation, sizeof options.server_generation, 0) < 0)
        options.server_generation = (uint64_t)tnd_clock_ns();
    options.stream = stream;
    options.stream_number = (uint32_t)(stream - serve->file->streams);
    options.sleeps = serve->file->stream_count > AWAKE_STREAMS_MAX && link_size(serve->link) == 1;
    options.state = serve->state_folder;
    options.patience = serve->patience;
    options.helpers = serve->helpers;
    options.wakeup = serve->wakeups[serve->session_count];
    status = session_open(&options, &serve->errors, &session);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "stream '%s'", stream->name);
    serve->sessions[serve->session_count++] = session;
    return hub_add(serve->hub, session_feed(session));
}

/* Check a stream whose readers each get a session of their own later: its errors have to be
 * reported now. */
static tundish_status
check_evaluation(struct serve *serve, const struct spec_stream *stream)
{
    struct session_options options = serve_session_options(serve);
    struct plan *plan = NULL;
    tundish_status status;

    /* Readers of an evaluation are not sharded by node: one plan stands for all of them. */
    options.plan.worker = 0;
    options.plan.worker_count = 1;
    status = plan_open(serve->file, stream, &options.plan, &serve->errors, &plan);
    if (status == TUNDISH_OK)
        status = plan_memory_check(plan);
    if (status == TUNDISH_OK)
        status = inputs_check(plan,
                              &(struct source_files_options){
                                  .root = serve->file->root,
                                  .cache_folder = options.plan.cache_folder,
                                  .remote = &serve->file->remote,
                                  .seen = serve->seen,
                                  .peers = plan_has_owners(plan) ? serve->peers : NULL,
                                  .are_local = stream->distribute.files_local,
                              },
                              &serve_stop_signal);
    if (status != TUNDISH_OK)
        status = tnd_fail_while(status, "stream '%s'", stream->name);
    plan_close(plan);
    return status;
}

tundish_status
serve_make_session(void *user, const struct hub_request *request, struct feed **ret_feed)
{
    return named_sessions_make(((struct serve *)user)->named_sessions, request, ret_feed);
}

static void
open_named_sessions(struct serve *serve)
{
    struct named_sessions_options options = {
        .file = serve->file,
        .stream = serve->pipeline_options.stream,
        .base = serve_session_options(serve),
        .trackers = serve->trackers,
        .hub = serve->hub,
        .abandoned = serve_wake,
    };

    /* A session that begins later sees what is at the store then. */
    options.base.plan.seen = NULL;
    serve->named_sessions = named_sessions_open(&options);
}

tundish_status
serve_open_sessions(struct serve *serve)
{
    tundish_status status = TUNDISH_OK;

    serve->trackers = shard_trackers_open(serve->file, serve->link);
    open_named_sessions(serve);
    serve->sessions = tnd_zalloc(serve->file->stream_count, sizeof(struct session *));
    serve->wakeups = tnd_zalloc(serve->file->stream_count, sizeof(struct wakeup *));
    for (uint32_t i = 0; status == TUNDISH_OK && i < serve->file->stream_count; i++) {
        const struct spec_stream *stream = &serve->file->streams[i];

        if (!is_served(serve, stream))
            continue;
        status = stream->distribute.evaluation_shards != 0 ? check_evaluation(serve, stream)
                                                           : open_session(serve, stream);
        serve->stream_count++;
    }
    if (status == TUNDISH_OK && serve->stream_count == 0)
        return spec_complain(&serve->errors, 0, 0, "there is no stream '%s'",
                             serve->pipeline_options.stream);
    return status;
}
