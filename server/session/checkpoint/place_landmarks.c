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
#include "core/must.h"
#include "core/own_file.h"
#include "core/read_write.h"
#include "order/ops.h"
#include "session/checkpoint/place_code.h"
#include "session/checkpoint/place_contents.h"

/* Fewer are decided again as fast as a file of them is written. */
enum { WORTH_KEEPING = 16, STEP_DOUBLED_AT_MOST = 40 };
enum { LANDMARKS_VERSION = 2 };
static const int64_t KEEP_NS = 10000000000;
/* The thread that deals writes: a hundredth of its time at most. */
static const int64_t KEEP_SHARE = 100;

/* A file: this; then for each list a head, how many passed at each landmark, and, if the list has
 * states, where each ends, and their bytes. */
struct header {
    uint64_t magic;
    uint32_t version, crc; /* of what follows */
    uint64_t bytes;        /* the same */
};

struct head {
    uint64_t pass, step, count;
    uint64_t are_parts; /* 0 or 1 */
    uint64_t has_states, state_bytes;
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
        if (order_is_noted(plan->graph->nodes[i]))
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

/* More pass from landmark to landmark, but no more than there are elements between, unless in
 * parts.
 */
static bool
can_pass(const struct head *head, const uint64_t *passed)
{
    for (uint64_t i = 0; i < head->count; i++) {
        uint64_t before = i > 0 ? passed[i - 1] : 0;

        if (passed[i] < before || (head->are_parts == 0 && passed[i] - before > head->step))
            return false;
    }
    return true;
}

static bool
can_end(const struct head *head, const uint64_t *ends)
{
    uint64_t before = 0;

    for (uint64_t i = 0; i < head->count; before = ends[i++])
        if (ends[i] < before || ends[i] - before > LANDMARK_STATE_BYTES)
            return false;
    return before == head->state_bytes;
}

static bool
is_step(uint64_t step)
{
    for (int doubled = 0; doubled <= STEP_DOUBLED_AT_MOST; doubled++)
        if (step == (uint64_t)LANDMARK_STEP << doubled)
            return true;
    return false;
}

static bool
can_be(const struct head *head)
{
    return is_step(head->step) && head->count <= LANDMARKS_AT_MOST && head->are_parts <= 1 &&
           head->has_states <= 1 && head->state_bytes <= LANDMARK_LIST_BYTES &&
           (head->has_states == 1 || head->state_bytes == 0);
}

static size_t
bytes_after(const struct head *head)
{
    return (size_t)(head->count * (1 + head->has_states) * sizeof(uint64_t) + head->state_bytes);
}

static void *
copy_of(const uint8_t *bytes, size_t count)
{
    void *copy = tnd_alloc(count + 1);

    memcpy(copy, bytes, count);
    return copy;
}

/* Take a list, for which there are enough bytes. False: no pass can have left it. */
static bool
take_list(const struct head *head, const uint8_t *bytes, struct order_landmark_list *ret_list)
{
    size_t numbers = (size_t)head->count * sizeof(uint64_t);
    struct order_landmark_list list = {
        .pass = head->pass,
        .step = head->step,
        .count = (uint32_t)head->count,
        .room = (uint32_t)head->count,
        .are_parts = head->are_parts == 1,
        .passed = copy_of(bytes, numbers),
        .state_ends = head->has_states == 1 ? copy_of(bytes + numbers, numbers) : NULL,
        .states = copy_of(bytes + bytes_after(head) - head->state_bytes, (size_t)head->state_bytes),
        .state_room = (size_t)head->state_bytes,
    };

    if (!can_pass(head, list.passed) ||
        (list.state_ends != NULL && !can_end(head, list.state_ends))) {
        order_landmarks_empty(&list);
        return false;
    }
    *ret_list = list;
    return true;
}

void
place_landmarks_take(struct order_landmarks *all, const uint8_t *bytes, size_t left)
{
    struct head head;

    while (all->list_count < LANDMARK_LISTS && left >= sizeof head) {
        memcpy(&head, bytes, sizeof head);
        if (!can_be(&head) || bytes_after(&head) > left - sizeof head ||
            !take_list(&head, bytes + sizeof head, &all->lists[all->list_count]))
            return;
        all->list_count++;
        bytes += sizeof head + bytes_after(&head);
        left -= sizeof head + bytes_after(&head);
    }
}

/* The folder may be shared: a link, a pipe, or a file of another user is not taken. */
static void
read_kept(struct place_landmarks *landmarks)
{
    static const size_t most =
        LANDMARK_LISTS *
        (sizeof(struct head) + 2 * LANDMARKS_AT_MOST * sizeof(uint64_t) + LANDMARK_LIST_BYTES);
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
            place_landmarks_take(&landmarks->all, content, bytes);
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

static struct head
head_of(const struct order_landmark_list *list)
{
    return (struct head){
        .pass = list->pass,
        .step = list->step,
        .count = list->count,
        .are_parts = list->are_parts,
        .has_states = list->state_ends != NULL,
        .state_bytes = order_landmarks_state_bytes(list),
    };
}

static uint8_t *
put(uint8_t *to, const void *bytes, size_t count)
{
    if (count > 0)
        memcpy(to, bytes, count);
    return to + count;
}

/* The lists as they are in a file; the caller frees. */
static uint8_t *
bytes_of(const struct order_landmarks *all, size_t *ret_bytes)
{
    size_t count = 0;
    uint8_t *bytes, *at;

    for (uint32_t i = 0; i < all->list_count; i++) {
        struct head head = head_of(&all->lists[i]);

        count += sizeof head + bytes_after(&head);
    }
    bytes = at = tnd_alloc(count + 1);
    for (uint32_t i = 0; i < all->list_count; i++) {
        const struct order_landmark_list *list = &all->lists[i];
        struct head head = head_of(list);

        at = put(at, &head, sizeof head);
        at = put(at, list->passed, list->count * sizeof *list->passed);
        if (list->state_ends != NULL)
            at = put(at, list->state_ends, list->count * sizeof *list->state_ends);
        at = put(at, list->states, (size_t)head.state_bytes);
    }
    *ret_bytes = count;
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

    must_in_debug(landmarks->folder >= 0);
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
