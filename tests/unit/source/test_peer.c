/* test_peer.c - rows of other nodes: asked for, answered, and believed only as far as they can be.
 *
 * Two nodes in one process: what they send each other passes through here, where it may be held
 * back, spoilt, or never come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../unit_draw.h"
#include "content/records/other_files.h"
#include "core/bytes.h"
#include "core/memory.h"
#include "source/files/ask_ahead.h"
#include "source/files/files_private.h"
#include "source/peer/peer_ahead.h"
#include "source/peer/peer_private.h"
#include "source/scan/scan.h"
#include "unit/test_file.h"

enum { ASKER, OWNER, NODES };
enum { LARGE_BYTES = 4 << 20, SMALL_BYTES = 5000, LINES = 70000, QUEUE_MAX = 64 };

/* A node's end of the wire. */
struct end {
    uint32_t rank;
    pthread_mutex_t lock; /* of being handed something */
    peer_hear *hear;
    void *user;
};

static struct wire {
    pthread_mutex_t lock;
    struct end ends[NODES];
    bool owner_is_lost, holds_answers;
    struct peer_message held[QUEUE_MAX];
    size_t held_count;
    int64_t ns_a_byte;
    void (*spoil)(struct peer_message *answer);

    /* What went over it. */
    uint32_t requests, answers;
    uint64_t answer_bytes;
    int32_t last_status;
} wire;

static void
deliver(const struct peer_message *message, uint32_t to)
{
    struct end *end = &wire.ends[to];

    pthread_mutex_lock(&end->lock);
    if (end->hear != NULL)
        end->hear(end->user, message);
    else
        free(message->bytes);
    pthread_mutex_unlock(&end->lock);
}

/* True: it is kept back. */
static bool
note_answer(struct peer_message *message)
{
    struct peer_head head = { 0 };
    bool is_held;

    if (wire.spoil != NULL)
        wire.spoil(message);
    if (message->byte_count >= sizeof head)
        memcpy(&head, message->bytes, sizeof head);
    pthread_mutex_lock(&wire.lock);
    is_held = wire.holds_answers;
    if (is_held)
        wire.held[wire.held_count++] = *message;
    wire.last_status = head.status;
    wire.answer_bytes += message->byte_count;
    wire.answers++;
    pthread_mutex_unlock(&wire.lock);
    return is_held;
}

static void
transport_send(void *context, uint32_t to, uint64_t kind, uint64_t number, const void *bytes,
               size_t byte_count)
{
    const struct end *end = context;
    struct peer_message message = {
        .from = end->rank, .kind = kind, .number = number, .byte_count = byte_count
    };

    message.bytes = tnd_alloc(byte_count + 1);
    memcpy(message.bytes, bytes, byte_count);
    message.timed_bytes = byte_count;
    message.took_ns = (int64_t)byte_count * wire.ns_a_byte;
    if (kind == PEER_ANSWER && note_answer(&message))
        return;
    if (kind == PEER_ASK_ROWS || kind == PEER_ASK_RECORDS)
        wire.requests++; /* in one thread, unlike answers */
    deliver(&message, to);
}

static void
transport_listen(void *context, peer_hear *hear, void *user)
{
    struct end *end = context;

    pthread_mutex_lock(&end->lock);
    end->hear = hear;
    end->user = user;
    pthread_mutex_unlock(&end->lock);
}

static tundish_status
transport_wait(void *context, uint32_t from, bool (*is_here)(const void *waited),
               const void *waited)
{
    (void)context;
    assert_int_equal(from, OWNER);
    while (!is_here(waited)) {
        if (wire.owner_is_lost)
            return tnd_fail(TUNDISH_E_PEER_LOST, "the owner is lost");
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    }
    return TUNDISH_OK;
}

static uint64_t
transport_queued(void *context, uint32_t to)
{
    (void)context;
    (void)to;
    return 0;
}

static void
transport_name(void *context, uint32_t node, char *ret_name, size_t name_bytes)
{
    (void)context;
    snprintf(ret_name, name_bytes, "node %u", node);
}

