/* far_ask.c - questions to owners, and their answers. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "source/files/files_private.h"
#include "source/peer/far_private.h"

enum {
    QUESTION_BYTES = 1 << 20, /* asked for in one question, unless a single row is longer */
    RATE_BYTES = 48 << 10     /* an answer of several messages, whose way can be measured */
};

static const uint64_t MIB = 1 << 20;

struct far_rows {
    struct far *far;
    struct source_files *files;
    pthread_mutex_t lock; /* of looking at answers */
    size_t count;
    struct far_row *rows;  /* by file and offset */
    uint32_t *question_of; /* by row */
    size_t *at;            /* where the row lies in the answer */
    uint32_t question_count;
    struct far_question **questions;
    uint64_t bytes;
};

static struct far_question *
ask(struct far *far, uint32_t owner, enum far_letter kind, struct far_text *text)
{
    struct far_question *question = tnd_zalloc(1, sizeof *question);
    struct link_key key = { .topic = LINK_ROWS, .epoch = kind };

    question->far = far;
    question->owner = owner;
    pthread_mutex_lock(&far->lock);
    key.part = question->number = ++far->last_number;
    question->next = far->questions;
    far->questions = question;
    pthread_mutex_unlock(&far->lock);
    link_send(far->options.link, owner, &key, text->bytes, text->used);
    return question;
}

/* Take the question out of those that wait, if it does. With the lock held. */
static bool
withdraw(struct far *far, struct far_question *question)
{
    for (struct far_question **at = &far->questions; *at != NULL; at = &(*at)->next)
        if (*at == question) {
            *at = question->next;
            return true;
        }
    return false;
}

static void
question_close(struct far_question *question)
{
    struct far *far = question->far;

    pthread_mutex_lock(&far->lock);
    (void)withdraw(far, question);
    pthread_mutex_unlock(&far->lock);
    free(question->answer.bytes);
    free(question);
}

/* Smoothed; for a MiB. */
static void
learn(uint64_t *rate_ns, int64_t took_ns, uint64_t bytes)
{
    uint64_t now_ns = took_ns > 0 ? (uint64_t)took_ns * MIB / bytes : 0;

    *rate_ns = *rate_ns == 0 ? now_ns : (*rate_ns * 7 + now_ns) / 8;
}

static bool
is_news(uint64_t told_ns, uint64_t now_ns)
{
    return now_ns > told_ns + told_ns / 2 || told_ns > now_ns + now_ns / 2;
}

/* An owner hears when that has changed, also while older questions wait there. */
static void
tell_rates(struct far *far, uint32_t owner)
{
    struct link_key key = { .topic = LINK_ROWS, .epoch = FAR_RATES };
    struct far_rates rates;
    bool news;

    pthread_mutex_lock(&far->lock);
    rates = far->rates;
    news = is_news(far->told[owner].wire_ns, rates.wire_ns) ||
           is_news(far->told[owner].unpack_ns, rates.unpack_ns);
    if (news)
        far->told[owner] = rates;
    pthread_mutex_unlock(&far->lock);
    if (news)
        link_send(far->options.link, owner, &key, &rates, sizeof rates);
}

void
far_take_answer(struct far *far, const struct link_mail *mail)
{
    struct far_question *question;

    pthread_mutex_lock(&far->lock);
    if (mail->byte_count >= RATE_BYTES)
        learn(&far->rates.wire_ns, mail->took_ns, mail->byte_count - CHANNEL_MESSAGE_BYTES);
    question = far->questions;
    while (question != NULL &&
           (question->number != mail->key.part || question->owner != mail->from))
        question = question->next;
    if (question != NULL && withdraw(far, question)) {
        question->answer = *mail;
        /* Pairs with the load in has_come: the answer is there. */
        atomic_store_explicit(&question->is_answered, true, memory_order_release);
    } else {
        free(mail->bytes);
    }
    pthread_mutex_unlock(&far->lock);
    tell_rates(far, mail->from);
}

static bool
has_come(struct link *link, void *context)
{
    const struct far_question *question = context;

    (void)link;
    return atomic_load_explicit(&question->is_answered, memory_order_acquire);
}

static tundish_status
makes_no_sense(const struct far_question *question)
{
    char name[160];

    link_name(question->far->options.link, question->owner, name, sizeof name);
    return tnd_fail(TUNDISH_E_CORRUPT, "%s: its answer makes no sense", name);
}

