/* fork.c - the readers of this process, and their copies in a child.
 *
 * A child inherits copies of our descriptors. While it kept the socket open, the server would not
 * notice our death, so the child closes them at once. It may still read batches that were held at
 * the fork (the mapping is shared), but every call on the reader fails.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "client/reader.h"
#include "core/status.h"
#include "shm/channel.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static tundish_reader *readers;
static _Atomic uint64_t process = 1; /* one more in every child than in its parent */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int handlers_error;

/* The lock is held across fork, so that the child inherits a whole list and can unlock it. */
static void
before_fork(void)
{
    pthread_mutex_lock(&list_lock);
}

static void
after_fork_in_parent(void)
{
    pthread_mutex_unlock(&list_lock);
}

/* Another thread of the parent may have been attaching, with its reader's lock held: so this takes
 * no such lock, which nobody would release in the child. The lists can be walked all the same,
 * since an attachment is linked in when it is complete. */
static void
after_fork_in_child(void)
{
    atomic_fetch_add(&process, 1);
    for (tundish_reader *reader = readers; reader != NULL; reader = reader->next) {
        tnd_channel_close_descriptor(&reader->descriptor);
        for (struct attachment *at = reader->attachments; at != NULL; at = at->next) {
            tnd_channel_close_descriptor(&at->socket);
            tnd_channel_close_descriptor(&at->wakeup);
            tnd_channel_close_descriptor(&at->event);
            for (struct mapping *mapping = at->mappings; mapping != NULL; mapping = mapping->next)
                tnd_channel_close_descriptor(&mapping->descriptor);
        }
    }
    /* The child's own readers begin a new list. tundish_close still frees the inherited ones. */
    readers = NULL;
    pthread_mutex_unlock(&list_lock);
}

static void
install_handlers(void)
{
    handlers_error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Compared with a count of forks rather than with getpid, which is a system call for each batch and
 * whose numbers come again. Relaxed: it changes only in a child, before any other thread is there.
 */
bool
tnd_reader_is_ours(const tundish_reader *reader)
{
    return reader->process == atomic_load_explicit(&process, memory_order_relaxed);
}

tundish_status
tnd_reader_check(const tundish_reader *reader)
{
    if (reader == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "the reader is NULL");
    if (!tnd_reader_is_ours(reader))
        return tnd_fail(TUNDISH_E_ARGUMENT, "this reader belongs to the process that opened it: "
                                            "open one in the child");
    return TUNDISH_OK;
}

void
tnd_reader_each(void (*look)(tundish_reader *reader, void *user), void *user)
{
    pthread_mutex_lock(&list_lock);
    for (tundish_reader *reader = readers; reader != NULL; reader = reader->next)
        look(reader, user);
    pthread_mutex_unlock(&list_lock);
}

tundish_status
tnd_reader_register(tundish_reader *reader)
{
    pthread_once(&once, install_handlers);
    if (handlers_error != 0)
        return tnd_fail_errno(handlers_error, "pthread_atfork");
    pthread_mutex_lock(&list_lock);
    reader->process = atomic_load(&process);
    reader->next = readers;
    readers = reader;
    pthread_mutex_unlock(&list_lock);
    return TUNDISH_OK;
}

void
tnd_reader_unregister(tundish_reader *reader)
{
    pthread_mutex_lock(&list_lock);
    for (tundish_reader **link = &readers; *link != NULL; link = &(*link)->next)
        if (*link == reader) {
            *link = reader->next;
            break;
        }
    pthread_mutex_unlock(&list_lock);
}