static struct peer_transport
transport_of(uint32_t rank)
{
    return (struct peer_transport){
        .context = &wire.ends[rank],
        .node_count = NODES,
        .listen = transport_listen,
        .send = transport_send,
        .queued = transport_queued,
        .wait = transport_wait,
        .name = transport_name,
    };
}

static void
wait_for_answers(uint32_t count)
{
    uint32_t answers;

    do {
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
        pthread_mutex_lock(&wire.lock);
        answers = wire.answers;
        pthread_mutex_unlock(&wire.lock);
    } while (answers < count);
}

struct pair {
    char folder[64];
    struct catalogue catalogues[NODES];
    struct peers *peers[NODES];
    struct source_files *files; /* the asker's */
    uint8_t *large;
};

static void
write_file(const struct pair *pair, const char *name, const void *bytes, size_t byte_count)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", pair->folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, byte_count, file), byte_count);
    fclose(file);
}

static void
write_files(struct pair *pair)
{
    char *lines = tnd_alloc(LINES * 8);
    size_t used = 0;

    pair->large = tnd_alloc(LARGE_BYTES);
    for (size_t i = 0; i < LARGE_BYTES; i++) /* worth packing */
        pair->large[i] = (uint8_t)('a' + (i * i / 4096) % 17);
    write_file(pair, "large", pair->large, LARGE_BYTES);
    write_file(pair, "small", pair->large + 77, SMALL_BYTES);
    for (int i = 0; i < LINES; i++)
        used += (size_t)sprintf(lines + used, "%d\n", i);
    write_file(pair, "lines", lines, used);
    free(lines);
}

static int
open_pair(void **state)
{
    static const char *const names[] = { "large", "small", "lines", "secret" };
    struct pair *pair = tnd_zalloc(1, sizeof *pair);
    const char *name;
    uint32_t owners[2];

    wire = (struct wire){ .lock = PTHREAD_MUTEX_INITIALIZER };
    snprintf(pair->folder, sizeof pair->folder, "/tmp/tundish-peer-XXXXXX");
    assert_non_null(mkdtemp(pair->folder));
    write_files(pair);
    for (uint32_t rank = 0; rank < NODES; rank++) {
        struct peers_options options = { .transport = transport_of(rank),
                                         .catalogue = &pair->catalogues[rank],
                                         .root = pair->folder,
                                         .cache_folder = pair->folder };

        wire.ends[rank].rank = rank;
        pthread_mutex_init(&wire.ends[rank].lock, NULL);
        /* "secret" is served by nobody, though the asker believes so. */
        for (size_t i = 0; i < (rank == OWNER ? 3 : 4); i++)
            catalogue_add(&pair->catalogues[rank], names[i], i, OWNER, rank == OWNER);
        assert_int_equal(catalogue_finish(&pair->catalogues[rank], &name, owners), TUNDISH_OK);
        assert_int_equal(peers_open(&options, &pair->peers[rank]), TUNDISH_OK);
    }
    assert_int_equal(source_files_open(&(struct source_files_options){ .root = pair->folder,
                                                                       .cache_folder = pair->folder,
                                                                       .peers = pair->peers[ASKER],
                                                                       .are_local = true },
                                       &pair->files),
                     TUNDISH_OK);
    *state = pair;
    return 0;
}

static int
close_pair(void **state)
{
    struct pair *pair = *state;
    char command[128];

    source_files_close(pair->files);
    for (uint32_t rank = 0; rank < NODES; rank++) {
        peers_close(pair->peers[rank]);
        catalogue_close(&pair->catalogues[rank]);
    }
    for (size_t i = 0; i < wire.held_count; i++)
        free(wire.held[i].bytes);
    snprintf(command, sizeof command, "rm -r %s", pair->folder);
    assert_int_equal(system(command), 0);
    free(pair->large);
    free(pair);
    return 0;
}

static struct source_file *
enter(const struct pair *pair, const char *name)
{
    struct record_format format = { .scanner = &scanner_text_line };
    struct source_file *file = files_enter(pair->files, name, strlen(name), &format);

    assert_non_null(file->peers);
    return file;
}

