/* fake_cuda.c - a libcuda.so.1 of one device, for machines without a GPU (fake_cuda.h). */
#include "cuda/fake_cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/expand.h"

#define EXPORT __attribute__((visibility("default")))
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, LAUNCH_FAILED = 719, UNKNOWN = 999 };
enum { LATEST_US = 300, NOISE = 0xA5, READ_ONLY_SUPPORTED = 113, READ_ONLY = 8 };
enum { NOT_SUPPORTED = 801, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713 };
enum {
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_ISOLATION = 905,
    CAPTURED_EVENT = 907
};

struct CUctx_st {
    int retained;
};

struct CUevent_st {
    uint64_t recorded, completed; /* how often */
    bool is_timed;
    bool is_captured; /* last recorded in a stream that was captured */
};

enum { REGISTRATIONS = 16 };
struct registration {
    const uint8_t *bytes; /* NULL: free */
    size_t byte_count;
};

enum op_kind { OP_COPY, OP_RECORD, OP_WAIT, OP_EXPAND };

struct op {
    struct op *next;
    enum op_kind kind;
    void *to;
    const void *from; /* OP_EXPAND: the table */
    size_t bytes;     /* OP_EXPAND: its entries */
    struct CUevent_st *event;
    uint64_t ticket;
    unsigned blocks;
};

struct CUstream_st {
    struct CUstream_st *next; /* of all */
    struct CUctx_st *context;
    pthread_t thread;
    struct op *head, **tail;
    bool is_busy, ends;
    bool is_blocking, is_captured;
    unsigned seed;
    int waits, records; /* that it was given */
};

static struct CUctx_st primary, other;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of streams, events and all below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct CUstream_st *streams, *default_stream, *thread_stream, *stranger;
static int alive, calls, fail_in;
static int fails_with = UNKNOWN;
static bool is_lost_after, is_capture_global, is_spoiled;
static _Atomic bool is_lost; /* nothing is done any more */
/* Held for writing while the device is lost: what is being done ends before the program is told. */
static pthread_rwlock_t doing = PTHREAD_RWLOCK_INITIALIZER;
static struct registration registrations[REGISTRATIONS];
static enum fake_cuda_register registers;
static size_t copied_registered;
static _Atomic unsigned latest_us = LATEST_US;
static char fail_symbol[64];
static unsigned seeds = 1;
static _Thread_local struct CUctx_st *stack[8];
static _Thread_local int depth, capture_mode;

__attribute__((constructor)) static void
read_environment(void)
{
    const char *fail = getenv("FAKE_CUDA_FAIL"), *seed = getenv("FAKE_CUDA_SEED");
    const char *how = getenv("FAKE_CUDA_REGISTER");
    char lost[8] = "";

    if (how != NULL)
        registers = (enum fake_cuda_register)atoi(how);

    if (seed != NULL)
        seeds = (unsigned)atoi(seed);
    if (fail != NULL && sscanf(fail, "%63[^:]:%d:%7s", fail_symbol, &fail_in, lost) >= 2)
        is_lost_after = strcmp(lost, "lost") == 0;
    fails_with = strcmp(lost, "memory") == 0 ? OUT_OF_MEMORY : UNKNOWN;
}

EXPORT void
fake_cuda_fail_at(const char *symbol, int n, int lost)
{
    pthread_mutex_lock(&lock);
    snprintf(fail_symbol, sizeof fail_symbol, "%s", symbol);
    fail_in = n;
    is_lost_after = lost;
    is_lost = false;
    pthread_mutex_unlock(&lock);
}

EXPORT int
fake_cuda_alive(void)
{
    int count;

    pthread_mutex_lock(&lock);
    count = alive + primary.retained;
    pthread_mutex_unlock(&lock);
    return count;
}

EXPORT void
fake_cuda_late(unsigned us)
{
    latest_us = us != 0 ? us : LATEST_US;
}

EXPORT void
fake_cuda_register(enum fake_cuda_register what)
{
    pthread_mutex_lock(&lock);
    registers = what;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

EXPORT void
fake_cuda_registered(size_t *ret_bytes, size_t *ret_copied)
{
    size_t bytes = 0;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < REGISTRATIONS; i++)
        bytes += registrations[i].bytes != NULL ? registrations[i].byte_count : 0;
    *ret_bytes = bytes;
    *ret_copied = copied_registered;
    pthread_mutex_unlock(&lock);
}

