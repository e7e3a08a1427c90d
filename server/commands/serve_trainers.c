/* serve_trainers.c - do the trainers that a launcher starts fit the pipeline file? */
#include "commands/serve.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/plural.h"
#include "link/link.h"

/* The trainers of --expect-trainers, and the streams that they may read. */
struct crew {
    const char *stream; /* NULL: any */
    size_t stream_bytes;
    uint32_t count;

    uint32_t streams;               /* how many */
    const struct spec_stream *most; /* with lanes: the one with most replicas */
    bool takes_any;                 /* one of them is for any number of trainers */
    bool is_broadcast;
    bool has_shared; /* one of them is a queue or a broadcast */
};

/* "STREAM=N" or "N". A stream's name may have an = of its own, so the last one counts. */
static bool
read_crew(const char *text, struct crew *ret_crew)
{
    const char *equals = strrchr(text, '=');
    const char *number = equals != NULL ? equals + 1 : text;
    char *end;
    unsigned long count = strtoul(number, &end, 10);

    *ret_crew = (struct crew){ .stream = equals != NULL ? text : NULL,
                               .stream_bytes = equals != NULL ? (size_t)(equals - text) : 0,
                               .count = (uint32_t)count };
    return *number >= '0' && *number <= '9' && *end == '\0' && count >= 1 && count <= 65536;
}

static bool
reads(const struct crew *crew, const struct spec_stream *stream)
{
    return crew->stream == NULL || (strlen(stream->name) == crew->stream_bytes &&
                                    memcmp(stream->name, crew->stream, crew->stream_bytes) == 0);
}

static uint32_t
replicas_of(const struct serve *serve, const struct spec_stream *stream)
{
    uint32_t asked = serve->pipeline_options.replicas;

    return asked != 0 ? asked : stream->distribute.replicas;
}

/* As tf's create_per_worker_dataset: each trainer may have an iterator of its own. */
static bool
is_of_each(const struct serve *serve, const struct spec_stream *stream)
{
    return stream->distribute.from_function && replicas_of(serve, stream) == 1;
}

static void
add_stream(struct crew *crew, const struct serve *serve, const struct spec_stream *stream)
{
    const struct spec_distribute *distribute = &stream->distribute;

    crew->streams++;
    if (distribute->delivery != DELIVER_LANES || distribute->evaluation_shards != 0) {
        crew->takes_any = true;
        crew->has_shared |= distribute->delivery != DELIVER_LANES;
        crew->is_broadcast |= distribute->delivery == DELIVER_BROADCAST;
        return;
    }
    if (is_of_each(serve, stream))
        crew->takes_any = true;
    if (crew->most == NULL || replicas_of(serve, stream) > replicas_of(serve, crew->most))
        crew->most = stream;
}

/* Trainers must be as many as the replicas of all groups, or of some. More are allowed only where
 * any number may read. */
static bool
fits(const struct crew *crew, const struct serve *serve)
{
    uint32_t replicas;

    if (crew->most == NULL)
        return true;
    replicas = replicas_of(serve, crew->most);
    if (crew->count <= replicas || crew->takes_any)
        return crew->count >= replicas;
    return crew->count % replicas == 0 && crew->count / replicas <= crew->most->distribute.groups;
}

static tundish_status
refuse_crew(struct serve *serve, const struct crew *crew)
{
    const struct spec_distribute *distribute = &crew->most->distribute;
    bool may_name = crew->stream == NULL && crew->streams > 1;

    return spec_complain(&serve->errors, distribute->line, distribute->column,
                         "stream '%s' has replicas: %" PRIu32 ", but the launcher starts %" PRIu32
                         " trainer%s (--replicas %" PRIu32 "): use the same number in both%s",
                         crew->most->name, replicas_of(serve, crew->most), crew->count,
                         TND_PLURAL(crew->count), crew->count,
                         may_name ? ", or name another stream with --stream" : "");
}

/* What the launcher must know: may it start one trainer again alone, or all of a group? And does
 * each need a session or a group of its own? */
static enum serve_trainers
kind_of(const struct crew *crew, const struct serve *serve)
{
    bool many_nodes = link_size(serve->link) > 1;

    if (crew->most == NULL)
        return crew->streams == 1 && crew->is_broadcast ? TRAINERS_GROUPS : TRAINERS_ALONE;
    if (crew->streams == 1 && is_of_each(serve, crew->most) && (crew->count > 1 || !many_nodes))
        return TRAINERS_SESSIONS;
    if (replicas_of(serve, crew->most) > 1 || many_nodes)
        return crew->has_shared ? TRAINERS_MIXED : TRAINERS_TOGETHER;
    return crew->count > 1 || crew->has_shared ? TRAINERS_ALONE : TRAINERS_TOGETHER;
}

tundish_status
serve_expect_trainers(struct serve *serve)
{
    const char *served = serve->pipeline_options.stream;
    struct crew crew;

    if (serve->trainers_text == NULL)
        return TUNDISH_OK;
    if (!read_crew(serve->trainers_text, &crew))
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "--expect-trainers is N or STREAM=N, with N from 1 to 65536, not '%s'",
                        serve->trainers_text);
    for (uint32_t i = 0; i < serve->file->stream_count; i++) {
        const struct spec_stream *stream = &serve->file->streams[i];

        /* With serve --stream the others are not served, so trainers cannot read them. */
        if (reads(&crew, stream) && (served == NULL || strcmp(served, stream->name) == 0))
            add_stream(&crew, serve, stream);
    }
    if (crew.streams == 0)
        return spec_complain(&serve->errors, 0, 0, "there is no stream '%.*s' for the trainers",
                             (int)crew.stream_bytes, crew.stream != NULL ? crew.stream : "");
    if (!fits(&crew, serve))
        return refuse_crew(serve, &crew);
    serve->trainers = kind_of(&crew, serve);
    return TUNDISH_OK;
}

const char *
serve_ready_line(const struct serve *serve)
{
    static const char *const lines[] = {
        [TRAINERS_UNKNOWN] = "ready\n",           [TRAINERS_ALONE] = "ready alone\n",
        [TRAINERS_SESSIONS] = "ready sessions\n", [TRAINERS_GROUPS] = "ready groups\n",
        [TRAINERS_TOGETHER] = "ready together\n", [TRAINERS_MIXED] = "ready mixed\n"
    };

    return lines[serve->trainers];
}