static struct peer_rows *
ask_for(const struct pair *pair, const char *name, uint64_t offset, uint32_t bytes)
{
    struct peer_row row = { enter(pair, name), offset, bytes };

    return peer_ask(pair->peers[ASKER], &row, 1);
}

enum { WANTED = 600 };

static void
draw_rows(struct pair *pair, struct peer_row rows[WANTED])
{
    const struct source_file *large = enter(pair, "large"), *small = enter(pair, "small");

    for (int i = 0; i < WANTED; i++) {
        uint32_t bytes = (uint32_t)draw() % (6000);

        rows[i] = (struct peer_row){ large, draw() % (LARGE_BYTES - 6000), bytes };
        if (i % 5 == 1)
            rows[i] = (struct peer_row){ small, draw() % (100), bytes % 4000 };
        if (i % 7 == 2) /* the same again, longer or shorter */
            rows[i] = (struct peer_row){ rows[i - 1].file, rows[i - 1].offset, bytes % 4000 };
    }
    rows[17] = (struct peer_row){ large, 5, 3 << 20 }; /* longer than a request */
}

static void
rows_are_what_lies_in_the_owners_files(void **state)
{
    struct pair *pair = *state;
    struct peer_row rows[WANTED], wanted[WANTED];
    struct peer_rows *asked;

    draw_rows(pair, rows);
    memcpy(wanted, rows, sizeof rows);
    asked = peer_ask(pair->peers[ASKER], wanted, WANTED);
    assert_int_equal(peer_rows_wait(asked), TUNDISH_OK);
    assert_true(wire.requests >= 3);
    for (int i = 0; i < WANTED; i++) {
        size_t base = rows[i].file == enter(pair, "small") ? 77 : 0;

        assert_true(peer_rows_has(asked, &rows[i]));
        assert_memory_equal(peer_rows_find(asked, &rows[i]), pair->large + base + rows[i].offset,
                            rows[i].bytes);
    }
    rows[0].offset = LARGE_BYTES - 1;
    assert_false(peer_rows_has(asked, &rows[0]));
    peer_rows_close(asked);
}

static void
rows_come_packed_where_the_wire_is_slow(void **state)
{
    struct pair *pair = *state;
    uint64_t least = UINT64_MAX;

    wire.ns_a_byte = 1000; /* a MB a second */
    for (int i = 0; i < 20; i++) {
        uint64_t before = wire.answer_bytes;
        struct peer_rows *asked = ask_for(pair, "large", (uint64_t)i, 900000);
        struct peer_row row = { enter(pair, "large"), (uint64_t)i, 900000 };

        assert_int_equal(peer_rows_wait(asked), TUNDISH_OK);
        assert_memory_equal(peer_rows_find(asked, &row), pair->large + i, 900000);
        if (wire.answer_bytes - before < least)
            least = wire.answer_bytes - before;
        peer_rows_close(asked);
    }
    assert_true(least < 300000);
}

static void
rows_come_as_they_are_where_the_wire_is_fast(void **state)
{
    struct pair *pair = *state;

    for (int i = 0; i < 20; i++) {
        uint64_t before = wire.answer_bytes;
        struct peer_rows *asked = ask_for(pair, "large", (uint64_t)i, 900000);

        assert_int_equal(peer_rows_wait(asked), TUNDISH_OK);
        assert_true(wire.answer_bytes - before >= 900000);
        peer_rows_close(asked);
    }
}

static void
what_the_owner_cannot_read_is_its_error(void **state)
{
    struct peer_rows *asked = ask_for(*state, "small", SMALL_BYTES - 10, 11);

    assert_true(peer_rows_wait(asked) < 0);
    assert_non_null(strstr(tnd_error_text(), "small"));
    peer_rows_close(asked);
}

/* As Parquet is read: its format says what is in it, so it has a size and ranges, and no list of
 * records. Another node may ask for one all the same. */
