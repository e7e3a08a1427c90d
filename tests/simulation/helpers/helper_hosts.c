/* helper_hosts.c - helpers, which make parts in the order in which they are asked, and the
 * connections to them, in the place of helper_line.c and TCP.
 */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "help_private.h"

/* As helper_line.c's and helper_wire.c's. */
static const int64_t CONNECT_NS = 2000000000, LOOK_NS = 20000000;
/* A helper's, to open the stream. */
static const int64_t OPEN_NS = 50000000;
enum { REFERENCE_BYTES = 100, HEAD_BYTES = 64 };

/* A part that was asked for. The line that asked and the thread that makes it have one each. */
struct request {
    struct request *next;
    struct helper_host *host;
    struct helped_server *server;
    unsigned owners;
    uint32_t life; /* of the helper */
    int64_t rows;
    int64_t comes_ns; /* the answer; 0: it is not made */
    pthread_cond_t *answered;
};

struct connection_of {
    struct connection_of *next;
    struct helper_host *host; /* NULL: it is not there */
    uint32_t life;
    struct request *request; /* or NULL */
    pthread_mutex_t lock;
    pthread_cond_t answered;
};

void __wrap_helper_line_open(struct helper_line *line, struct session *session,
                             struct byte_view key, struct helper_sums *sums);
void __wrap_helper_line_close(struct helper_line *line);
tundish_status __wrap_helper_line_call(struct helper_line *line, const char *address,
                                       uint32_t *ret_threads);
void __wrap_helper_line_hang_up(struct helper_line *line);
tundish_status __wrap_helper_line_ask(struct helper_line *line, const struct part *part,
                                      int64_t deadline_ns);
tundish_status __wrap_helper_line_await(struct helper_line *line, int64_t until_ns);
tundish_status __wrap_helper_line_take(struct helper_line *line, const struct part *part,
                                       bool apart, int64_t deadline_ns,
                                       struct helper_made *ret_made);
tundish_status __wrap_helper_line_drop(struct helper_line *line, int64_t deadline_ns);
bool __wrap_helper_line_is_same(const struct helper_line *line, const struct part *part);
tundish_status __wrap_helper_wire_check(const struct helper_wire *wire);
tundish_status __wrap_helper_key(struct byte_view *ret_key);
uint64_t __wrap_helper_identity(const struct plan *plan, const struct place_files *files);
uint32_t __wrap_helper_draw_below(uint32_t bound);

int64_t
help_rows_ns(int64_t rows)
{
    uint64_t ns = (uint64_t)(rows * helps_present->options->row_ns);

    return (int64_t)(ns * 3 / 4 + fibers_draw(ns / 2 + 1));
}

static void
let_go(struct request *request)
{
    if (--request->owners == 0)
        free(request);
}

/* A thread of a helper. */
static void
make_parts(void *argument)
{
    struct helper_host *host = argument;

    for (;;) {
        struct request *request;

        pthread_mutex_lock(&host->lock);
        while (host->first == NULL && !host->is_closed)
            pthread_cond_wait(&host->asked, &host->lock);
        pthread_mutex_unlock(&host->lock);
        request = host->first;
        if (request == NULL)
            break;
        host->first = request->next;
        if (host->first == NULL)
            host->last = &host->first;
        if (request->life == host->life)
            fibers_sleep(help_rows_ns(request->rows));
        if (request->owners == 1 || request->life != host->life) {
            helps_present->result->in_vain++;
        } else {
            uint64_t bytes =
                HEAD_BYTES + (uint64_t)request->rows * helps_present->options->row_bytes;

            request->comes_ns = cable_arrival(&helps_present->options->network, &host->cable,
                                              &request->server->cable, bytes, 0);
            pthread_cond_signal(request->answered);
        }
        let_go(request);
    }
    host->makers--;
}

void
helper_host_open(struct helper_host *host, uint32_t number)
{
    *host = (struct helper_host){
        .node = helps_present->options->nodes + number,
        .is_up = helps_present->options->fault != HELP_LATE,
        .makers = helps_present->options->threads,
        .makes_others = helps_present->options->fault == HELP_OTHER && number % 2 == 0,
    };
    host->last = &host->first;
    pthread_mutex_init(&host->lock, NULL);
    pthread_cond_init(&host->asked, NULL);
    for (uint32_t i = 0; i < helps_present->options->threads; i++)
        fibers_start(host->node, make_parts, host);
}

void
helper_host_come(struct helper_host *host)
{
    host->is_up = true;
}

/* Its connections end. */
void
helper_host_kill(struct helper_host *host)
{
    host->is_up = false;
    host->life++;
    for (struct connection_of *at = helps_present->connections; at != NULL; at = at->next)
        if (at->host == host)
            pthread_cond_signal(&at->answered);
}

