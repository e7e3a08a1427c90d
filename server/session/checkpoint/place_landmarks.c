/* place_landmarks.c - see place_landmarks.h. */
#include "session/checkpoint/place_landmarks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cache_folder.h"
#include "core/clock.h"
#include "core/crc32c.h"
#include "core/hash_farm.h"
#include "core/magic.h"
#include "core/memory.h"
#include "core/own_file.h"
#include "core/read_write.h"
#include "order/ops.h"
#include "session/checkpoint/place_code.h"
#include "session/checkpoint/place_contents.h"

/* Fewer are decided again as fast as a file of them is written. */
enum { WORTH_KEEPING = 16, STEP_DOUBLED_AT_MOST = 40 };
enum { LANDMARKS_VERSION = 1 };
static const int64_t KEEP_NS = 10000000000;
/* The thread that deals writes: a hundredth of its time at most. */
static const int64_t KEEP_SHARE = 100;

/* A file: this; then for each list a head, and its landmarks. */
struct header {
    uint64_t magic;
    uint32_t version, crc; /* of what follows */
    uint64_t bytes;        /* the same */
};

struct head {
    uint64_t pass, step, count;
};

struct place_landmarks {
    struct order_landmarks all;
    int folder;
    char name[TND_CACHE_NAME_BYTES];
    int64_t kept_ns, took_ns; /* when they were last kept, and what that took */
};

static bool
decides(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->graph->node_count; i++)
        if (plan->graph->nodes[i]->order != NULL && plan->graph->nodes[i]->order->surely != NULL)
            return true;
    return false;
}

static bool
all_are_here(const struct place_files *files)
{
    for (uint32_t i = 0; i < files->count; i++)
        if (!files->list[i].is_here)
            return false;
    return true;
}

/* As of a place, and the share of the rows that this worker deals. */
static uint64_t
key_of(const struct plan *plan, const struct place_files *files)
{
    uint64_t words[] = { place_fingerprint(plan),
                         place_code(plan),
                         plan->options.worker,
                         plan->options.worker_count,
                         plan->replicas,
                         plan->stream->deliver.skip_errors,
                         files->count };
    uint64_t key = tnd_hash_farm_chain(1, words, sizeof words);

    for (uint32_t i = 0; i < files->count; i++)
        key = tnd_hash_farm_chain(key, &files->list[i].hash, sizeof files->list[i].hash);
    return key;
}

/* More pass from landmark to landmark, but no more than there are elements between. */
static bool
can_be(const struct head *head, const uint64_t *passed)
{
    for (uint64_t i = 0; i < head->count; i++) {
        uint64_t before = i > 0 ? passed[i - 1] : 0;

        if (passed[i] < before || passed[i] - before > head->step)
            return false;
    }
    return true;
}

static bool
is_step(uint64_t step)
{
    for (int doubled = 0; doubled <= STEP_DOUBLED_AT_MOST; doubled++)
        if (step == (uint64_t)LANDMARK_STEP << doubled)
            return true;
    return false;
}

/* Take the lists out of checked bytes, up to the first that no pass can have left. */
static void
take_lists(struct order_landmarks *all, const uint8_t *bytes, size_t left)
{
    struct head head;

    while (all->list_count < LANDMARK_LISTS && left >= sizeof head) {
        struct order_landmark_list *list = &all->lists[all->list_count];
        size_t taken;

        memcpy(&head, bytes, sizeof head);
        if (!is_step(head.step) || head.count > LANDMARKS_AT_MOST ||
            head.count > (left - sizeof head) / sizeof *list->passed)
            return;
        taken = (size_t)head.count * sizeof *list->passed;
        list->passed = tnd_alloc(taken + 1);
        memcpy(list->passed, bytes + sizeof head, taken);
        if (!can_be(&head, list->passed)) {
            free(list->passed);
            list->passed = NULL;
            return;
        }
        list->pass = head.pass;
        list->step = head.step;
        list->count = list->room = (uint32_t)head.count;
        all->list_count++;
        bytes += sizeof head + taken;
        left -= sizeof head + taken;
    }
}