static void
of_a_file_that_says_its_rows_itself_size_and_ranges_come(void **state)
{
    const struct pair *pair = *state;
    struct record_format format = { .scanner = &scanner_parquet, .numbers = { 7 } };
    struct source_file *file = files_enter(pair->files, "large", 5, &format);
    const size_t bytes = LARGE_BYTES - 1000;
    uint8_t *range = tnd_alloc(bytes);
    struct peer_buffer text = { 0 };
    struct peer_request *request;
    const uint64_t first = 0;

    assert_non_null(file->peers);
    assert_int_equal(peer_identify(file), TUNDISH_OK);
    assert_int_equal(file->identity.size, LARGE_BYTES);
    assert_int_equal(peer_read_range(file, range, bytes, 999), TUNDISH_OK);
    assert_memory_equal(range, pair->large + 999, bytes);
    assert_int_equal(peer_read_range(file, range, 2, LARGE_BYTES - 1), TUNDISH_E_DATA);
    assert_non_null(strstr(tnd_error_text(), "large: the file ends before byte"));
    free(range);

    peer_buffer_add_file(&text, file, 0);
    peer_buffer_add(&text, &first, sizeof first);
    request =
        peer_request_send(pair->peers[ASKER], OWNER, PEER_ASK_RECORDS, peer_buffer_view(&text));
    assert_int_equal(peer_request_wait(request), TUNDISH_E_CORRUPT);
    peer_request_close(request);
    ((struct peer_file *)(void *)text.bytes)->packing = PACKING_GZIP;
    request = peer_request_send(pair->peers[ASKER], OWNER, PEER_ASK_ROWS, peer_buffer_view(&text));
    assert_int_equal(peer_request_wait(request), TUNDISH_E_CORRUPT);
    peer_request_close(request);
    free(text.bytes);
}

static void
only_what_is_served_is_read(void **state)
{
    const struct pair *pair = *state;
    struct peer_rows *asked;

    write_file(pair, "secret", "shh", 3);
    asked = ask_for(pair, "secret", 0, 3);
    assert_int_equal(peer_rows_wait(asked), TUNDISH_E_DATA);
    assert_string_equal(tnd_error_text(), "secret: this node does not have the file");
    peer_rows_close(asked);
}

static void
whole_files_come_as_they_are_and_only_those_that_are_served(void **state)
{
    const struct pair *pair = *state;
    const struct other_files *others = source_other_files(pair->files);
    static const char *const names[] = { "small", "nowhere", "secret", "small\0", "large" };
    struct scratch *scratch = scratch_open();
    struct byte_view paths[5], bytes;
    struct asked_files *asked;

    write_file(pair, "secret", "shh", 3);
    for (int i = 0; i < 5; i++)
        paths[i] = (struct byte_view){ (const uint8_t *)names[i], strlen(names[i]) + (i == 3) };
    asked = others->ask(others->context, paths, 5);
    assert_int_equal(others->take(asked, 0, scratch, &bytes), TUNDISH_OK);
    assert_int_equal(bytes.size, SMALL_BYTES);
    assert_memory_equal(bytes.data, pair->large + 77, SMALL_BYTES);
    assert_int_equal(others->take(asked, 1, scratch, &bytes), TUNDISH_E_DATA);
    assert_non_null(strstr(tnd_error_text(), "nowhere: with distribute.files: local only files"));
    assert_int_equal(others->take(asked, 2, scratch, &bytes), TUNDISH_E_DATA);
    assert_string_equal(tnd_error_text(), "secret: this node does not have the file");
    assert_int_equal(others->take(asked, 3, scratch, &bytes), TUNDISH_E_DATA);
    others->close(asked); /* one has not been taken */
    assert_null(pair->peers[ASKER]->requests);
    scratch_close(scratch);
}

static void
a_lost_owner_is_an_error_and_a_late_answer_nobodys(void **state)
{
    const struct pair *pair = *state;
    struct peer_rows *asked;

    wire.holds_answers = true;
    asked = ask_for(pair, "small", 3, 100);
    wait_for_answers(1);
    wire.owner_is_lost = true;
    assert_int_equal(peer_rows_wait(asked), TUNDISH_E_PEER_LOST);
    peer_rows_close(asked);
    assert_int_equal(wire.held_count, 1);
    deliver(&wire.held[--wire.held_count], ASKER);
    assert_null(pair->peers[ASKER]->requests);
}