EXPORT int
fake_cuda_calls(void)
{
    int count;

    pthread_mutex_lock(&lock);
    count = calls;
    pthread_mutex_unlock(&lock);
    return count;
}

/* Count a call, and fail it if it is its turn. Those that end something do not fail: a test asks of
 * failures whether all is given back. */
static cu_result
begin_call(const char *symbol, bool needs_context, bool spoils)
{
    cu_result result = CU_SUCCESS;

    pthread_mutex_lock(&lock);
    calls++;
    if (spoils && is_capture_global && capture_mode != CU_CAPTURE_RELAXED)
        is_spoiled = true;
    if (fail_in > 0 && (strcmp(fail_symbol, "any") == 0 || strcmp(fail_symbol, symbol) == 0) &&
        --fail_in == 0) {
        result = fails_with;
        pthread_rwlock_wrlock(&doing);
        is_lost = is_lost_after;
        pthread_rwlock_unlock(&doing);
    } else if (is_lost) {
        result = LAUNCH_FAILED;
    } else if (needs_context && (depth == 0 || stack[depth - 1] == NULL)) {
        result = CU_INVALID_CONTEXT;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

#define BEGIN(needs_context, spoils)                                                               \
    do {                                                                                           \
        cu_result begun = begin_call(__func__, needs_context, spoils);                             \
        if (begun != CU_SUCCESS)                                                                   \
            return begun;                                                                          \
    } while (0)

static void
count_alive(int more)
{
    pthread_mutex_lock(&lock);
    alive += more;
    pthread_mutex_unlock(&lock);
}

static void
do_op(struct op *op)
{
    switch (op->kind) {
    case OP_COPY:
        memcpy(op->to, op->from, op->bytes);
        break;
    case OP_EXPAND:
        for (unsigned block = 0; block < op->blocks; block++)
            for (unsigned thread = 0; thread < EXPAND_THREADS; thread++)
                expand_group(op->from, (uint32_t)op->bytes, block, thread);
        break;
    case OP_RECORD:
    case OP_WAIT:
        break;
    }
}

static void *
run_stream(void *user)
{
    struct CUstream_st *stream = user;

    pthread_mutex_lock(&lock);
    for (;;) {
        struct op *op = stream->head;

        if (op == NULL && stream->ends)
            break;
        if (op == NULL) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        if (op->kind == OP_WAIT && op->event->completed < op->ticket) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        stream->head = op->next;
        if (stream->head == NULL)
            stream->tail = &stream->head;
        stream->is_busy = true;
        pthread_mutex_unlock(&lock);
        usleep((useconds_t)((unsigned)rand_r(&stream->seed) % latest_us));
        pthread_rwlock_rdlock(&doing);
        if (!atomic_load(&is_lost))
            do_op(op);
        pthread_rwlock_unlock(&doing);
        pthread_mutex_lock(&lock);
        if (op->kind == OP_RECORD && op->event->completed < op->ticket)
            op->event->completed = op->ticket;
        stream->is_busy = false;
        pthread_cond_broadcast(&changed);
        free(op);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The lock is held. */
static struct CUstream_st *
make_stream(struct CUctx_st *context)
{
    struct CUstream_st *stream = calloc(1, sizeof *stream);

    stream->context = context;
    stream->tail = &stream->head;
    stream->seed = seeds++;
    stream->next = streams;
    streams = stream;
    pthread_create(&stream->thread, NULL, run_stream, stream);
    return stream;
}

/* The default streams have the handles NULL and 1, and 2 for the thread's own, of which there is
 * one here. The lock is held. */
static struct CUstream_st *
stream_of(struct CUstream_st *stream)
{
    struct CUstream_st **named = (uintptr_t)stream == 2 ? &thread_stream : &default_stream;

    if ((uintptr_t)stream > 2)
        return stream;
    if (*named == NULL)
        *named = make_stream(&primary);
    return *named;
}

EXPORT int
fake_cuda_uses(cu_stream handle, int of_waits)
{
    struct CUstream_st *stream;
    int count;

    pthread_mutex_lock(&lock);
    stream = stream_of(handle);
    count = of_waits ? stream->waits : stream->records;
    pthread_mutex_unlock(&lock);
    return count;
}

/* The lock is held. */
static cu_result
spoil(cu_result result)
{
    is_spoiled = true;
    return result;
}

/* A stream that is captured; NULL: none. The lock is held. */
static struct CUstream_st *
captured_stream(bool blocks)
{
    struct CUstream_st *at = streams;

    while (at != NULL && !(at->is_captured && (at->is_blocking || !blocks)))
        at = at->next;
    return at;
}

/* The lock is held. */
static bool
breaks_a_capture(const struct CUstream_st *stream)
{
    return stream == default_stream && captured_stream(true) != NULL;
}

/* Whether a stream may be given this, which a graph keeps if it is captured. The lock is held. */
static cu_result
check_capture(const struct CUstream_st *stream, const struct op *op)
{
    if (breaks_a_capture(stream))
        return spoil(CU_CAPTURE_IMPLICIT);
    if (op->kind == OP_WAIT && op->event->is_captured != stream->is_captured)
        return spoil(stream->is_captured ? CAPTURE_ISOLATION : CAPTURED_EVENT);
    if (op->kind == OP_RECORD)
        op->event->is_captured = stream->is_captured;
    return CU_SUCCESS;
}

static cu_result
enqueue(struct CUstream_st *handle, struct op op)
{
    struct op *queued = malloc(sizeof *queued);
    struct CUstream_st *stream;
    cu_result result = CU_INVALID_HANDLE;

    pthread_mutex_lock(&lock);
    stream = stream_of(handle);
    if (stream->context == stack[depth - 1])
        result = check_capture(stream, &op);
    if (result != CU_SUCCESS || stream->is_captured) {
        pthread_mutex_unlock(&lock);
        free(queued);
        return result;
    }
    if (op.kind == OP_RECORD)
        op.ticket = ++op.event->recorded;
    if (op.kind == OP_WAIT)
        op.ticket = op.event->recorded;
    stream->waits += op.kind == OP_WAIT;
    stream->records += op.kind == OP_RECORD;
    *queued = op;
    queued->next = NULL;
    *stream->tail = queued;
    stream->tail = &queued->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return CU_SUCCESS;
}

/* The lock is held. */
static void
drain(struct CUstream_st *stream)
{
    while (stream->head != NULL || stream->is_busy)
        pthread_cond_wait(&changed, &lock);
}

EXPORT cu_result
cuInit(unsigned flags)
{
    const char *result = getenv("FAKE_CUDA_INIT");

    (void)flags;
    BEGIN(false, false);
    return result != NULL ? atoi(result) : CU_SUCCESS;
}

EXPORT cu_result
cuDriverGetVersion(int *version)
{
    const char *told = getenv("FAKE_CUDA_VERSION");

    BEGIN(false, false);
    *version = told != NULL ? atoi(told) : 13000;
    return CU_SUCCESS;
}

EXPORT cu_result
cuDeviceGetCount(int *count)
{
    BEGIN(false, false);
    *count = 1;
    return CU_SUCCESS;
}

EXPORT cu_result
cuDeviceGet(cu_device *device, int ordinal)
{
    BEGIN(false, false);
    *device = ordinal;
    return CU_SUCCESS;
}

EXPORT cu_result
cuDeviceGetName(char *name, int bytes, cu_device device)
{
    (void)device;
    BEGIN(false, false);
    snprintf(name, (size_t)bytes, "a stand-in for a GPU");
    return CU_SUCCESS;
}

EXPORT cu_result
cuDeviceGetAttribute(int *value, int attribute, cu_device device)
{
    (void)device;
    BEGIN(false, false);
    pthread_mutex_lock(&lock);
    *value = attribute == READ_ONLY_SUPPORTED && registers != FAKE_CUDA_NEEDS_WRITING;
    pthread_mutex_unlock(&lock);
    return CU_SUCCESS;
}

EXPORT cu_result
cuDevicePrimaryCtxRetain(cu_context *context, cu_device device)
{
    (void)device;
    BEGIN(false, false);
    pthread_mutex_lock(&lock);
    primary.retained++;
    pthread_mutex_unlock(&lock);
    *context = &primary;
    return CU_SUCCESS;
}

EXPORT cu_result
cuDevicePrimaryCtxRelease_v2(cu_device device)
{
    (void)device;
    pthread_mutex_lock(&lock);
    primary.retained--;
    pthread_mutex_unlock(&lock);
    return CU_SUCCESS;
}

EXPORT cu_result
cuCtxPushCurrent_v2(cu_context context)
{
    BEGIN(false, false);
    stack[depth++] = context;
    return CU_SUCCESS;
}

EXPORT cu_result
cuCtxPopCurrent_v2(cu_context *context)
{
    if (depth == 0)
        return CU_INVALID_CONTEXT;
    *context = stack[--depth];
    return CU_SUCCESS;
}

static cu_result
allocate(void **memory, size_t bytes)
{
    if (bytes == 0)
        return INVALID_VALUE;
    *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (*memory == NULL)
        return OUT_OF_MEMORY;
    memset(*memory, NOISE, bytes);
    count_alive(1);
    return CU_SUCCESS;
}

EXPORT cu_result
cuMemAlloc_v2(cu_address *address, size_t bytes)
{
    void *memory = NULL;
    cu_result result;

    BEGIN(true, true);
    result = allocate(&memory, bytes);
    *address = (cu_address)(uintptr_t)memory;
    return result;
}

/* Freeing waits for all that the device has to do, as the driver's does. A stream may wait for
 * another, so they are looked at until all rest at once. */
static void
drain_all(void)
{
    pthread_mutex_lock(&lock);
    for (struct CUstream_st *at = streams; at != NULL;) {
        bool rests = at->head == NULL && !at->is_busy;

        if (!rests)
            drain(at);
        at = rests ? at->next : streams;
    }
    pthread_mutex_unlock(&lock);
}

EXPORT cu_result
cuMemFree_v2(cu_address address)
{
    drain_all();
    free((void *)(uintptr_t)address);
    count_alive(-1);
    return CU_SUCCESS;
}

EXPORT cu_result
cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    BEGIN(true, true);
    return allocate(memory, bytes);
}

EXPORT cu_result
cuMemFreeHost(void *memory)
{
    free(memory);
    count_alive(-1);
    return CU_SUCCESS;
}

/* The registration that these bytes lie in, or touch. The lock is held. */
static struct registration *
registration_at(const void *from, size_t byte_count)
{
    const uint8_t *bytes = from;

    for (int i = 0; i < REGISTRATIONS; i++) {
        struct registration *at = &registrations[i];

        if (at->bytes != NULL && bytes < at->bytes + at->byte_count &&
            at->bytes < bytes + byte_count)
            return at;
    }
    return NULL;
}

/* As the kernel has the page where it begins. */
static bool
may_be_written(const void *bytes)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long begin, end;
    char line[4096], writes = '-';

    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx %*c%c", &begin, &end, &writes) == 3 &&
            (uintptr_t)bytes >= begin && (uintptr_t)bytes < end)
            break;
    if (maps != NULL)
        fclose(maps);
    return writes == 'w';
}

/* The lock is held. */
static cu_result
add_registration(const void *bytes, size_t byte_count, unsigned flags)
{
    while (registers == FAKE_CUDA_HANGS)
        pthread_cond_wait(&changed, &lock);
    if (byte_count == 0 || (uintptr_t)bytes % 4096 != 0 || byte_count % 4096 != 0)
        return INVALID_VALUE;
    if (registers == FAKE_CUDA_NEEDS_WRITING && (flags & READ_ONLY) != 0)
        return NOT_SUPPORTED;
    if (registers == FAKE_CUDA_REFUSES || ((flags & READ_ONLY) == 0 && !may_be_written(bytes)))
        return INVALID_VALUE;
    if (registration_at(bytes, byte_count) != NULL)
        return ALREADY_REGISTERED;
    for (int i = 0; i < REGISTRATIONS; i++)
        if (registrations[i].bytes == NULL) {
            registrations[i] = (struct registration){ bytes, byte_count };
            alive++;
            return CU_SUCCESS;
        }
    return OUT_OF_MEMORY;
}

EXPORT cu_result
cuMemHostRegister_v2(void *bytes, size_t byte_count, unsigned flags)
{
    cu_result result;

    BEGIN(true, true);
    pthread_mutex_lock(&lock);
    result = add_registration(bytes, byte_count, flags);
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT cu_result
cuMemHostUnregister(void *bytes)
{
    struct registration *at;
    cu_result result = NOT_REGISTERED;

    pthread_mutex_lock(&lock);
    at = registration_at(bytes, 1);
    if (at != NULL && at->bytes == bytes) {
        *at = (struct registration){ 0 };
        alive--;
        result = CU_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT cu_result
cuMemcpyHtoDAsync_v2(cu_address to, const void *from, size_t bytes, cu_stream stream)
{
    BEGIN(true, false);
    pthread_mutex_lock(&lock);
    if (registration_at(from, bytes) != NULL)
        copied_registered += bytes;
    pthread_mutex_unlock(&lock);
    return enqueue(stream,
                   (struct op){ .kind = OP_COPY, .to = (void *)to, .from = from, .bytes = bytes });
}

EXPORT cu_result
cuMemcpyDtoDAsync_v2(cu_address to, cu_address from, size_t bytes, cu_stream stream)
{
    BEGIN(true, false);
    return enqueue(stream, (struct op){ .kind = OP_COPY,
                                        .to = (void *)to,
                                        .from = (const void *)from,
                                        .bytes = bytes });
}

/* Waits for the default stream alone, so that a test which forgets to wait for its own is seen. */
EXPORT cu_result
cuMemcpyDtoH_v2(void *to, cu_address from, size_t bytes)
{
    BEGIN(true, true);
    pthread_mutex_lock(&lock);
    drain(stream_of(NULL));
    pthread_mutex_unlock(&lock);
    memcpy(to, (const void *)from, bytes);
    return CU_SUCCESS;
}

EXPORT cu_result
cuStreamCreateWithPriority(cu_stream *stream, unsigned flags, int priority)
{
    (void)priority;
    BEGIN(true, false);
    pthread_mutex_lock(&lock);
    *stream = make_stream(&primary);
    (*stream)->is_blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
    alive++;
    pthread_mutex_unlock(&lock);
    return CU_SUCCESS;
}

EXPORT cu_result
cuStreamDestroy_v2(cu_stream stream)
{
    pthread_mutex_lock(&lock);
    stream->ends = true;
    alive--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&lock);
    for (struct CUstream_st **at = &streams; *at != NULL; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    free(stream);
    return CU_SUCCESS;
}

EXPORT cu_result
cuStreamWaitEvent(cu_stream stream, cu_event event, unsigned flags)
{
    (void)flags;
    BEGIN(true, false);
    return enqueue(stream, (struct op){ .kind = OP_WAIT, .event = event });
}

EXPORT cu_result
cuStreamSynchronize(cu_stream stream)
{
    cu_result result = CU_SUCCESS;

    BEGIN(true, true);
    pthread_mutex_lock(&lock);
    if (stream_of(stream)->is_captured)
        result = spoil(CAPTURE_UNSUPPORTED);
    drain(stream_of(stream));
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT cu_result
cuStreamIsCapturing(cu_stream stream, int *capture)
{
    cu_result result;

    BEGIN(true, false);
    pthread_mutex_lock(&lock);
    *capture = stream_of(stream)->is_captured;
    result = breaks_a_capture(stream_of(stream)) ? CU_CAPTURE_IMPLICIT : CU_SUCCESS;
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT cu_result
cuStreamBeginCapture_v2(cu_stream stream, int mode)
{
    BEGIN(true, false);
    pthread_mutex_lock(&lock);
    stream->is_captured = true;
    is_capture_global = mode == 0;
    is_spoiled = false;
    pthread_mutex_unlock(&lock);
    return CU_SUCCESS;
}

EXPORT cu_result
cuStreamEndCapture(cu_stream stream, void **graph)
{
    cu_result result;

    BEGIN(true, false);
    pthread_mutex_lock(&lock);
    result = is_spoiled ? CAPTURE_INVALIDATED : CU_SUCCESS;
    stream->is_captured = is_capture_global = false;
    pthread_mutex_unlock(&lock);
    *graph = NULL;
    return result;
}

EXPORT cu_result
cuGraphDestroy(void *graph)
{
    (void)graph;
    return CU_SUCCESS;
}

EXPORT cu_result
cuStreamGetCtx(cu_stream stream, cu_context *context)
{
    BEGIN(true, false);
    pthread_mutex_lock(&lock);
    *context = stream_of(stream)->context;
    pthread_mutex_unlock(&lock);
    return CU_SUCCESS;
}

EXPORT cu_stream
fake_cuda_stranger(void)
{
    pthread_mutex_lock(&lock);
    if (stranger == NULL)
        stranger = make_stream(&other);
    pthread_mutex_unlock(&lock);
    return stranger;
}

EXPORT cu_result
cuCtxSynchronize(void)
{
    cu_result result = CU_SUCCESS;

    BEGIN(true, true);
    pthread_mutex_lock(&lock);
    if (captured_stream(false) != NULL)
        result = spoil(CAPTURE_UNSUPPORTED);
    pthread_mutex_unlock(&lock);
    drain_all();
    return result;
}

EXPORT cu_result
cuEventCreate(cu_event *event, unsigned flags)
{
    BEGIN(true, false);
    *event = calloc(1, sizeof **event);
    (*event)->is_timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    count_alive(1);
    return CU_SUCCESS;
}

EXPORT cu_result
cuEventDestroy_v2(cu_event event)
{
    free(event);
    count_alive(-1);
    return CU_SUCCESS;
}

EXPORT cu_result
cuEventRecord(cu_event event, cu_stream stream)
{
    BEGIN(true, false);
    return enqueue(stream, (struct op){ .kind = OP_RECORD, .event = event });
}

EXPORT cu_result
cuEventSynchronize(cu_event event)
{
    cu_result result = CU_SUCCESS;
    uint64_t ticket;

    BEGIN(true, true);
    pthread_mutex_lock(&lock);
    if (event->is_captured)
        result = spoil(CAPTURED_EVENT);
    ticket = event->recorded;
    while (event->completed < ticket)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return result;
}

/* A millisecond each time. */
EXPORT cu_result
cuEventElapsedTime(float *milliseconds, cu_event from, cu_event to)
{
    cu_result result = CU_SUCCESS;

    BEGIN(true, true);
    pthread_mutex_lock(&lock);
    if (!from->is_timed || !to->is_timed || from->recorded == 0 || to->recorded == 0)
        result = CU_INVALID_HANDLE;
    else if (from->completed < from->recorded || to->completed < to->recorded)
        result = CU_NOT_READY;
    else
        *milliseconds = 1;
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT cu_result
cuModuleLoadData(cu_module *module, const void *image)
{
    (void)image;
    BEGIN(true, true);
    *module = (cu_module)(uintptr_t)1;
    count_alive(1);
    return CU_SUCCESS;
}

EXPORT cu_result
cuModuleUnload(cu_module module)
{
    (void)module;
    count_alive(-1);
    return CU_SUCCESS;
}

EXPORT cu_result
cuModuleGetFunction(cu_function *function, cu_module module, const char *name)
{
    (void)module;
    BEGIN(true, false);
    *function = (cu_function)(uintptr_t)2;
    return strcmp(name, "tundish_expand") == 0 ? CU_SUCCESS : 500;
}

EXPORT cu_result
cuLaunchKernel(cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
               cu_stream stream, void **arguments, void **extra)
{
    (void)function;
    (void)shared_bytes;
    (void)extra;
    BEGIN(true, false);
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x != EXPAND_THREADS || block_y != 1 ||
        block_z != 1)
        return INVALID_VALUE;
    return enqueue(stream, (struct op){ .kind = OP_EXPAND,
                                        .from = *(const void **)arguments[0],
                                        .bytes = *(uint32_t *)arguments[1],
                                        .blocks = grid_x });
}

EXPORT cu_result
cuThreadExchangeStreamCaptureMode(int *mode)
{
    int before = capture_mode;

    capture_mode = *mode;
    *mode = before;
    return CU_SUCCESS;
}

EXPORT cu_result
cuGetErrorName(cu_result result, const char **name)
{
    *name = result == UNKNOWN         ? "CUDA_ERROR_UNKNOWN"
            : result == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
                                      : "CUDA_ERROR_OF_THE_STAND_IN";
    return CU_SUCCESS;
}

EXPORT cu_result
cuGetErrorString(cu_result result, const char **text)
{
    (void)result;
    *text = "injected";
    return CU_SUCCESS;
}
