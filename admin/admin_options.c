/* admin_options.c - tundish-admin's command line. */
#include "admin_options.h"

#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/beside.h"

static const char help[] =
    "Usage: tundish-admin [OPTION]...\n"
    "Show the state of this node's server: a page for browsers, JSON, and metrics for\n"
    "Prometheus. tundish-admin only reads shared memory and can be stopped at any time.\n"
    "The diagnosis and all rates cover the last 10 seconds, latencies on the page the\n"
    "last minute, charts the last hour.\n"
    "\n"
    "  --socket PATH       the server's socket (default: as for trainers)\n"
    "  --listen HOST:PORT  address to listen on (default 127.0.0.1:8465; port 0: any)\n"
    "  --host NAME[:PORT]  also answer requests with this Host header; may be repeated\n"
    "  --token-file FILE   token required for changes, and for all requests not on\n"
    "                      loopback; the file must have mode 0600\n"
    "  --tls-cert FILE     use TLS with this certificate (PEM) ...\n"
    "  --tls-key FILE      ... and this key\n"
    "  --behind-proxy      a proxy in front uses TLS: allow an address that is not loopback\n"
    "  --chart FILE        the chart library (default: " TUNDISH_CHART_PATH ")\n"
    "  --ready-fd N        write the page's address to this descriptor\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 stopped by SIGTERM, SIGINT or SIGHUP, 2 wrong usage, 3 a system error.\n";

static int
misused(const char *format, ...)
{
    va_list arguments;

    fputs("tundish-admin: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs("\n"
          "see tundish-admin --help\n",
          stderr);
    return 2;
}

/* Read "HOST:PORT" or "[ADDRESS]:PORT". False: it is not an address. */
static bool
read_address(const char *text, struct admin_options *options)
{
    char host[256];
    const char *colon = strrchr(text, ':');
    struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found;
    size_t bytes;

    if (colon == NULL || (size_t)(colon - text) >= sizeof host)
        return false;
    bytes = (size_t)(colon - text);
    memcpy(host, text, bytes);
    host[bytes] = '\0';
    if (host[0] == '[' && bytes > 1 && host[bytes - 1] == ']') {
        host[bytes - 1] = '\0';
        memmove(host, host + 1, bytes - 1);
    }
    if (getaddrinfo(host[0] != '\0' ? host : NULL, colon + 1, &hints, &found) != 0)
        return false;
    /* A host may have several addresses; the first is the resolver's preference. */
    memcpy(&options->address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return true;
}

static bool
is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
    return address->ss_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
}

static int
check(struct admin_options *options)
{
    bool tls = options->tls_certificate != NULL;

    options->is_loopback = is_loopback(&options->address);
    if (tls != (options->tls_key != NULL))
        return misused("--tls-cert and --tls-key must be used together");
    if (!options->is_loopback && options->token_file == NULL)
        return misused("another address than loopback needs --token-file");
    if (!options->is_loopback && !tls && !options->behind_proxy)
        return misused(
            "another address than loopback needs TLS (--tls-cert, --tls-key), or --behind-proxy if "
            "a proxy in front speaks it: a token must not be sent unencrypted");
    return -1;
}

/* The distribution's, or the one that was installed with this program. */
static const char *
default_chart(void)
{
    static char path[PATH_MAX];

    if (TUNDISH_CHART_PATH[0] == '/' || !tnd_beside_program(TUNDISH_CHART_PATH, path))
        return TUNDISH_CHART_PATH;
    return path;
}

int
options_read(int argc, char **argv, struct admin_options *ret_options)
{
    enum {
        SOCKET = 256,
        LISTEN,
        HOST,
        TOKEN,
        CERTIFICATE,
        KEY,
        PROXY,
        CHART,
        READY,
        HELP,
        VERSION
    };
    static const struct option options[] = {
        { "socket", required_argument, NULL, SOCKET },
        { "listen", required_argument, NULL, LISTEN },
        { "host", required_argument, NULL, HOST },
        { "token-file", required_argument, NULL, TOKEN },
        { "tls-cert", required_argument, NULL, CERTIFICATE },
        { "tls-key", required_argument, NULL, KEY },
        { "behind-proxy", no_argument, NULL, PROXY },
        { "chart", required_argument, NULL, CHART },
        { "ready-fd", required_argument, NULL, READY },
        { "help", no_argument, NULL, HELP },
        { "version", no_argument, NULL, VERSION },
        { 0 },
    };

    *ret_options = (struct admin_options){ .ready_descriptor = -1, .chart_path = default_chart() };
    read_address("127.0.0.1:8465", ret_options);
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case SOCKET:
            ret_options->socket = optarg;
            break;
        case LISTEN:
            if (!read_address(optarg, ret_options))
                return misused("--listen wants HOST:PORT, not '%s'", optarg);
            break;
        case HOST:
            if (ret_options->host_count == GUARD_HOSTS - 4)
                return misused("at most %d --host", GUARD_HOSTS - 4);
            ret_options->hosts[ret_options->host_count++] = optarg;
            break;
        case TOKEN:
            ret_options->token_file = optarg;
            break;
        case CERTIFICATE:
            ret_options->tls_certificate = optarg;
            break;
        case KEY:
            ret_options->tls_key = optarg;
            break;
        case PROXY:
            ret_options->behind_proxy = true;
            break;
        case CHART:
            ret_options->chart_path = optarg;
            break;
        case READY:
            ret_options->ready_descriptor = atoi(optarg);
            break;
        case HELP:
            fputs(help, stdout);
            return 0;
        case VERSION:
            puts("tundish-admin " TUNDISH_VERSION_TEXT);
            return 0;
        default:
            return misused("see --help");
        }
    if (optind != argc)
        return misused("'%s': no arguments are taken", argv[optind]);
    return check(ret_options);
}
