/* http.c - serve requests with libmicrohttpd. */
#include "http.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connections.h"
#include "core/status.h"
#include "routes.h"

enum {
    BACKLOG = 64,
    IDLE_SECONDS = 15,
    CONNECTION_BYTES = 24 << 10, /* of headers, for one connection */
    ROUTES_MAX = 64,
    HEADERS_MAX = 64
};

/* GnuTLS' notation for TLS 1.2 and later. */
static const char TLS_PRIORITIES[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

/* A rendered body. It is good until the watcher takes its next snapshot. */
struct rendered {
    uint64_t tick;
    int rank; /* of a NODE */
    unsigned status;
    struct MHD_Response *response;
};

struct http {
    const struct admin *admin;
    struct MHD_Daemon *daemon;
    struct rendered rendered[ROUTES_MAX]; /* by route; used by the listener's thread only, as is */
    struct connections connections;
};

/* The page loads nothing from elsewhere and cannot be framed; nothing is kept in caches. */
static const char *const headers[][2] = {
    { "X-Content-Type-Options", "nosniff" },
    { "Referrer-Policy", "no-referrer" },
    { "Cache-Control", "no-store" },
    { "Cross-Origin-Resource-Policy", "same-origin" },
    { "Cross-Origin-Opener-Policy", "same-origin" },
    { "X-Frame-Options", "DENY" },
    { "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
      "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
};

/* Takes the text, which malloc made. */
static struct MHD_Response *
make_response(char *text, size_t bytes, const char *type)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);

    if (response == NULL) {
        free(text);
        return NULL;
    }
    MHD_add_response_header(response, "Content-Type", type);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    return response;
}

static enum MHD_Result
send_once(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response)
{
    enum MHD_Result sent;

    if (response == NULL)
        return MHD_NO;
    sent = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return sent;
}

/* Refuse with a sentence as JSON. The sentence is a constant and quotes nothing of the request. */
static enum MHD_Result
refuse(struct MHD_Connection *connection, unsigned status, const char *sentence, const char *allow)
{
    struct MHD_Response *response;
    char *text = NULL;
    int bytes = asprintf(&text, "{\"error\": \"%s\"}\n", sentence);

    if (bytes < 0)
        return MHD_NO;
    response = make_response(text, (size_t)bytes, "application/json");
    if (response != NULL && status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (response != NULL && allow != NULL)
        MHD_add_response_header(response, "Allow", allow);
    if (response != NULL) /* the rest of the connection is not read */
        MHD_add_response_header(response, "Connection", "close");
    return send_once(connection, status, response);
}

static struct MHD_Response *
render(const struct http *http, const struct route *route, int rank, unsigned *ret_status)
{
    struct route asked = *route;
    char *text = NULL;
    size_t bytes = 0;
    FILE *body = open_memstream(&text, &bytes);

    if (body == NULL)
        return NULL;
    if (route->kind == ROUTE_NODE)
        asked.number = rank;
    *ret_status = route->answer(http->admin, &asked, body);
    if (fclose(body) != 0) {
        free(text);
        return NULL;
    }
    return make_response(text, bytes, route->type);
}

/* Send the page or the metrics. They are rendered for the first request after a change. */
static enum MHD_Result
send_rendered(struct http *http, struct MHD_Connection *connection, const struct route *route,
              int rank)
{
    struct rendered *rendered = &http->rendered[route - route_at(0)];
    /* 0 stands for a body that was never rendered. */
    uint64_t tick = route->kind == ROUTE_PAGE ? 1 : watcher_tick(http->admin->watcher) + 1;

    /* A response is counted by its users, so a slow reader keeps the old one until it is sent. */
    if (rendered->tick != tick || rendered->rank != rank) {
        struct MHD_Response *fresh = render(http, route, rank, &rendered->status);

        if (fresh == NULL)
            return MHD_NO;
        if (rendered->response != NULL)
            MHD_destroy_response(rendered->response);
        rendered->response = fresh;
        rendered->tick = tick;
        rendered->rank = rank;
    }
    return MHD_queue_response(connection, rendered->status, rendered->response);
}

static enum MHD_Result
answer(struct http *http, struct MHD_Connection *connection, const struct route *route, int rank)
{
    /* Not for control requests: they wait for the server, up to two seconds, and must not hold up
     * the watcher. */
    bool locked =
        route->kind == ROUTE_METRICS || route->kind == ROUTE_NODE || route->kind == ROUTE_NOW;
    enum MHD_Result sent;
    unsigned status = 500;

    if (locked)
        watcher_lock(http->admin->watcher);
    if (route->kind != ROUTE_NOW && route->kind != ROUTE_CONTROL) {
        sent = send_rendered(http, connection, route, rank);
    } else {
        struct MHD_Response *response = render(http, route, rank, &status);

        sent = send_once(connection, status, response);
    }
    if (locked)
        watcher_unlock(http->admin->watcher);
    return sent;
}

struct collected {
    struct guard_request request;
    unsigned header_count;
};

static enum MHD_Result
collect_header(void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct collected *collected = context;
    struct guard_request *request = &collected->request;
    const struct {
        const char *key;
        const char **value;
    } wanted[] = {
        { "Host", &request->host },
        { "Origin", &request->origin },
        { "Sec-Fetch-Site", &request->fetch_site },
        { "Sec-Fetch-Mode", &request->fetch_mode },
        { "Authorization", &request->authorization },
        { "Content-Length", &request->content_length },
        { "Transfer-Encoding", &request->transfer_encoding },
    };

    (void)kind;
    collected->header_count++;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (strcasecmp(wanted[i].key, key) != 0)
            continue;
        /* A second header is refused: a proxy may have judged the first, and this code the last. */
        request->has_duplicate |= *wanted[i].value != NULL;
        *wanted[i].value = value != NULL ? value : "";
    }
    return MHD_YES;
}

