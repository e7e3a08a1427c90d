/* python_worker.c - see python_worker.h. */
#include "workers/python_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/printable.h"
#include "core/read_write.h"

/* The first page of an arena has two words, the element that is being made and the interpreter's
 * process; requests follow. */
enum { PAGE = 4096, ROOM_FOR_ANSWER = 1 << 16, LOOK_MS = 50, HELLO_MAX = 1 << 15 };
enum { ELEMENT_WORD, PROCESS_WORD };

static const size_t KEPT_BYTES = (size_t)64 << 20; /* more is given back after each answer */
static const int64_t GRACE_NS = INT64_C(10000000000);
static const uint64_t NO_ELEMENT = UINT64_MAX;

/* The messages, as worker.py has them. Those to it have the job's number above the kind. */
struct message {
    uint64_t kind, at, bytes, answer_at;
};

enum {
    MESSAGE_JOB = 1,
    MESSAGE_ASK,
    MESSAGE_ANSWER,
    MESSAGE_READY,
    MESSAGE_REFUSED,
    MESSAGE_TRY,
    MESSAGE_DROP,
    JOB_SHIFT = 8
};

void
python_job_copy(const struct python_job *job, struct python_job *ret_job)
{
    *ret_job = *job;
    ret_job->name = tnd_strdup(job->name);
    ret_job->python = tnd_strdup(job->python);
    ret_job->folder = tnd_strdup(job->folder);
    ret_job->text = tnd_strdup(job->text);
}

void
python_job_close(struct python_job *job)
{
    free((void *)(uintptr_t)job->name);
    free((void *)(uintptr_t)job->python);
    free((void *)(uintptr_t)job->folder);
    free((void *)(uintptr_t)job->text);
    *job = (struct python_job){ 0 };
}

static size_t
pages(size_t bytes)
{
    return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static tundish_status
map_arena(struct python_worker *worker, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, worker->arena, 0);

    if (memory == MAP_FAILED)
        return tnd_fail_errno(errno, "cannot map %zu bytes for %s", bytes, worker->job->name);
    if (worker->memory != NULL)
        munmap(worker->memory, worker->mapped);
    worker->memory = memory;
    worker->mapped = bytes;
    return TUNDISH_OK;
}

/* The interpreter may let the arena grow as well; nobody can make it smaller. */
static tundish_status
grow_arena(struct python_worker *worker, size_t bytes)
{
    struct stat about;

    if (bytes <= worker->mapped)
        return TUNDISH_OK;
    if (fstat(worker->arena, &about) != 0 ||
        (about.st_size < (off_t)bytes && ftruncate(worker->arena, (off_t)bytes) != 0))
        return tnd_fail_errno(errno, "cannot make room of %zu bytes for %s", bytes,
                              worker->job->name);
    return map_arena(worker, bytes);
}