static tundish_status
unpack(struct far_question *question, const struct far_head *head)
{
    struct far *far = question->far;
    const uint8_t *packed = question->answer.bytes + sizeof *head;
    size_t packed_bytes = question->answer.byte_count - sizeof *head;
    int64_t began_ns = tnd_clock_ns();
    uint8_t *raw;

    if (head->raw_bytes > UINT32_MAX || (!head->is_packed && head->raw_bytes != packed_bytes))
        return makes_no_sense(question);
    question->raw_bytes = (size_t)head->raw_bytes;
    if (!head->is_packed) {
        question->raw = packed;
        return TUNDISH_OK;
    }
    raw = tnd_alloc((size_t)head->raw_bytes + 1);
    if (ZSTD_decompress(raw, question->raw_bytes, packed, packed_bytes) != question->raw_bytes) {
        free(raw);
        return makes_no_sense(question);
    }
    free(question->answer.bytes);
    question->answer.bytes = raw;
    question->raw = raw;
    if (head->raw_bytes >= RATE_BYTES) {
        pthread_mutex_lock(&far->lock);
        learn(&far->rates.unpack_ns, tnd_clock_ns() - began_ns, head->raw_bytes);
        pthread_mutex_unlock(&far->lock);
    }
    return TUNDISH_OK;
}

/* What the owner has to say, in question->raw. */
static tundish_status
look(struct far_question *question)
{
    struct far_head head;

    if (question->raw != NULL)
        return TUNDISH_OK;
    if (question->answer.byte_count < sizeof head)
        return makes_no_sense(question);
    memcpy(&head, question->answer.bytes, sizeof head);
    if (head.status > 0)
        return makes_no_sense(question);
    if (head.status != TUNDISH_OK)
        return tnd_fail((tundish_status)head.status, "%.*s",
                        (int)(question->answer.byte_count - sizeof head),
                        (const char *)question->answer.bytes + sizeof head);
    return unpack(question, &head);
}

static tundish_status
wait_for(struct far_question *question)
{
    const struct far_options *options = &question->far->options;

    return link_wait_for_one(options->link, question->owner, has_come, question, -1, NULL);
}

static int
compare(const void *a, const void *b)
{
    const struct far_row *x = a, *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return 0;
}

static size_t
drop_doubles(struct far_row *rows, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare(&rows[kept - 1], &rows[i]) != 0)
            rows[kept++] = rows[i];
        else if (rows[i].bytes > rows[kept - 1].bytes)
            rows[kept - 1].bytes = rows[i].bytes;
    return kept;
}

static uint32_t
owner_of(const struct far_rows *rows, size_t row)
{
    return table_file(rows->files, rows->rows[row].file)->owner;
}

static void
add_row(struct far_text *text, const struct far_row *row)
{
    far_text_add(text, &row->offset, sizeof row->offset);
    far_text_add(text, &row->bytes, sizeof row->bytes);
}

/* Rows of one owner from `first` on, as many as go into a question. Returns the row behind them. */
static size_t
ask_some(struct far_rows *rows, size_t first, uint32_t owner)
{
    struct far_text text = { 0 };
    uint64_t bytes = 0;
    size_t next = first;

    while (next < rows->count && owner_of(rows, next) == owner &&
           (bytes == 0 || bytes + rows->rows[next].bytes <= QUESTION_BYTES)) {
        uint32_t file = rows->rows[next].file;
        size_t end = next;

        for (; end < rows->count && rows->rows[end].file == file &&
               (bytes == 0 || bytes + rows->rows[end].bytes <= QUESTION_BYTES);
             end++) {
            rows->question_of[end] = rows->question_count;
            rows->at[end] = (size_t)bytes;
            bytes += rows->rows[end].bytes;
        }
        far_text_add_file(&text, table_file(rows->files, file), (uint32_t)(end - next));
        for (; next < end; next++)
            add_row(&text, &rows->rows[next]);
    }
    rows->bytes += bytes;
    if ((rows->question_count & (rows->question_count - 1)) == 0)
        rows->questions =
            tnd_realloc(rows->questions, rows->question_count == 0 ? 1 : 2 * rows->question_count,
                        sizeof(struct far_question *));
    rows->questions[rows->question_count++] = ask(rows->far, owner, FAR_ASK_ROWS, &text);
    free(text.bytes);
    return next;
}

