/* pin.c - a mapping of the reader's pages for the device alone. */
#include "cuda/pin.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

/* Drivers refuse single registrations of 512 GiB, and take up to a second for each GiB or two. */
#define PIECE_BYTES (UINT64_C(64) << 30)
#define PATIENCE_NS INT64_C(5000000000)

enum { CU_READ_ONLY_HOST_REGISTER_SUPPORTED = 113 };
enum { CU_HOST_REGISTER_PORTABLE = 1, CU_HOST_REGISTER_READ_ONLY = 8 };

/* A registration, of its thread and of the pin that waits for it. */
struct trial {
    const struct cuda_driver *driver;
    cu_device device;
    cu_context context; /* retained for the thread, which may outlive the library's use of it */
    uint8_t *bytes;     /* the mapping */
    uint64_t byte_count;
    unsigned flags;
    pthread_t thread;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    bool is_done, is_given_up;
    bool is_registered;
};

static uint64_t
piece_bytes(const struct trial *trial, uint64_t at)
{
    return trial->byte_count - at < PIECE_BYTES ? trial->byte_count - at : PIECE_BYTES;
}

/* The pieces below `end`. */
static void
unregister(const struct trial *trial, uint64_t end)
{
    for (uint64_t at = 0; at < end; at += PIECE_BYTES)
        trial->driver->host_unregister(trial->bytes + at);
}

/* The context is current. All of it, or nothing. */
static bool
register_all(const struct trial *trial)
{
    for (uint64_t at = 0; at < trial->byte_count; at += PIECE_BYTES)
        if (trial->driver->host_register(trial->bytes + at, piece_bytes(trial, at), trial->flags) !=
            CU_SUCCESS) {
            unregister(trial, at);
            return false;
        }
    return true;
}

/* The pages must be unregistered before they are unmapped, or the driver holds them for good. */
static void
free_trial(struct trial *trial)
{
    if (trial->is_registered)
        unregister(trial, trial->byte_count);
    munmap(trial->bytes, trial->byte_count);
    pthread_cond_destroy(&trial->changed);
    pthread_mutex_destroy(&trial->lock);
    free(trial);
}

static void *
run_trial(void *user)
{
    struct trial *trial = user;
    const struct cuda_driver *driver = trial->driver;
    cu_device device = trial->device;
    cu_context left;
    int mode = CU_CAPTURE_RELAXED;
    bool is_entered, is_registered, is_ours;

    driver->exchange_capture_mode(&mode);
    is_entered = driver->context_push(trial->context) == CU_SUCCESS;
    is_registered = is_entered && register_all(trial);
    /* The device reads on; a stray write of the program ends the program. */
    if (is_registered && mprotect(trial->bytes, trial->byte_count, PROT_READ) != 0) {
        unregister(trial, trial->byte_count);
        is_registered = false;
    }
    pthread_mutex_lock(&trial->lock);
    trial->is_registered = is_registered;
    trial->is_done = true;
    is_ours = trial->is_given_up; /* nobody waits any more */
    pthread_cond_signal(&trial->changed);
    pthread_mutex_unlock(&trial->lock);
    if (is_ours)
        free_trial(trial);
    if (is_entered)
        driver->context_pop(&left);
    driver->context_release(device);
    return NULL;
}

/* True: the thread has ended. Else the trial is the thread's from now on. */
static bool
await_trial(struct trial *trial)
{
    pthread_t thread = trial->thread;
    int64_t deadline = tnd_clock_deadline_ns(PATIENCE_NS);
    struct timespec until = { .tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000 };
    int error = 0;
    bool is_done;

    pthread_mutex_lock(&trial->lock);
    while (!trial->is_done && error == 0)
        error = pthread_cond_timedwait(&trial->changed, &trial->lock, &until);
    is_done = trial->is_done;
    trial->is_given_up = !is_done;
    pthread_mutex_unlock(&trial->lock);
    if (is_done)
        pthread_join(thread, NULL);
    else
        pthread_detach(thread);
    return is_done;
}

/* The context is retained once more, because a thread that was given up may need it after the
 * library was closed. */
static bool
start_trial(struct trial *trial)
{
    int error;

    if (trial->driver->context_retain(&trial->context, trial->device) != CU_SUCCESS)
        return false;
    error = pthread_create(&trial->thread, NULL, run_trial, trial);
    if (error != 0)
        trial->driver->context_release(trial->device);
    return error == 0;
}

/* The driver registers pages. */
static uint64_t
whole_pages(uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

/* The server sends a descriptor for reading. Whom the file belongs to may open it again for
 * writing, and map it so where the memory is not sealed. */
static void *
map_for_writing(int descriptor, uint64_t bytes)
{
    char path[32];
    void *mapped;
    int opened;

    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened < 0)
        return MAP_FAILED;
    mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
    close(opened);
    return mapped;
}

