/* channel.c - packets over a Unix socket, with descriptors. */
#include "shm/channel.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/magic.h"
#include "core/must.h"
#include "core/status.h"
#include "shm/trust.h"

_Static_assert(sizeof(struct tnd_message_head) == 40, "the message head's layout moved");
_Static_assert(sizeof(struct tnd_message) == TND_MESSAGE_MAX, "a message is one packet");
_Static_assert(sizeof(struct tnd_hello) == 56 + 3 * TND_NAME_BYTES, "HELLO's layout moved");
_Static_assert(sizeof(struct tnd_welcome) == 80 + TND_NAME_BYTES, "WELCOME's layout moved");
_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == TND_SOCKET_PATH_BYTES,
               "one limit for paths");

/* Room for the descriptors of one message, aligned as the kernel wants it. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int) * TND_DESCRIPTORS_MAX)];
};

tundish_status
tnd_channel_send(int socket, struct tnd_message_head head, const void *bytes,
                 const int *descriptors, unsigned descriptor_count)
{
    union control control = { 0 };
    struct iovec parts[2] = {
        { .iov_base = &head, .iov_len = sizeof head },
        { .iov_base = (void *)(uintptr_t)bytes, .iov_len = head.bytes },
    };
    struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
    ssize_t sent;

    must_in_debug(head.bytes <= sizeof((struct tnd_message *)0)->bytes);
    must_in_debug(descriptor_count <= TND_DESCRIPTORS_MAX);
    head.magic = TND_CHANNEL_MAGIC;
    if (descriptor_count > 0) {
        packet.msg_control = control.bytes;
        packet.msg_controllen = CMSG_SPACE(sizeof(int) * descriptor_count);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int) * descriptor_count);
        memcpy(CMSG_DATA(&control.header), descriptors, sizeof(int) * descriptor_count);
    }
    /* DONTWAIT: a trainer that does not read its socket must not stop the server. NOSIGNAL: a peer
     * that died must not kill this process. */
    do
        sent = sendmsg(socket, &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return TUNDISH_OK;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return tnd_fail(TUNDISH_E_TIMEOUT, "the socket is full");
    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
        return tnd_fail(TUNDISH_E_SERVER_GONE, "the other side closed the connection");
    return tnd_fail_errno(errno, "cannot send a message");
}

void
tnd_channel_close_descriptor(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

void
tnd_channel_close_descriptors(struct tnd_descriptors *descriptors)
{
    for (int i = 0; i < TND_DESCRIPTORS_MAX; i++)
        tnd_channel_close_descriptor(&descriptors->at[i]);
}

/* Collect the descriptors of a packet. The kernel never delivers more than fit into our control
 * buffer, but it may deliver none, or several parts. */
static void
take_descriptors(struct msghdr *packet, struct tnd_descriptors *descriptors)
{
    unsigned count = 0;

    for (struct cmsghdr *part = CMSG_FIRSTHDR(packet); part != NULL;
         part = CMSG_NXTHDR(packet, part)) {
        size_t here;

        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        here = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < here; i++) {
            int descriptor;

            memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof descriptor);
            if (count < TND_DESCRIPTORS_MAX)
                descriptors->at[count++] = descriptor;
            else
                close(descriptor);
        }
    }
}

static tundish_status
check_message(const struct tnd_message *message, size_t received, int flags)
{
    if (received < sizeof message->head || (flags & MSG_TRUNC) != 0 ||
        message->head.magic != TND_CHANNEL_MAGIC ||
        message->head.bytes != received - sizeof message->head)
        return tnd_fail(TUNDISH_E_CORRUPT, "received a malformed message");
    return TUNDISH_OK;
}