static void
answers_to_the_request_of_another_are_dropped(void **state)
{
    const struct pair *pair = *state;
    struct peer_rows *asked;
    struct peer_message other;
    struct peer_row row = { enter(pair, "small"), 3, 100 };

    wire.holds_answers = true;
    asked = ask_for(pair, "small", 3, 100);
    wait_for_answers(1);
    other = wire.held[0];
    other.bytes = tnd_alloc(other.byte_count);
    memset(other.bytes, 0xff, other.byte_count);
    other.from = ASKER; /* not who was asked */
    deliver(&other, ASKER);
    deliver(&wire.held[--wire.held_count], ASKER);
    assert_int_equal(peer_rows_wait(asked), TUNDISH_OK);
    assert_memory_equal(peer_rows_find(asked, &row), pair->large + 77 + 3, 100);
    peer_rows_close(asked);
}

static struct peer_head
head_of(const struct peer_message *message)
{
    struct peer_head head;

    memcpy(&head, message->bytes, sizeof head);
    return head;
}

static void
cut_head(struct peer_message *answer)
{
    answer->byte_count = sizeof(struct peer_head) - 1;
}

static void
cut_rows(struct peer_message *answer)
{
    answer->byte_count--;
}

static void
lie_about_bytes(struct peer_message *answer)
{
    struct peer_head head = head_of(answer);

    head.raw_bytes = UINT64_C(1) << 40;
    memcpy(answer->bytes, &head, sizeof head);
}

static void
give_too_little(struct peer_message *answer)
{
    struct peer_head head = head_of(answer);

    head.raw_bytes -= 5;
    answer->byte_count -= 5;
    memcpy(answer->bytes, &head, sizeof head);
}

static void
pretend_to_be_packed(struct peer_message *answer)
{
    struct peer_head head = head_of(answer);

    head.is_packed = 1;
    memcpy(answer->bytes, &head, sizeof head);
}

static void
claim_success_of_a_kind(struct peer_message *answer)
{
    struct peer_head head = head_of(answer);

    head.status = 3;
    memcpy(answer->bytes, &head, sizeof head);
}

static void
answers_without_sense_are_refused(void **state)
{
    static void (*const spoils[])(struct peer_message * answer) = {
        cut_head,
        cut_rows,
        lie_about_bytes,
        give_too_little,
        pretend_to_be_packed,
        claim_success_of_a_kind,
    };

    for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++) {
        struct peer_rows *asked;

        wire.spoil = spoils[i];
        asked = ask_for(*state, "small", 3, 100);
        assert_int_equal(peer_rows_wait(asked), TUNDISH_E_CORRUPT);
        assert_string_equal(tnd_error_text(), "node 1: malformed answer");
        peer_rows_close(asked);
    }
    wire.spoil = NULL;
}

/* As the other node might send them; the owner must answer each, and with an error. */
static void
put_request(struct pair *pair, enum peer_kind kind, const uint8_t *bytes, size_t byte_count)
{
    struct peer_message message = { .from = ASKER, .byte_count = byte_count };
    uint32_t answers = wire.answers;

    (void)pair;
    message.kind = kind;
    message.number = 1000 + answers;
    message.bytes = tnd_alloc(byte_count + 1);
    if (byte_count > 0)
        memcpy(message.bytes, bytes, byte_count);
    deliver(&message, OWNER);
    wait_for_answers(answers + 1);
}