static bool
has_body(const struct guard_request *request)
{
    return request->transfer_encoding != NULL ||
           (request->content_length != NULL && strcmp(request->content_length, "0") != 0);
}

/* The headers are here. 0: the request may be answered; else the status and sentence to refuse
 * with. */
static unsigned
check(const struct http *http, struct MHD_Connection *connection, const char *method,
      const struct route *route, const char **ret_sentence)
{
    struct collected collected = { .request.method = method };

    collected.request.is_public =
        route != NULL && (route->kind == ROUTE_PAGE || route->kind == ROUTE_NOW);
    collected.request.changes_something =
        route != NULL ? route->kind == ROUTE_CONTROL : strcmp(method, "GET") != 0;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, collect_header, &collected);
    *ret_sentence = "too many headers";
    if (collected.header_count > HEADERS_MAX)
        return MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
    /* A request with both lengths, or one twice, may be an attempt to smuggle another: the guard
     * refuses it by its own sentence. */
    *ret_sentence = "a request must not have a body";
    if (has_body(&collected.request) && !collected.request.has_duplicate &&
        (collected.request.content_length == NULL || collected.request.transfer_encoding == NULL))
        return MHD_HTTP_CONTENT_TOO_LARGE;
    return guard_check(&http->admin->guard, &collected.request, ret_sentence);
}

static enum MHD_Result
handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
       const char *version, const char *upload, size_t *upload_bytes, void **request_state)
{
    static char headers_seen;
    struct http *http = user;
    int rank;
    const struct route *route = route_find(url, &rank);
    const char *sentence;
    bool is_read = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    unsigned status;

    (void)version;
    (void)upload;
    /* The library calls once after the headers and again after the body: refuse before the body. */
    if (*request_state == NULL) {
        status = check(http, connection, method, route, &sentence);
        if (status != 0)
            return refuse(connection, status, sentence, NULL);
        *request_state = &headers_seen;
        return MHD_YES;
    }
    if (*upload_bytes != 0) {
        *upload_bytes = 0; /* refused already, by its headers */
        return MHD_NO;
    }
    if (route == NULL)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "not found", NULL);
    if (route->kind == ROUTE_CONTROL ? strcmp(method, "POST") != 0 : !is_read)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "method not allowed",
                      route->kind == ROUTE_CONTROL ? "POST" : "GET, HEAD");
    return answer(http, connection, route, rank);
}

static void
watch_connection(void *user, struct MHD_Connection *connection, void **socket_context,
                 enum MHD_ConnectionNotificationCode code)
{
    struct http *http = user;
    const union MHD_ConnectionInfo *info;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *socket_context = connections_add(&http->connections, info->connect_fd);
    } else {
        connections_remove(&http->connections, *socket_context);
        *socket_context = NULL;
    }
}

static void
note_answer(void *user, struct MHD_Connection *connection, void **request_state,
            enum MHD_RequestTerminationCode code)
{
    struct http *http = user;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    (void)request_state;
    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK && info != NULL)
        connections_answered(&http->connections, info->socket_context);
}

/* The library logs malformed requests. Any client could fill the log with them, so they are
 * dropped. */
static void
say_nothing(void *user, const char *format, va_list arguments)
{
    (void)user;
    (void)format;
    (void)arguments;
}

tundish_status
http_listen(const struct sockaddr_storage *address, int *ret_socket, uint16_t *ret_port)
{
    struct sockaddr_storage bound = *address;
    socklen_t bytes =
        address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int listener = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int yes = 1;

    if (listener < 0)
        return tnd_fail_errno(errno, "cannot listen");
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (const struct sockaddr *)address, bytes) != 0 ||
        listen(listener, BACKLOG) != 0 ||
        getsockname(listener, (struct sockaddr *)&bound, &bytes) != 0) {
        int error = errno;
        char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";

        close(listener);
        getnameinfo((const struct sockaddr *)address, bytes, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
        return tnd_fail_errno(error,
                              "cannot listen at port %s of %s (--listen HOST:PORT says where; port "
                              "0 is any)",
                              port, host);
    }
    *ret_socket = listener;
    *ret_port = ntohs(bound.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&bound)->sin6_port
                                                  : ((const struct sockaddr_in *)&bound)->sin_port);
    return TUNDISH_OK;
}

tundish_status
http_open(const struct http_options *options, const struct admin *admin, struct http **ret_http)
{
    struct http *http = calloc(1, sizeof *http);
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->key },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES },
        { MHD_OPTION_END, 0, NULL },
    };

    if (http == NULL) {
        close(options->socket);
        return tnd_fail(TUNDISH_E_MEMORY, "no memory");
    }
    http->admin = admin;
    if (options->certificate != NULL)
        flags |= MHD_USE_TLS;
    else
        tls[0].option = MHD_OPTION_END;
    http->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, handle, http, MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL,
        MHD_OPTION_LISTEN_SOCKET, options->socket, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_NOTIFY_CONNECTION, watch_connection, http, MHD_OPTION_NOTIFY_COMPLETED,
        note_answer, http, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (http->daemon == NULL) {
        int error = errno;

        free(http);
        close(options->socket);
        return tnd_fail_errno(error, "cannot start to listen");
    }
    *ret_http = http;
    return TUNDISH_OK;
}

void
http_close(struct http *http)
{
    if (http == NULL)
        return;
    MHD_stop_daemon(http->daemon);
    for (unsigned i = 0; i < ROUTES_MAX; i++)
        if (http->rendered[i].response != NULL)
            MHD_destroy_response(http->rendered[i].response);
    free(http);
}