void
helper_host_stop(struct helper_host *host)
{
    host->is_silent = true;
    fibers_stop(host->node);
}

void
helper_host_go_on(struct helper_host *host)
{
    host->is_silent = false;
    fibers_go_on(host->node);
}

void
helper_host_close(struct helper_host *host)
{
    helper_host_go_on(host);
    host->is_closed = true;
    pthread_cond_broadcast(&host->asked);
    while (host->makers > 0)
        fibers_sleep(MS);
}

void
helper_hosts_forget(struct helps *job)
{
    for (struct connection_of *next, *at = job->connections; at != NULL; at = next) {
        next = at->next;
        free(at);
    }
}

/* The line's memory for places is of no other use here. */
static struct connection_of *
connection_of(const struct helper_line *line)
{
    return (struct connection_of *)line->places;
}

void
__wrap_helper_line_open(struct helper_line *line, struct session *session, struct byte_view key,
                        struct helper_sums *sums)
{
    struct connection_of *connection = calloc(1, sizeof *connection);

    connection->next = helps_present->connections;
    helps_present->connections = connection;
    pthread_mutex_init(&connection->lock, NULL);
    pthread_cond_init(&connection->answered, NULL);
    *line = (struct helper_line){ .session = session,
                                  .key = key,
                                  .made_sums = sums,
                                  .wire = { .socket = -1, .stop = &session->stop },
                                  .places = (struct iovec *)(void *)connection };
}

void
__wrap_helper_line_close(struct helper_line *line)
{
    line->session = NULL;
}

/* "h7:1" is helper 7. */
static struct helper_host *
host_of(const char *address)
{
    return &helps_present->helpers[strtoul(address + 1, NULL, 10)];
}

static bool
is_stopped(const struct helper_line *line)
{
    return atomic_load(line->wire.stop) != 0;
}

tundish_status
__wrap_helper_line_call(struct helper_line *line, const char *address, uint32_t *ret_threads)
{
    struct connection_of *connection = connection_of(line);
    struct helper_host *host = host_of(address);
    int64_t until_ns = fibers_now_ns() + CONNECT_NS;

    fibers_sleep(2 * helps_present->options->network.latency_ns);
    while (host->is_silent && fibers_now_ns() < until_ns && !is_stopped(line))
        fibers_sleep(LOOK_NS);
    if (host->is_silent || !host->is_up)
        return tnd_fail(TUNDISH_E_SYSTEM, "cannot connect");
    connection->host = host;
    connection->life = host->life;
    fibers_sleep(OPEN_NS);
    if (connection->life != host->life) {
        connection->host = NULL;
        return tnd_fail(TUNDISH_E_SYSTEM, "the connection ended");
    }
    line->wire.socket = 0;
    *ret_threads = helps_present->options->threads;
    return TUNDISH_OK;
}

static bool
is_there(const struct connection_of *connection)
{
    return connection->life == connection->host->life;
}

tundish_status
__wrap_helper_wire_check(const struct helper_wire *wire)
{
    const struct helper_line *line =
        (const struct helper_line *)((const char *)wire - offsetof(struct helper_line, wire));

    return is_there(connection_of(line)) ? TUNDISH_OK
                                         : tnd_fail(TUNDISH_E_SYSTEM, "the connection ended");
}

/* Sleeps until the moment, but no longer than the line waits. */
static tundish_status
await(const struct helper_line *line, struct request *request, int64_t deadline_ns)
{
    struct connection_of *connection = connection_of(line);

    while (request->comes_ns == 0 || fibers_now_ns() < request->comes_ns) {
        int64_t now_ns = fibers_now_ns(), until_ns = now_ns + LOOK_NS;

        if (is_stopped(line) || now_ns >= deadline_ns)
            return tnd_fail(TUNDISH_E_TIMEOUT, "no answer in time");
        if (!is_there(connection))
            return tnd_fail(TUNDISH_E_SYSTEM, "the connection ended");
        if (deadline_ns < until_ns)
            until_ns = deadline_ns;
        if (request->comes_ns != 0) {
            fibers_sleep((request->comes_ns < until_ns ? request->comes_ns : until_ns) - now_ns);
            continue;
        }
        pthread_mutex_lock(&connection->lock);
        pthread_cond_timedwait(
            &connection->answered, &connection->lock,
            &(struct timespec){ .tv_sec = until_ns / SECOND, .tv_nsec = until_ns % SECOND });
        pthread_mutex_unlock(&connection->lock);
    }
    return TUNDISH_OK;
}