static void
requests_without_sense_are_answered_with_an_error(void **state)
{
    struct pair *pair = *state;
    struct peer_buffer text = { 0 };
    uint64_t offset = 0;
    uint32_t bytes = 10;
    uint8_t noise[200];

    peer_buffer_add_file(&text, enter(pair, "small"), 1);
    peer_buffer_add(&text, &offset, sizeof offset);
    peer_buffer_add(&text, &bytes, sizeof bytes);
    put_request(pair, PEER_ASK_ROWS, text.bytes, text.used);
    assert_int_equal(wire.last_status, TUNDISH_OK);
    for (size_t cut = 1; cut < text.used; cut++) {
        put_request(pair, PEER_ASK_ROWS, text.bytes, cut);
        assert_true(wire.last_status < 0);
        put_request(pair, PEER_ASK_RECORDS, text.bytes, cut < 20 ? cut : 20);
        assert_true(wire.last_status < 0);
    }
    for (int i = 0; i < 300; i++) {
        for (size_t k = 0; k < sizeof noise; k++)
            noise[k] = (uint8_t)draw() % (256);
        memcpy(noise, text.bytes, (size_t)draw() % (40));
        put_request(pair, i % 2 == 0 ? PEER_ASK_ROWS : PEER_ASK_RECORDS, noise,
                    1 + (size_t)draw() % (sizeof noise));
    }
    free(text.bytes);
}

/* The columns of samples that are skipped go with the file, for the owner has to know them. */
static void
columns_of_samples_without_sense_are_answered_with_an_error(void **state)
{
    struct pair *pair = *state;
    struct byte_view extensions[] = { { (const uint8_t *)"jpg", 3 },
                                      { (const uint8_t *)"cls", 3 } };
    const struct sample_columns columns = { .count = 2,
                                            .columns = { { 0, 1 }, { 1, 1 } },
                                            .extension_count = 2,
                                            .extensions = extensions,
                                            .skip_missing = true };
    const struct record_format format = { .scanner = &scanner_webdataset,
                                          .numbers = { sample_columns_hash(&columns) },
                                          .samples = &columns };
    struct source_file *file = files_enter(pair->files, "small", 5, &format);
    struct peer_buffer text = { 0 };
    uint64_t offset = 0;
    uint32_t bytes = 10;
    size_t described;

    peer_buffer_add_file(&text, file, 1);
    described = text.used;
    peer_buffer_add(&text, &offset, sizeof offset);
    peer_buffer_add(&text, &bytes, sizeof bytes);
    put_request(pair, PEER_ASK_ROWS, text.bytes, text.used);
    assert_int_equal(wire.last_status, TUNDISH_OK);
    for (size_t cut = 1; cut < text.used; cut++) {
        put_request(pair, PEER_ASK_ROWS, text.bytes, cut);
        assert_true(wire.last_status < 0);
    }
    /* After the name, each byte of the columns counts: the hash says which they are. */
    for (size_t at = described - (3 * 4 + 2 * 7); at < described; at++) {
        text.bytes[at] ^= (uint8_t)(1 + draw() % 255);
        put_request(pair, PEER_ASK_ROWS, text.bytes, text.used);
        assert_true(wire.last_status < 0);
        peer_buffer_add_file(&(struct peer_buffer){ text.bytes, 0, text.room }, file, 1);
    }
    assert_int_equal(pair->peers[OWNER]->samples->hash, format.numbers[0]);
    assert_null(pair->peers[OWNER]->samples->next);
    free(text.bytes);
}

static void
records_are_those_that_the_owner_finds(void **state)
{
    const struct pair *pair = *state;
    struct record_writer writer = { .usual_gap = 1 };
    struct scan_work work = { 0 };
    uint64_t offset = 0;
    struct record_reader reader;
    uint64_t words[2];
    size_t got;

    for (; !work.is_over; work.record_count = writer.count)
        assert_int_equal(peer_scan_input.find(enter(pair, "lines"), &work, &writer), TUNDISH_OK);
    assert_int_equal(writer.count, LINES);
    reader = (struct record_reader){ .at = writer.bytes,
                                     .limit = writer.bytes + writer.used,
                                     .left = writer.count,
                                     .usual_gap = 1,
                                     .end_limit = UINT64_MAX };
    for (int i = 0; i < LINES; i++) {
        char line[16];
        size_t length = (size_t)sprintf(line, "%d", i);

        assert_true(record_reader_next(&reader, 0, words, 1, &got));
        assert_int_equal(got, 1);
        assert_int_equal(words[0], offset);
        assert_int_equal(words[1], length);
        offset += length + 1;
    }
    free(writer.bytes);
}

