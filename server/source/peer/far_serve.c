/* far_serve.c - what other nodes ask for, read and sent. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "source/files/files_private.h"
#include "source/peer/far_private.h"
#include "source/scan/scan.h"

enum {
    PACK_LEVEL = 1,
    PACK_BYTES_MIN = 4 << 10,
    PLAIN_EVERY = 64, /* answers, to see what the wire takes now */
    TRY_EVERY = 16,   /* answers, to see what packing would do now */
    ANSWER_BYTES_MAX = 1 << 30,
    QUEUED_BYTES_MAX = 1 << 20 /* to one node; more is not read before that is gone */
};

static const uint64_t MIB = 1 << 20;
static const int64_t PAUSE_NS = 2000000;

static tundish_status
makes_no_sense(void)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "a question that makes no sense");
}

/* Only what is served may be asked for. */
static tundish_status
enter(struct far *far, const char *name, const struct record_format *format,
      struct source_file **ret_file)
{
    const struct catalogue_file *known = catalogue_find(far->options.catalogue, name);

    if (known == NULL || !known->is_here)
        return tnd_fail(TUNDISH_E_DATA, "%s: it is not here", name);
    *ret_file = table_enter(far->files, name, strlen(name), format);
    return TUNDISH_OK;
}

/* What is packed can be read once it has been scanned, which whoever asks has seen; this server may
 * have been started again since. */
static tundish_status
make_readable(struct far *far, struct source_file *file)
{
    const struct record_list *list;

    if (file->format.packing == PACKING_NONE || atomic_load(&file->unpacked) != 0)
        return TUNDISH_OK;
    return scan_complete(file, &far->stop_scans, &list);
}

static tundish_status
read_rows(struct far *far, struct byte_view from, struct far_text *to)
{
    tundish_status status = TUNDISH_OK;

    while (from.size > 0 && status == TUNDISH_OK) {
        struct record_format format;
        struct source_file *file = NULL;
        struct far_file about;
        char *name;

        if (!far_take_file(&from, &about, &name, &format))
            return makes_no_sense();
        status = enter(far, name, &format, &file);
        free(name);
        if (status == TUNDISH_OK)
            status = make_readable(far, file);
        for (uint32_t i = 0; i < about.count && status == TUNDISH_OK; i++) {
            uint64_t offset;
            uint32_t bytes;

            if (!far_take(&from, &offset, sizeof offset) ||
                !far_take(&from, &bytes, sizeof bytes) || bytes > ANSWER_BYTES_MAX - to->used)
                return makes_no_sense();
            if (to->room - to->used < bytes) {
                to->room = 2 * to->room + bytes;
                to->bytes = tnd_realloc(to->bytes, to->room, 1);
            }
            status = file_read(file, to->bytes + to->used, bytes, offset);
            to->used += bytes;
        }
    }
    return status;
}

/* Records [first, ...) of the scan, some of them: those at hand, as a rule. */
static tundish_status
read_records(struct far *far, struct byte_view from, struct far_text *to)
{
    uint64_t *words = tnd_alloc(FAR_RECORDS * 2 * sizeof *words);
    struct record_format format;
    struct source_file *file = NULL;
    struct scan_cursor cursor;
    struct far_file about;
    uint64_t first, passed = 0, total = 0;
    enum order_result result;
    uint8_t is_over;
    size_t count = 0;
    char *name;
    tundish_status status;

    if (!far_take_file(&from, &about, &name, &format)) {
        free(words);
        return makes_no_sense();
    }
    status =
        far_take(&from, &first, sizeof first) ? enter(far, name, &format, &file) : makes_no_sense();
    free(name);
    if (status != TUNDISH_OK) {
        free(words);
        return status;
    }
    scan_cursor_open(&cursor, file, &far->stop_scans);
    result = scan_cursor_pass_over(&cursor, first, &passed);
    if (result == ORDER_OK)
        result = scan_cursor_next(&cursor, words, FAR_RECORDS, &count);
    scan_cursor_close(&cursor);
    is_over = result == ORDER_END;
    total = count;
    far_text_add(to, &is_over, 1);
    far_text_add(to, &total, sizeof total);
    for (size_t i = 0; i < count; i++) {
        uint32_t length = reference_length(&words[2 * i]);

        far_text_add(to, &words[2 * i], sizeof *words);
        far_text_add(to, &length, sizeof length);
    }
    free(words);
    return result == ORDER_FAILED ? TUNDISH_E_DATA : TUNDISH_OK;
}

static void
learn(uint64_t *value, uint64_t now)
{
    *value = *value == 0 ? now + 1 : (*value * 7 + now + 1) / 8;
}

/* Does packing take less, here and there, than what it saves takes on the wire? All for a MiB. */
static bool
is_worth_packing(const struct far_clerk *clerk, const struct far_rates *asker)
{
    uint64_t ratio = clerk->ratio < 1024 ? clerk->ratio : 1024;

    return clerk->pack_ns + asker->unpack_ns < asker->wire_ns / 1024 * (1024 - ratio);
}