struct far_rows *
far_ask(struct far *far, struct source_files *files, struct far_row *wanted, size_t count)
{
    struct far_rows *rows = tnd_zalloc(1, sizeof *rows);

    pthread_mutex_init(&rows->lock, NULL);
    if (count > 0)
        qsort(wanted, count, sizeof *wanted, compare);
    rows->far = far;
    rows->files = files;
    rows->count = drop_doubles(wanted, count);
    rows->rows = tnd_alloc((rows->count + 1) * sizeof *rows->rows);
    memcpy(rows->rows, wanted, rows->count * sizeof *wanted);
    rows->question_of = tnd_zalloc(rows->count + 1, sizeof *rows->question_of);
    rows->at = tnd_zalloc(rows->count + 1, sizeof *rows->at);
    for (size_t i = 0; i < rows->count;)
        i = ask_some(rows, i, owner_of(rows, i));
    return rows;
}

uint64_t
far_bytes(const struct far_rows *rows)
{
    return rows->bytes;
}

static const struct far_row *
find(const struct far_rows *rows, const struct far_row *row)
{
    const struct far_row *found =
        rows->count > 0 ? bsearch(row, rows->rows, rows->count, sizeof *row, compare) : NULL;

    return found != NULL && found->bytes >= row->bytes ? found : NULL;
}

bool
far_has(const struct far_rows *rows, const struct far_row *row)
{
    return find(rows, row) != NULL;
}

/* The answer must have the bytes that its rows were said to have. */
static tundish_status
check_bytes(const struct far_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct far_question *question = rows->questions[rows->question_of[i]];

        if (rows->at[i] + rows->rows[i].bytes > question->raw_bytes)
            return makes_no_sense(question);
    }
    return TUNDISH_OK;
}

tundish_status
far_wait(struct far_rows *rows)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < rows->question_count && status == TUNDISH_OK; i++)
        status = wait_for(rows->questions[i]);
    if (status != TUNDISH_OK)
        return status;
    pthread_mutex_lock(&rows->lock);
    for (uint32_t i = 0; i < rows->question_count && status == TUNDISH_OK; i++)
        status = look(rows->questions[i]);
    if (status == TUNDISH_OK)
        status = check_bytes(rows);
    pthread_mutex_unlock(&rows->lock);
    return status;
}

const uint8_t *
far_find(const struct far_rows *rows, const struct far_row *row)
{
    const struct far_row *found = find(rows, row);
    size_t index = (size_t)(found - rows->rows);

    must(found != NULL);
    return rows->questions[rows->question_of[index]]->raw + rows->at[index];
}

void
far_rows_close(struct far_rows *rows)
{
    if (rows == NULL)
        return;
    for (uint32_t i = 0; i < rows->question_count; i++)
        question_close(rows->questions[i]);
    pthread_mutex_destroy(&rows->lock);
    free(rows->questions);
    free(rows->question_of);
    free(rows->at);
    free(rows->rows);
    free(rows);
}

/* What has come is another machine's: offsets go up, lengths are possible. */
static bool
take_records(struct byte_view from, struct record_writer *writer, bool *ret_is_over)
{
    uint64_t count;
    uint8_t is_over;

    if (!far_take(&from, &is_over, 1) || !far_take(&from, &count, sizeof count) ||
        count != from.size / FAR_ROW_BYTES || from.size % FAR_ROW_BYTES != 0)
        return false;
    while (from.size > 0) {
        uint64_t offset;
        uint32_t length;

        (void)far_take(&from, &offset, sizeof offset);
        (void)far_take(&from, &length, sizeof length);
        if (offset < writer->end || offset > UINT64_MAX / 4 || length > RECORD_BYTES_MAX)
            return false;
        record_writer_add(writer, offset, length);
    }
    *ret_is_over = is_over != 0;
    return is_over != 0 || count > 0;
}

tundish_status
far_scan(struct far *far, const struct source_file *file, uint64_t first,
         struct record_writer *writer, bool *ret_is_over)
{
    struct far_text text = { 0 };
    struct far_question *question;
    tundish_status status;

    far_text_add_file(&text, file, 0);
    far_text_add(&text, &first, sizeof first);
    question = ask(far, file->owner, FAR_ASK_RECORDS, &text);
    free(text.bytes);
    status = wait_for(question);
    if (status == TUNDISH_OK)
        status = look(question);
    if (status == TUNDISH_OK &&
        !take_records((struct byte_view){ question->raw, question->raw_bytes }, writer,
                      ret_is_over))
        status = makes_no_sense(question);
    question_close(question);
    return status;
}