/* The second record begins before the first. */
static void
turn_records_round(struct peer_message *answer)
{
    uint8_t *first = answer->bytes + sizeof(struct peer_head) + PEER_RECORDS_HEAD;

    if (!head_of(answer).is_packed && answer->byte_count > 100)
        memset(first, 0x11, sizeof(uint64_t));
}

static void
records_that_cannot_be_are_refused(void **state)
{
    const struct pair *pair = *state;
    struct record_writer writer = { .usual_gap = 1 };
    struct scan_work work = { 0 };

    wire.spoil = turn_records_round;
    assert_int_equal(peer_scan_input.find(enter(pair, "lines"), &work, &writer), TUNDISH_E_CORRUPT);
    assert_false(work.is_damaged);
    wire.spoil = NULL;
    free(writer.bytes);
}

static void
ask_step(const struct pair *pair, uint64_t step, uint64_t offset)
{
    const struct source_file *file = enter(pair, "small");
    const uint64_t words[2] = { offset, reference_high(file) | 90 };
    struct ask_ahead *asking = ask_ahead_begin(pair->files);

    ask_ahead_add(asking, words, 10);
    ask_ahead_end(asking, 0, step);
}

static void
rows_asked_ahead_stay_until_their_step_is_forgotten(void **state)
{
    const struct pair *pair = *state;
    struct peer_row row = { enter(pair, "small"), 3, 100 };
    struct peer_ahead *ahead = files_peer_ahead(pair->files);
    struct scratch *scratch = scratch_open();
    struct peer_held held;
    struct peer_rows *rows;

    ask_step(pair, 1, 3);
    ask_step(pair, 2, 700);
    assert_int_equal(ask_ahead_bytes(pair->files), 200);
    peer_ahead_hold(ahead, scratch, &held);
    rows = peer_held_find(&held, &row);
    assert_non_null(rows);
    ask_ahead_forget(pair->files, 0, 1); /* while it is held */
    assert_int_equal(ask_ahead_bytes(pair->files), 100);
    assert_int_equal(peer_rows_wait(rows), TUNDISH_OK);
    assert_memory_equal(peer_rows_find(rows, &row), pair->large + 77 + 3, 100);
    peer_ahead_release(ahead, &held);
    peer_ahead_hold(ahead, scratch, &held);
    assert_null(peer_held_find(&held, &row));
    row.offset = 700;
    assert_non_null(peer_held_find(&held, &row));
    peer_ahead_release(ahead, &held);
    scratch_close(scratch);
}

static void
rows_that_are_here_are_not_asked_for(void **state)
{
    const struct pair *pair = *state;
    struct record_format format = { .scanner = &scanner_text_line };
    const struct source_file *file = files_enter(pair->files, "other", 5, &format);
    const uint64_t words[2] = { 0, reference_high(file) | 5 };
    struct ask_ahead *asking = ask_ahead_begin(pair->files);

    ask_ahead_add(asking, words, 0);
    ask_ahead_end(asking, 0, 0);
    assert_int_equal(ask_ahead_bytes(pair->files), 0);
    assert_int_equal(wire.requests, 0);
}

#define test(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

TEST_FILE(test_peer)
{
    const struct CMUnitTest tests[] = {
        test(rows_are_what_lies_in_the_owners_files),
        test(rows_come_packed_where_the_wire_is_slow),
        test(rows_come_as_they_are_where_the_wire_is_fast),
        test(what_the_owner_cannot_read_is_its_error),
        test(of_a_file_that_says_its_rows_itself_size_and_ranges_come),
        test(only_what_is_served_is_read),
        test(whole_files_come_as_they_are_and_only_those_that_are_served),
        test(a_lost_owner_is_an_error_and_a_late_answer_nobodys),
        test(answers_to_the_request_of_another_are_dropped),
        test(answers_without_sense_are_refused),
        test(requests_without_sense_are_answered_with_an_error),
        test(columns_of_samples_without_sense_are_answered_with_an_error),
        test(records_are_those_that_the_owner_finds),
        test(records_that_cannot_be_are_refused),
        test(rows_asked_ahead_stay_until_their_step_is_forgotten),
        test(rows_that_are_here_are_not_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