static struct request *
ask(struct helper_line *line, const struct part *part)
{
    struct connection_of *connection = connection_of(line);
    struct helper_host *host = connection->host;
    struct request *request = calloc(1, sizeof *request);
    uint64_t bytes = HEAD_BYTES + (uint64_t)(part->end - part->begin) * REFERENCE_BYTES;

    *request = (struct request){
        .host = host,
        .server = helped_server_here(),
        .owners = 2,
        .life = connection->life,
        .rows = part->end - part->begin,
        .answered = &connection->answered,
    };
    line->wire.sent_bytes += bytes;
    helps_present->result->bytes += bytes;
    fibers_sleep(cable_arrival(&helps_present->options->network, &request->server->cable,
                               &host->cable, bytes, 0) -
                 fibers_now_ns());
    *host->last = request;
    host->last = &request->next;
    pthread_cond_signal(&host->asked);
    return request;
}

static void
note_under_way(struct helped_server *server, uint64_t bytes)
{
    const struct helpers *helpers = server->session.helpers;
    uint64_t part = helps_present->options->part_rows * helps_present->options->row_bytes;
    uint64_t times =
        4 * (uint64_t)MS /
        (helps_present->options->part_rows * (uint64_t)helps_present->options->row_ns * 3 / 4);

    /* What is sent at a time takes 4 ms to make, or is a part. */
    part *= times > 32 ? 32 : times > 1 ? times : 1;
    server->under_way += bytes;
    if (server->under_way > helpers->line_count * part)
        complain("%llu bytes are under way to one node", (unsigned long long)server->under_way);
    if (server->under_way > helps_present->result->most_under_way)
        helps_present->result->most_under_way = server->under_way;
}

static uint64_t
bytes_of(const struct request *request)
{
    return (uint64_t)request->rows * helps_present->options->row_bytes;
}

/* The line's request is over. */
static void
end_request(struct connection_of *connection)
{
    struct request *request = connection->request;

    if (request == NULL)
        return;
    request->server->under_way -= bytes_of(request);
    connection->request = NULL;
    let_go(request);
}

void
__wrap_helper_line_hang_up(struct helper_line *line)
{
    end_request(connection_of(line));
    connection_of(line)->host = NULL;
    line->wire.socket = -1;
    line->asked = 0;
}

tundish_status
__wrap_helper_line_ask(struct helper_line *line, const struct part *part, int64_t deadline_ns)
{
    uint64_t rows = (uint64_t)(part->end - part->begin);

    (void)deadline_ns;
    if (connection_of(line)->request != NULL)
        complain("a part is asked for while another is under way");
    line->asked++;
    helps_present->result->asked++;
    helps_present->result->asked_later += help_is_later();
    note_under_way(helped_server_here(), rows * helps_present->options->row_bytes);
    connection_of(line)->request = ask(line, part);
    return TUNDISH_OK;
}

tundish_status
__wrap_helper_line_await(struct helper_line *line, int64_t until_ns)
{
    return await(line, connection_of(line)->request, until_ns);
}

static void
receive(struct helper_line *line, uint64_t bytes)
{
    line->wire.received_bytes += bytes + HEAD_BYTES;
    helps_present->result->bytes += bytes + HEAD_BYTES;
}

tundish_status
__wrap_helper_line_take(struct helper_line *line, const struct part *part, bool apart,
                        int64_t deadline_ns, struct helper_made *ret_made)
{
    struct connection_of *connection = connection_of(line);
    struct request *request = connection->request;

    (void)deadline_ns;
    receive(line, bytes_of(request));
    helps_present->result->compared += apart;
    *ret_made = (struct helper_made){ .busy_ns = 1 };
    if (!apart)
        helped_server_write(request->server, part,
                            request->host->makes_others ? ROW_WRONG : ROW_RIGHT);
    end_request(connection);
    return TUNDISH_OK;
}

tundish_status
__wrap_helper_line_drop(struct helper_line *line, int64_t deadline_ns)
{
    struct connection_of *connection = connection_of(line);
    tundish_status status = await(line, connection->request, deadline_ns);

    if (status == TUNDISH_OK) {
        receive(line, bytes_of(connection->request));
        helps_present->result->in_vain++;
        end_request(connection);
    }
    return status;
}

bool
__wrap_helper_line_is_same(const struct helper_line *line, const struct part *part)
{
    (void)part;
    return !connection_of(line)->host->makes_others;
}

tundish_status
__wrap_helper_key(struct byte_view *ret_key)
{
    *ret_key = (struct byte_view){ 0 };
    return TUNDISH_OK;
}

uint64_t
__wrap_helper_identity(const struct plan *plan, const struct place_files *files)
{
    (void)plan;
    (void)files;
    return 0;
}

uint32_t
__wrap_helper_draw_below(uint32_t bound)
{
    return (uint32_t)fibers_draw(bound);
}