/* The folder may be shared: a link, a pipe, or a file of another user is not taken. */
static void
read_kept(struct place_landmarks *landmarks)
{
    static const size_t most =
        LANDMARK_LISTS * (sizeof(struct head) + LANDMARKS_AT_MOST * sizeof(uint64_t));
    int descriptor =
        openat(landmarks->folder, landmarks->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct header header = { 0 };
    struct stat about;
    size_t got = 0;

    if (descriptor < 0)
        return;
    if (fstat(descriptor, &about) == 0 && tnd_own_file_is_ours(&about) &&
        tnd_read_at(descriptor, &header, sizeof header, 0, &got) == 0 && got == sizeof header &&
        header.magic == TND_LANDMARKS_MAGIC && header.version == LANDMARKS_VERSION &&
        header.bytes <= most && header.bytes == (uint64_t)about.st_size - sizeof header) {
        size_t bytes = (size_t)header.bytes;
        uint8_t *content = tnd_alloc(bytes + 1);

        if (tnd_read_at(descriptor, content, bytes, sizeof header, &got) == 0 && got == bytes &&
            header.crc == tnd_crc32c(0, content, bytes))
            take_lists(&landmarks->all, content, bytes);
        free(content);
    }
    close(descriptor);
}

static struct place_landmarks *
open_of_files(const struct plan *plan, const struct place_files *files)
{
    struct place_landmarks *landmarks;
    int folder;

    if (!all_are_here(files) ||
        tnd_cache_folder_open(plan->options.cache_folder, &folder) != TUNDISH_OK)
        return NULL;
    landmarks = tnd_zalloc(1, sizeof *landmarks);
    landmarks->folder = folder;
    landmarks->kept_ns = tnd_clock_ns();
    if (plan->draws_from_root || plan->tells_root_seed)
        landmarks->all.seed = plan->options.root_seed;
    snprintf(landmarks->name, sizeof landmarks->name, "order-%016llx.landmarks",
             (unsigned long long)key_of(plan, files));
    read_kept(landmarks);
    return landmarks;
}

struct place_landmarks *
place_landmarks_open(const struct plan *plan, const struct place_files *files)
{
    struct place_files found = { 0 };
    struct place_landmarks *landmarks = NULL;

    if (!decides(plan))
        return NULL;
    if (files != NULL || place_files_open(plan, &found) == TUNDISH_OK)
        landmarks = open_of_files(plan, files != NULL ? files : &found);
    place_files_close(&found);
    return landmarks;
}

struct order_landmarks *
place_landmarks_all(struct place_landmarks *landmarks)
{
    return landmarks != NULL ? &landmarks->all : NULL;
}

/* The lists as they are in a file; the caller frees. */
static uint8_t *
bytes_of(const struct order_landmarks *all, size_t *ret_bytes)
{
    size_t at = 0;
    uint8_t *bytes;

    for (uint32_t i = 0; i < all->list_count; i++)
        at += sizeof(struct head) + all->lists[i].count * sizeof(uint64_t);
    bytes = tnd_alloc(at + 1);
    at = 0;
    for (uint32_t i = 0; i < all->list_count; i++) {
        const struct order_landmark_list *list = &all->lists[i];
        struct head head = { list->pass, list->step, list->count };

        memcpy(bytes + at, &head, sizeof head);
        at += sizeof head;
        memcpy(bytes + at, list->passed, list->count * sizeof *list->passed);
        at += list->count * sizeof *list->passed;
    }
    *ret_bytes = at;
    return bytes;
}

/* Without a file of them rows are decided again, which costs only time. */
static void
keep(struct place_landmarks *landmarks)
{
    struct header header = { .magic = TND_LANDMARKS_MAGIC, .version = LANDMARKS_VERSION };
    struct tnd_cache_build build;
    size_t bytes;
    uint8_t *content = bytes_of(&landmarks->all, &bytes);

    header.bytes = bytes;
    header.crc = tnd_crc32c(0, content, bytes);
    if (tnd_cache_build_begin(landmarks->folder, landmarks->name, &build) == TUNDISH_OK) {
        if (tnd_cache_build_write(&build, &header, sizeof header) == TUNDISH_OK &&
            tnd_cache_build_write(&build, content, bytes) == TUNDISH_OK)
            (void)tnd_cache_build_publish(&build, NULL);
        else
            tnd_cache_build_cancel(&build);
    }
    free(content);
    landmarks->all.noted = 0;
}

void
place_landmarks_keep(struct place_landmarks *landmarks)
{
    int64_t now_ns, since_ns;

    if (landmarks == NULL || landmarks->all.noted < WORTH_KEEPING)
        return;
    now_ns = tnd_clock_ns();
    since_ns = now_ns - landmarks->kept_ns;
    if (since_ns < KEEP_NS || since_ns / KEEP_SHARE < landmarks->took_ns)
        return;
    keep(landmarks);
    landmarks->kept_ns = tnd_clock_ns();
    landmarks->took_ns = landmarks->kept_ns - now_ns;
}

void
place_landmarks_close(struct place_landmarks *landmarks)
{
    if (landmarks == NULL)
        return;
    if (landmarks->all.noted >= WORTH_KEEPING)
        keep(landmarks);
    order_landmarks_close(&landmarks->all);
    close(landmarks->folder);
    free(landmarks);
}