/* Returns the packed bytes, or NULL: as they are is better. */
static uint8_t *
pack(struct far_clerk *clerk, const struct far_rates *asker, const struct far_text *raw,
     size_t head_bytes, size_t *ret_bytes)
{
    size_t raw_bytes = raw->used - head_bytes, bound = ZSTD_compressBound(raw_bytes);
    int64_t began_ns = tnd_clock_ns();
    uint64_t number = clerk->answers++;
    uint8_t *packed;
    size_t bytes;

    if (raw_bytes < PACK_BYTES_MIN || asker->wire_ns == 0 || number % PLAIN_EVERY == 0 ||
        (number % TRY_EVERY != 1 && !is_worth_packing(clerk, asker)))
        return NULL;
    packed = tnd_alloc(head_bytes + bound);
    bytes =
        ZSTD_compress(packed + head_bytes, bound, raw->bytes + head_bytes, raw_bytes, PACK_LEVEL);
    if (!ZSTD_isError(bytes)) {
        learn(&clerk->pack_ns, (uint64_t)(tnd_clock_ns() - began_ns) * MIB / raw_bytes);
        learn(&clerk->ratio, (uint64_t)bytes * 1024 / raw_bytes);
    }
    if (ZSTD_isError(bytes) || bytes >= raw_bytes || !is_worth_packing(clerk, asker)) {
        free(packed);
        return NULL;
    }
    *ret_bytes = head_bytes + bytes;
    return packed;
}

/* An owner holds no more than this for a node that takes its time. */
static void
wait_for_room(struct far *far, uint32_t to)
{
    while (link_queued(far->options.link, to) > QUEUED_BYTES_MAX &&
           atomic_load(&far->stop_scans) == 0)
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
}

static void
answer(struct far_clerk *clerk, const struct link_mail *mail)
{
    struct far *far = clerk->far;
    struct byte_view from = { mail->bytes, mail->byte_count };
    struct link_key key = { .topic = LINK_ROWS, .epoch = FAR_ANSWER, .part = mail->key.part };
    struct far_rates asker;
    struct far_head head = { 0 };
    struct far_text raw = { 0 };
    uint8_t *packed = NULL;
    size_t packed_bytes = 0;
    tundish_status status;

    wait_for_room(far, mail->from);
    far_text_add(&raw, &head, sizeof head);
    status = mail->key.epoch == FAR_ASK_ROWS ? read_rows(far, from, &raw)
                                             : read_records(far, from, &raw);
    head.status = status;
    if (status != TUNDISH_OK) {
        raw.used = sizeof head;
        far_text_add(&raw, tnd_error_text(), strlen(tnd_error_text()));
    } else {
        pthread_mutex_lock(&far->lock);
        asker = far->asked_at[mail->from];
        pthread_mutex_unlock(&far->lock);
        head.raw_bytes = raw.used - sizeof head;
        packed = pack(clerk, &asker, &raw, sizeof head, &packed_bytes);
        head.is_packed = packed != NULL;
    }
    memcpy(packed != NULL ? packed : raw.bytes, &head, sizeof head);
    link_send(far->options.link, mail->from, &key, packed != NULL ? packed : raw.bytes,
              packed != NULL ? packed_bytes : raw.used);
    free(packed);
    free(raw.bytes);
}

static void *
run(void *argument)
{
    struct far_clerk *clerk = argument;
    struct far *far = clerk->far;

    pthread_mutex_lock(&far->lock);
    while (!far->is_closing) {
        struct far_task *task = clerk->first;

        if (task == NULL) {
            pthread_cond_wait(&clerk->has_task, &far->lock);
            continue;
        }
        clerk->first = task->next;
        pthread_mutex_unlock(&far->lock);
        answer(clerk, &task->mail);
        free(task->mail.bytes);
        free(task);
        pthread_mutex_lock(&far->lock);
    }
    pthread_mutex_unlock(&far->lock);
    return NULL;
}

void
far_hand_to_clerk(struct far *far, enum far_hall hall, const struct link_mail *mail)
{
    struct far_clerk *clerk = &far->clerks[hall];
    struct far_task *task = tnd_zalloc(1, sizeof *task);

    task->mail = *mail;
    pthread_mutex_lock(&far->lock);
    if (clerk->first == NULL)
        clerk->first = task;
    else
        clerk->last->next = task;
    clerk->last = task;
    pthread_cond_signal(&clerk->has_task);
    pthread_mutex_unlock(&far->lock);
}

void
far_take_rates(struct far *far, const struct link_mail *mail)
{
    pthread_mutex_lock(&far->lock);
    if (mail->byte_count == sizeof *far->asked_at)
        memcpy(&far->asked_at[mail->from], mail->bytes, sizeof *far->asked_at);
    pthread_mutex_unlock(&far->lock);
    free(mail->bytes);
}

tundish_status
far_start_clerks(struct far *far)
{
    for (int i = 0; i < FAR_HALLS; i++) {
        struct far_clerk *clerk = &far->clerks[i];

        clerk->far = far;
        if (pthread_create(&clerk->thread, NULL, run, clerk) != 0)
            return tnd_fail(TUNDISH_E_SYSTEM, "the kernel gives no thread");
        clerk->started = true;
    }
    return TUNDISH_OK;
}

void
far_stop_clerks(struct far *far)
{
    atomic_store(&far->stop_scans, 1);
    pthread_mutex_lock(&far->lock);
    far->is_closing = true;
    for (int i = 0; i < FAR_HALLS; i++)
        pthread_cond_signal(&far->clerks[i].has_task);
    pthread_mutex_unlock(&far->lock);
    for (int i = 0; i < FAR_HALLS; i++) {
        struct far_clerk *clerk = &far->clerks[i];

        if (clerk->started)
            pthread_join(clerk->thread, NULL);
        for (struct far_task *task = clerk->first, *next; task != NULL; task = next) {
            next = task->next;
            free(task->mail.bytes);
            free(task);
        }
    }
}
