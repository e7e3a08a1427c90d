/* admin_options.h - tundish-admin's command line. */
#ifndef ADMIN_ADMIN_OPTIONS_H
#define ADMIN_ADMIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "guard.h"

struct admin_options {
    const char *socket; /* NULL: the default */
    struct sockaddr_storage address;
    bool is_loopback;
    const char *token_file, *tls_certificate, *tls_key;
    bool behind_proxy;
    const char *hosts[GUARD_HOSTS];
    unsigned host_count;
    int ready_descriptor; /* -1: none */
    const char *chart_path;
};

/* -1: continue. Else the exit status: the help or an error was printed. */
int options_read(int argc, char **argv, struct admin_options *ret_options);

#endif