static tundish_status
open_arena(struct python_worker *worker)
{
    worker->arena = memfd_create("tundish python", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (worker->arena < 0)
        return tnd_fail_errno(errno, "cannot make memory for %s", worker->job->name);
    (void)fcntl(worker->arena, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL);
    return grow_arena(worker, PAGE + ROOM_FOR_ANSWER);
}

/* Variables that libraries with threads of their own read, and those that keep libraries off the
 * GPU. */
static const char *const ENVIRONMENT[] = {
    "OMP_NUM_THREADS=1",        "OPENBLAS_NUM_THREADS=1",       "MKL_NUM_THREADS=1",
    "NUMEXPR_NUM_THREADS=1",    "VECLIB_MAXIMUM_THREADS=1",     "TF_NUM_INTRAOP_THREADS=1",
    "TF_NUM_INTEROP_THREADS=1", "TOKENIZERS_PARALLELISM=false", "RAYON_NUM_THREADS=1",
    "CUDA_VISIBLE_DEVICES=",    "PYTHONUNBUFFERED=1",           NULL,
};

/* The package is the one of the program that started the server, or the interpreter's own. */
static const char LOADER[] =
    "import os, sys\n"
    "for folder in os.environ.get('TUNDISH_PYTHONPATH', '').split(os.pathsep):\n"
    "    if folder and folder not in sys.path: sys.path.append(folder)\n"
    "try: from tundish import worker\n"
    "except ModuleNotFoundError as error: sys.exit(f'{sys.executable} has no module "
    "{error.name!r}: install the package tundish, with numpy, for it, or name another interpreter "
    "by python:')\n"
    "worker.main()\n";

static tundish_status
start_interpreter(struct python_worker *worker, const struct python_worker *forker)
{
    const char *const arguments[] = { worker->job->python, "-P", "-c", LOADER, NULL };
    struct child_command command = { .arguments = arguments,
                                     .environment = ENVIRONMENT,
                                     .folder = worker->job->folder,
                                     .forker = forker != NULL ? forker->socket : 0 };
    int ends[2];
    tundish_status status = child_check(worker->job->python, worker->job->folder);

    if (status != TUNDISH_OK)
        return status;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return tnd_fail_errno(errno, "cannot make a socket for %s", worker->job->name);
    command.input = ends[1];
    status = child_start(&command, &worker->child);
    close(ends[1]);
    worker->socket = ends[0];
    return status;
}

/* Send a message, with a descriptor unless that is -1. A socket that takes none has no other end.
 */
static bool
send_message(const struct python_worker *worker, const struct message *message, int descriptor)
{
    struct iovec bytes = { (void *)(uintptr_t)message, sizeof *message };
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = { 0 };
    struct msghdr header = { .msg_iov = &bytes, .msg_iovlen = 1 };

    if (descriptor >= 0) {
        struct cmsghdr *with;

        header.msg_control = control;
        header.msg_controllen = sizeof control;
        with = CMSG_FIRSTHDR(&header);
        with->cmsg_level = SOL_SOCKET;
        with->cmsg_type = SCM_RIGHTS;
        with->cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(with), &descriptor, sizeof descriptor);
    }
    while (sendmsg(worker->socket, &header, MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            return false;
    return true;
}

static uint64_t
arena_word(const struct python_worker *worker, int word)
{
    return __atomic_load_n((const uint64_t *)(const void *)worker->memory + word, __ATOMIC_RELAXED);
}

static uint64_t
element_at_work(const struct python_worker *worker)
{
    return arena_word(worker, ELEMENT_WORD);
}

/* The memory that is its own: the arena is not. 0: nobody knows. */
static uint64_t
own_memory(pid_t process)
{
    char path[32], text[128];
    unsigned long long size, resident, shared;
    size_t got = 0;
    int file, error;

    snprintf(path, sizeof path, "/proc/%ld/statm", (long)process);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    error = tnd_read(file, text, sizeof text - 1, &got);
    close(file);
    if (error != 0)
        return 0;
    text[got] = '\0';
    if (sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3 || resident < shared)
        return 0;
    return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

bool
python_worker_is_too_large(struct python_worker *worker)
{
    uint64_t limit = worker->job->memory_limit;
    int64_t now_ns = tnd_clock_ns();
    struct timespec used;
    clockid_t clock;

    if (worker->process <= 0)
        return false;
    if (clock_getcpuclockid(worker->process, &clock) == 0 && clock_gettime(clock, &used) == 0)
        worker->cpu_ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
    if (now_ns - worker->looked_ns >= LOOK_MS * INT64_C(1000000)) {
        worker->memory_bytes = own_memory(worker->process);
        worker->looked_ns = now_ns;
    }
    if (limit == 0 || worker->memory_bytes <= limit)
        return false;
    tnd_fail(TUNDISH_E_DATA, "%s: an interpreter has %.0f MiB, and memory allows %.0f MiB",
             worker->job->name, (double)worker->memory_bytes / (1 << 20),
             (double)limit / (1 << 20));
    return true;
}

enum heard { HEARD, HEARD_NOTHING, HEARD_DEATH, HEARD_STOP, HEARD_TOO_LARGE };

/* Wait for a message. NOTHING: no element was finished for `patience_ns`; -1: forever. */
static enum heard
hear(struct python_worker *worker, int64_t patience_ns, const _Atomic int *stop)
{
    int64_t since_ns = tnd_clock_ns();
    uint64_t element = element_at_work(worker);

    for (;;) {
        struct pollfd watched[2] = { { .fd = worker->socket, .events = POLLIN },
                                     { .fd = worker->child.errors, .events = POLLIN } };
        uint64_t now_at;

        if (stop != NULL && atomic_load_explicit(stop, memory_order_relaxed) != 0)
            return HEARD_STOP;
        if (poll(watched, 2, LOOK_MS) == 0)
            kill(worker->child.guard, SIGCONT); /* as child.c does */
        if (watched[1].revents != 0)
            child_listen(&worker->child, worker->job->name);
        if (watched[0].revents == 0 && python_worker_is_too_large(worker))
            return HEARD_TOO_LARGE;
        if ((watched[0].revents & POLLIN) != 0)
            return HEARD;
        if (watched[0].revents != 0)
            return HEARD_DEATH;
        now_at = element_at_work(worker);
        if (now_at != element)
            since_ns = tnd_clock_ns();
        element = now_at;
        if (patience_ns >= 0 && tnd_clock_ns() - since_ns > patience_ns)
            return HEARD_NOTHING;
    }
}

/* A call took too long, and the interpreter has written where it was. */
static void
say_timeout(const struct python_worker *worker)
{
    const struct child *child = &worker->child;
    char *words = tnd_strndup(child->last_words, child->last_word_bytes);
    const char *file = strstr(words, "File \"");
    char where[256];
    char *line;

    line = file != NULL ? tnd_strndup(file, strcspn(file, "\n")) : tnd_strdup("nobody knows where");
    (void)tnd_printable(line, where, sizeof where);
    tnd_fail(TUNDISH_E_DATA, "%s: a call took longer than %g s: %s", worker->job->name,
             (double)worker->job->timeout_ns / 1e9, where);
    free(line);
    free(words);
}

/* Say why it is no more. */
static void
say_death(struct python_worker *worker)
{
    child_listen(&worker->child, worker->job->name);
    if (child_wait(&worker->child, worker->job->name, NULL) == TUNDISH_OK)
        tnd_fail(TUNDISH_E_DATA, "program %s ended by itself", worker->job->name);
    else if (worker->child.ended_by == SIGALRM) /* its own, see worker.py */
        say_timeout(worker);
}

/* Take the message that is there. */
static bool
receive(const struct python_worker *worker, struct message *ret_message)
{
    ssize_t got;

    do
        got = recv(worker->socket, ret_message, sizeof *ret_message, 0);
    while (got < 0 && errno == EINTR);
    return got == sizeof *ret_message;
}

/* Fail with its refusal, a sentence in the arena. */
static tundish_status
fail_refused(struct python_worker *worker, const struct message *message)
{
    char sentence[HELLO_MAX + 1], text[HELLO_MAX + 1];

    if (message->kind != MESSAGE_REFUSED || message->bytes > HELLO_MAX ||
        grow_arena(worker, message->at) != TUNDISH_OK ||
        message->bytes > worker->mapped - message->at)
        return tnd_fail(TUNDISH_E_DATA, "%s: the interpreter says what was not asked",
                        worker->job->name);
    memcpy(sentence, worker->memory + message->at, message->bytes);
    sentence[message->bytes] = '\0';
    (void)tnd_printable(sentence, text, sizeof text);
    return tnd_fail(TUNDISH_E_DATA, "%s", text);
}

struct python_hello *
python_worker_find(const struct python_worker *worker, uint64_t number)
{
    for (size_t i = 0; i < worker->known_count; i++)
        if (worker->known[i].number == number)
            return &worker->known[i];
    return NULL;
}

void
python_worker_drop(struct python_worker *worker, size_t index)
{
    struct message message = { .kind = worker->known[index].number << JOB_SHIFT | MESSAGE_DROP };

    (void)send_message(worker, &message, -1); /* one that is dead has dropped it */
    schema_close(&worker->known[index].described);
    worker->known[index] = worker->known[--worker->known_count];
}

static tundish_status
know(struct python_worker *worker, const struct message *hello)
{
    struct python_hello *known;

    worker->known = tnd_realloc(worker->known, worker->known_count + 1, sizeof *worker->known);
    known = &worker->known[worker->known_count++];
    *known = (struct python_hello){ .number = worker->job->number,
                                    .digest = hello->at,
                                    .length = hello->answer_at };
    if (hello->bytes == 0)
        return TUNDISH_OK;
    if (hello->bytes > worker->mapped - PAGE)
        return tnd_fail(TUNDISH_E_DATA, "%s: its annotation is too long", worker->job->name);
    return python_wire_read_columns(worker->memory + PAGE, hello->bytes, &known->described);
}

/* Its answer to the job: ready, or a sentence in the arena. */
static tundish_status
read_hello(struct python_worker *worker, bool *ret_lives)
{
    struct message hello;
    tundish_status status;

    *ret_lives = receive(worker, &hello);
    if (!*ret_lives) {
        say_death(worker);
        return TUNDISH_E_DATA;
    }
    worker->process = (pid_t)arena_word(worker, PROCESS_WORD);
    if (hello.kind != MESSAGE_READY)
        return fail_refused(worker, &hello);
    status = know(worker, &hello);
    if (status != TUNDISH_OK)
        python_worker_drop(worker, worker->known_count - 1);
    return status;
}

/* `descriptor`: the arena's, for one that has no job yet; -1. */
static tundish_status
introduce(struct python_worker *worker, int descriptor, const _Atomic int *stop, bool *ret_lives)
{
    const struct python_job *job = worker->job;
    size_t bytes = strlen(job->text);
    struct message message = { .kind = job->number << JOB_SHIFT | MESSAGE_JOB,
                               .at = PAGE,
                               .bytes = bytes };
    tundish_status status = grow_arena(worker, pages(PAGE + bytes + ROOM_FOR_ANSWER));

    *ret_lives = false;
    if (status != TUNDISH_OK)
        return status;
    memcpy(worker->memory + PAGE, job->text, bytes);
    if (send_message(worker, &message, descriptor)) {
        switch (hear(worker, -1, stop)) {
        case HEARD:
            return read_hello(worker, ret_lives);
        case HEARD_STOP:
            return tnd_fail(TUNDISH_STOPPED, "stopped while %s was imported", job->name);
        case HEARD_TOO_LARGE:
            return TUNDISH_E_DATA;
        case HEARD_NOTHING:
        case HEARD_DEATH:
            break;
        }
    }
    say_death(worker);
    return TUNDISH_E_DATA;
}

tundish_status
python_worker_start(const struct python_job *job, const struct python_worker *forker,
                    const _Atomic int *stop, struct python_worker *ret_worker)
{
    tundish_status status;
    bool lives;

    *ret_worker = (struct python_worker){ .job = job, .socket = -1, .arena = -1 };
    status = open_arena(ret_worker);
    if (status == TUNDISH_OK)
        status = start_interpreter(ret_worker, forker);
    if (status == TUNDISH_OK)
        status = introduce(ret_worker, ret_worker->arena, stop, &lives);
    if (status != TUNDISH_OK)
        python_worker_stop(ret_worker);
    return status;
}

tundish_status
python_worker_add(struct python_worker *worker, const struct python_job *job,
                  const _Atomic int *stop, bool *ret_lives)
{
    worker->job = job;
    return introduce(worker, -1, stop, ret_lives);
}

/* Write the request. *ret_ask says where it is. */
static tundish_status
write_request(struct python_worker *worker, const struct python_request *request, bool tries,
              struct message *ret_ask)
{
    size_t bytes = python_wire_write(request, NULL);
    size_t answer_at = pages(PAGE + bytes);
    tundish_status status = grow_arena(worker, answer_at + ROOM_FOR_ANSWER);

    if (status != TUNDISH_OK)
        return status;
    __atomic_store_n((uint64_t *)(void *)worker->memory, NO_ELEMENT, __ATOMIC_RELAXED);
    (void)python_wire_write(request, worker->memory + PAGE);
    *ret_ask =
        (struct message){ worker->job->number << JOB_SHIFT | (tries ? MESSAGE_TRY : MESSAGE_ASK),
                          PAGE, bytes, answer_at };
    return TUNDISH_OK;
}

/* Look at its answer. One that it refuses has a status. */
static bool
find_answer(struct python_worker *worker, const struct message *ask, bool tries,
            struct python_answer *ret_answer)
{
    struct message message;
    struct stat about;

    if (!receive(worker, &message))
        return false;
    if (tries && message.kind == MESSAGE_REFUSED) {
        ret_answer->status = fail_refused(worker, &message);
        return true;
    }
    if (message.kind != MESSAGE_ANSWER || message.at != ask->answer_at ||
        fstat(worker->arena, &about) != 0 || (uint64_t)about.st_size < message.at ||
        message.bytes > (uint64_t)about.st_size - message.at ||
        grow_arena(worker, message.at + message.bytes) != TUNDISH_OK)
        return false;
    ret_answer->bytes = worker->memory + message.at;
    ret_answer->size = message.bytes;
    return true;
}

enum python_end
python_worker_ask(struct python_worker *worker, const struct python_job *job,
                  const struct python_request *request, bool tries, const _Atomic int *stop,
                  struct python_answer *ret_answer)
{
    struct message ask;
    enum heard heard;

    worker->job = job;
    *ret_answer = (struct python_answer){ .element = -1 };
    if (worker->mapped > KEPT_BYTES)
        (void)fallocate(worker->arena, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE,
                        (off_t)(worker->mapped - PAGE));
    ret_answer->status = write_request(worker, request, tries, &ask);
    if (ret_answer->status != TUNDISH_OK)
        return PYTHON_FAILED;
    /* It ends itself when a call takes too long, and says where; this is for one that cannot. */
    heard = send_message(worker, &ask, -1)
                ? hear(worker, 2 * worker->job->timeout_ns + GRACE_NS, stop)
                : HEARD_DEATH;
    if (heard == HEARD_STOP) {
        ret_answer->status =
            tnd_fail(TUNDISH_STOPPED, "stopped while %s was called", worker->job->name);
        return PYTHON_FAILED;
    }
    if (heard == HEARD && find_answer(worker, &ask, tries, ret_answer))
        return ret_answer->status == TUNDISH_OK ? PYTHON_ANSWERED : PYTHON_FAILED;
    if (element_at_work(worker) < (uint64_t)request->input->count)
        ret_answer->element = (int64_t)element_at_work(worker);
    if (heard == HEARD_TOO_LARGE)
        return PYTHON_DIED;
    if (heard == HEARD_NOTHING)
        tnd_fail(TUNDISH_E_DATA, "%s does not answer", worker->job->name);
    else
        say_death(worker);
    return PYTHON_DIED;
}

void
python_worker_stop(struct python_worker *worker)
{
    child_stop(&worker->child);
    for (size_t i = 0; i < worker->known_count; i++)
        schema_close(&worker->known[i].described);
    free(worker->known);
    if (worker->memory != NULL)
        munmap(worker->memory, worker->mapped);
    if (worker->socket >= 0)
        close(worker->socket);
    if (worker->arena >= 0)
        close(worker->arena);
    *worker = (struct python_worker){ .socket = -1, .arena = -1 };
}