tundish_status
tnd_channel_receive(int socket, struct tnd_message *message,
                    struct tnd_descriptors *ret_descriptors)
{
    struct tnd_descriptors descriptors = { .at = { -1, -1, -1, -1 } };
    union control control;
    struct iovec part = { .iov_base = message, .iov_len = sizeof *message };
    struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };
    tundish_status status;
    ssize_t received;

    if (ret_descriptors != NULL) {
        packet.msg_control = control.bytes;
        packet.msg_controllen = sizeof control.bytes;
    }
    /* The kernel reports ECONNRESET once, when the other side closed without reading all of our
     * messages. Its own earlier messages, perhaps a BYE, are still to be read. */
    do
        received = recvmsg(socket, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (received < 0 && (errno == EINTR || errno == ECONNRESET));
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return tnd_fail(TUNDISH_E_TIMEOUT, "no message");
    if (received <= 0)
        return tnd_fail(TUNDISH_E_SERVER_GONE, "the other side closed the connection");
    if (ret_descriptors != NULL)
        take_descriptors(&packet, &descriptors);
    status = check_message(message, (size_t)received, packet.msg_flags);
    if (status != TUNDISH_OK)
        tnd_channel_close_descriptors(&descriptors);
    else if (ret_descriptors != NULL)
        *ret_descriptors = descriptors;
    return status;
}

tundish_status
tnd_channel_wait(int socket, int64_t timeout_ns)
{
    int64_t deadline_ns = tnd_clock_deadline_ns(timeout_ns);

    for (;;) {
        struct pollfd waited = { .fd = socket, .events = POLLIN };
        int64_t left_ns = tnd_clock_left_ns(deadline_ns);
        /* Rounded up, so that the last millisecond is not polled in a busy loop. */
        int left_ms = left_ns > INT64_C(1000000000) ? 1000 : (int)((left_ns + 999999) / 1000000);
        int ready = poll(&waited, 1, left_ms);

        if (ready > 0)
            return TUNDISH_OK;
        if (ready < 0 && errno != EINTR)
            return tnd_fail_errno(errno, "cannot poll the server's socket");
        if (left_ns == 0)
            return tnd_fail(TUNDISH_E_TIMEOUT, "no answer in time");
    }
}

/* The default socket's path; as snprintf. */
static int
write_default(char path[TND_SOCKET_PATH_BYTES])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    if (runtime != NULL && runtime[0] == '/')
        return snprintf(path, TND_SOCKET_PATH_BYTES, "%s/tundish/server", runtime);
    return snprintf(path, TND_SOCKET_PATH_BYTES, "/tmp/tundish-%u/server", (unsigned)geteuid());
}

tundish_status
tnd_channel_path(const char *wanted, char path[TND_SOCKET_PATH_BYTES])
{
    int needed;

    if (wanted == NULL || wanted[0] == '\0')
        wanted = getenv("TUNDISH_SERVER");
    if (wanted != NULL && wanted[0] != '\0')
        needed = snprintf(path, TND_SOCKET_PATH_BYTES, "%s", wanted);
    else
        needed = write_default(path);
    if (needed >= TND_SOCKET_PATH_BYTES)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "the socket's path has %d bytes, a Unix socket takes %d: choose a shorter "
                        "one (%.60s...)",
                        needed, TND_SOCKET_PATH_BYTES - 1, path);
    return TUNDISH_OK;
}

tundish_status
tnd_channel_check_folder(const char *path)
{
    char folder[TND_SOCKET_PATH_BYTES];

    if (write_default(folder) >= TND_SOCKET_PATH_BYTES || strcmp(folder, path) != 0)
        return TUNDISH_OK;
    *strrchr(folder, '/') = '\0';
    return tnd_trust_folder(folder);
}

tundish_status
tnd_channel_connect(const char *path, int *ret_socket)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    tundish_status status = tnd_channel_check_folder(path);
    int descriptor;

    must_in_debug(strlen(path) < TND_SOCKET_PATH_BYTES);
    if (status != TUNDISH_OK)
        return status;
    descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return tnd_fail_errno(errno, "cannot make a socket");
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (connect(descriptor, (const struct sockaddr *)&address, sizeof address) != 0) {
        int error = errno;

        close(descriptor);
        if (error == ENOENT || error == ECONNREFUSED || error == EAGAIN || error == EINTR)
            return tnd_fail(TUNDISH_E_SERVER_GONE, "no server listens at %s", path);
        return tnd_fail_errno(error, "cannot connect to %s", path);
    }
    status = tnd_trust_listener(descriptor, path);
    if (status != TUNDISH_OK) {
        close(descriptor);
        return status;
    }
    *ret_socket = descriptor;
    return TUNDISH_OK;
}