static struct trial *
open_trial(const struct pin *pin, unsigned flags)
{
    struct trial *trial = calloc(1, sizeof *trial);

    if (trial == NULL)
        return NULL;
    trial->driver = pin->device->driver;
    trial->device = pin->device->number;
    trial->flags = flags;
    trial->byte_count = whole_pages(pin->byte_count);
    /* An old size of 0 maps the pages of a shared mapping once more, as they are mapped. */
    trial->bytes = (flags & CU_HOST_REGISTER_READ_ONLY) != 0
                       ? mremap((void *)(uintptr_t)pin->bytes, 0, trial->byte_count, MREMAP_MAYMOVE)
                       : map_for_writing(pin->descriptor, trial->byte_count);
    if (trial->bytes == MAP_FAILED) {
        free(trial);
        return NULL;
    }
    /* A child has no use for it, and could not unregister it. */
    madvise(trial->bytes, trial->byte_count, MADV_DONTFORK);
    pthread_mutex_init(&trial->lock, NULL);
    tnd_condition_open(&trial->changed);
    return trial;
}

/* Every way out but one leaves nothing registered and nothing mapped: batches are copied then, and
 * the caller need not know which step failed. */
static tundish_device_why
try_to_register(struct pin *pin, unsigned flags)
{
    struct trial *trial = open_trial(pin, flags);

    if (trial == NULL)
        return TUNDISH_DEVICE_REFUSED;
    if (!start_trial(trial)) {
        free_trial(trial);
        return TUNDISH_DEVICE_REFUSED;
    }
    if (!await_trial(trial))
        return TUNDISH_DEVICE_SLOW;
    if (!trial->is_registered) {
        free_trial(trial);
        return TUNDISH_DEVICE_REFUSED;
    }
    pin->trial = trial;
    return pin->asked == TUNDISH_CUDA_PIN ? TUNDISH_DEVICE_ASKED : TUNDISH_DEVICE_REGISTERED;
}

/* The reader's mapping is read-only. Where the driver knows a flag for such memory, it can do with
 * that. Others need a mapping that may be written to, which without being asked to the library does
 * not make. */
static tundish_device_why
register_mapping(struct pin *pin)
{
    const struct device *device = pin->device;
    int takes_read_only = 0;

    if (device->driver->device_attribute(&takes_read_only, CU_READ_ONLY_HOST_REGISTER_SUPPORTED,
                                         device->number) != CU_SUCCESS)
        takes_read_only = 0;
    if (!takes_read_only && pin->asked != TUNDISH_CUDA_PIN)
        return TUNDISH_DEVICE_UNSUPPORTED;
    return try_to_register(pin, CU_HOST_REGISTER_PORTABLE |
                                    (takes_read_only ? CU_HOST_REGISTER_READ_ONLY : 0));
}

void
pin_open(struct pin *pin, const struct device *device, tundish_cuda_mode asked)
{
    *pin = (struct pin){ .device = device, .asked = asked, .why = TUNDISH_DEVICE_ASKED };
}

static void
let_go(struct pin *pin)
{
    if (pin->trial != NULL)
        free_trial(pin->trial);
    pin->trial = NULL;
}

void
pin_close(struct pin *pin)
{
    let_go(pin);
}

void
pin_follow(struct pin *pin, tundish_reader *reader)
{
    tundish_mapping mapping = { .size = sizeof mapping, .descriptor = -1 };

    /* A driver that was too slow once is not tried again: each try may leave a thread in it. */
    if (pin->asked == TUNDISH_CUDA_COPY || pin->why == TUNDISH_DEVICE_SLOW ||
        tundish_get_mapping(reader, &mapping) != TUNDISH_OK || mapping.number == pin->number)
        return;
    if (pin->trial != NULL)
        pin->device->driver->context_synchronize(); /* a copy may still read the old one */
    let_go(pin);
    pin->number = mapping.number;
    pin->bytes = mapping.bytes;
    pin->byte_count = mapping.byte_count;
    pin->descriptor = mapping.descriptor;
    pin->why = register_mapping(pin);
}

tundish_device_mode
pin_mode(const struct pin *pin)
{
    return pin->trial != NULL ? TUNDISH_DEVICE_PIN : TUNDISH_DEVICE_COPY;
}

const void *
pin_find(const struct pin *pin, const void *from, uint64_t bytes)
{
    const uint8_t *at = from;
    uint64_t offset;

    if (pin->trial == NULL || bytes == 0 || at < pin->bytes || at >= pin->bytes + pin->byte_count)
        return NULL;
    offset = (uint64_t)(at - pin->bytes);
    if (bytes > pin->byte_count - offset ||
        offset / PIECE_BYTES != (offset + bytes - 1) / PIECE_BYTES)
        return NULL;
    return pin->trial->bytes + offset;
}
