/* test_helper_wire.c - parts asked for and answered over the wire: what is said in earnest makes
 * the same rows, and what is damaged does no harm to either end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "order/run.h"
#include "rig/helper_pair.h"
#include "session/served.h"
#include "unit/test_file.h"

static struct helper_pair pair;
static struct portable_bytes ask, answer;

static void
open_pair(const char *stages, const char *deliver)
{
    helper_pair_open(&pair, served_folder, stages, deliver);
    assert_true(helper_pair_deal(&pair));
}

static int
forget_pair(void **state)
{
    (void)state;
    helper_pair_close(&pair);
    free(ask.bytes);
    free(answer.bytes);
    ask = answer = (struct portable_bytes){ 0 };
    return 0;
}

static struct byte_view
view(const struct portable_bytes *bytes)
{
    return (struct byte_view){ bytes->bytes, bytes->used };
}

/* The status that the helper answers with. */
static int32_t
answered(void)
{
    struct helper_answer head;

    assert_int_equal(helper_pair_answer(&pair, view(&ask), &answer), TUNDISH_OK);
    assert_true(answer.used >= sizeof head);
    memcpy(&head, answer.bytes, sizeof head);
    return head.status;
}

/* The line takes what the helper answers in earnest. */
static struct helper_made
make_part(void)
{
    struct helper_made made = { 0 };

    helper_pair_ask(&pair, &ask);
    assert_int_equal(answered(), TUNDISH_OK);
    assert_int_equal(helper_pair_take(&pair, view(&answer), false, &made), TUNDISH_OK);
    return made;
}

/* Ask for an element of the stream's root that a test makes up. */
static int32_t
answered_to(const uint64_t *words, uint64_t rows)
{
    const struct plan_node *root = pair.session.plan->graph->root;
    const struct portable_elements elements = { words, 1, root->width, root->run_words };
    struct helper_ask head = helper_pair_head(&pair);
    struct portable_bytes bytes = { 0 };

    portable_write(&elements, &bytes);
    head.bytes = bytes.used;
    head.rows = head.in_place ? rows : 0;
    ask.used = 0;
    portable_add(&ask, &head, sizeof head);
    portable_add(&ask, bytes.bytes, bytes.used);
    free(bytes.bytes);
    return answered();
}

/* A batch of these words, two a row. */
static int32_t
answered_to_rows(const uint64_t *words, uint64_t count)
{
    uint64_t word = run_word(run_new(words, count, 2, 0));
    int32_t status = answered_to(&word, count);

    run_release(run_of_word(word));
    return status;
}

static void
rows_of_tensors_are_made(void **state)
{
    const int64_t *values;

    (void)state;
    open_pair("{from_tensor_slices: {x: {values: [5, 6, 7, 8], dtype: int64}}}, {batch: 4}", "");
    make_part();
    values = pair.share.slot.buffers[0].data;
    assert_int_equal(values[0], 5);
    assert_int_equal(values[3], 8);
}

static void
tensors_that_are_not_there_are_refused(void **state)
{
    const uint64_t last[2] = { 3, 0 }, beyond[2] = { 4, 0 }, far[2] = { UINT64_MAX / 8, 0 };

    (void)state;
    open_pair("{from_tensor_slices: {x: [5, 6, 7, 8], s: [a, b, c, d]}}, {batch: 4}", "");
    assert_int_equal(answered_to_rows(last, 1), TUNDISH_OK);
    assert_int_equal(answered_to_rows(beyond, 1), TUNDISH_E_CORRUPT);
    assert_int_equal(answered_to_rows(far, 1), TUNDISH_E_CORRUPT);
    assert_int_equal(answered_to_rows(last, 1), TUNDISH_OK);
}

/* The slices of a column that the outer element has: it may be empty. */
static void
slices_of_an_outer_column_that_it_has_not_are_refused(void **state)
{
    uint64_t *word;

    (void)state;
    open_pair("{from_tensor_slices: {v: [[1, 2], [3, 4]]}}, "
              "{flat_map: [{from_tensor_slices: {x: $v}}]}, {batch: 4}",
              "");
    make_part();
    helper_pair_ask(&pair, &ask);
    word = (uint64_t *)(void *)(ask.bytes + sizeof(struct helper_ask) + sizeof(uint64_t) + 48);
    assert_int_equal(*word, 0);
    *word = 2;
    assert_int_equal(answered(), TUNDISH_E_CORRUPT);
    *word = UINT64_MAX / 16;
    assert_int_equal(answered(), TUNDISH_E_CORRUPT);
}

static void
an_ask_for_no_rows_is_refused(void **state)
{
    (void)state;
    open_pair("{range: 8}, {batch: 4}", "");
    assert_int_equal(answered_to_rows(NULL, 0), TUNDISH_E_CORRUPT);
}

static void
a_batch_of_no_pieces_is_refused(void **state)
{
    uint64_t word;

    (void)state;
    open_pair("{range: 64}, {batch: 3}, {rebatch: 4}", "");
    make_part();
    word = run_word(run_join(NULL, 0, 1, 1, 0));
    assert_int_equal(answered_to(&word, 0), TUNDISH_E_CORRUPT);
    run_release(run_of_word(word));
}

/* The words of a dataset that the element is not of are not looked at, but cut with it. */
static void
runs_of_another_branch_are_refused(void **state)
{
    const struct plan_node *root;
    uint64_t words[PLAN_WIDTH_MAX];
    uint32_t other = 0;

    (void)state;
    open_pair("{concatenate: [[{range: 4}, {batch: 2}], [{range: 3}, {batch: 3}]]}", "");
    make_part();
    root = pair.session.plan->graph->root;
    memcpy(words, pair.step.round.slices[0].words, root->width * sizeof *words);
    assert_int_equal(answered_to(words, 0), TUNDISH_OK);
    while (other < root->width && ((root->run_words >> other & 1) == 0 || words[other] != 0))
        other++;
    assert_int_not_equal(other, root->width);
    words[other] = run_word(run_join(NULL, 0, 7, 0, 5));
    assert_int_equal(answered_to(words, 0), TUNDISH_E_CORRUPT);
    run_release(run_of_word(words[other]));
}

/* The reference of a row of the part: the line says it as it is then. */
static void
change_reference(uint64_t row, uint64_t offset, uint64_t length)
{
    const struct run *run = run_of_word(pair.step.round.slices[0].words[0]);
    uint64_t *words = (uint64_t *)(uintptr_t)run->words + 2 * row;

    words[0] = offset;
    words[1] = (words[1] & ~UINT64_C(0xffffffff)) | length;
}

static void
records_outside_of_their_file_are_refused(void **state)
{
    static const uint64_t lies[][2] = {
        { 0, 11 },         { 9, 2 },          { 11, 0 },        { UINT64_MAX, 1 },
        { UINT64_MAX, 0 }, { 0, UINT32_MAX }, { INT64_MAX, 1 }, { 1, UINT32_MAX },
    };

    (void)state;
    served_write("lines", "a\nb\nc\nd\ne\n");
    open_pair("{text_line: lines}, {batch: 2}", "");
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        change_reference(1, lies[i][0], lies[i][1]);
        helper_pair_reconnect(&pair);
        helper_pair_ask(&pair, &ask);
        assert_int_equal(answered(), TUNDISH_E_CORRUPT);
    }
    change_reference(1, 0, 10);
    helper_pair_reconnect(&pair);
    helper_pair_ask(&pair, &ask);
    assert_int_equal(answered(), TUNDISH_OK);
}

/* A number stands for a file as one source reads it. */
static void
a_file_of_another_source_is_refused(void **state)
{
    struct helper_name name;

    (void)state;
    served_write("lines", "a\nb\n");
    served_write("fixed", "abcd");
    open_pair(
        "{zip: {datasets: [[{text_line: {filenames: lines, name: a}}], "
        "[{fixed_length_record: {filenames: fixed, record_bytes: 1, name: b}}]]}}, {batch: 2}",
        "");
    helper_pair_ask(&pair, &ask);
    assert_int_equal(answered(), TUNDISH_OK);
    helper_pair_reconnect(&pair);
    helper_pair_ask(&pair, &ask);
    /* The second name is of the first one's source. */
    memcpy(&name, ask.bytes + sizeof(struct helper_ask), sizeof name);
    memcpy(ask.bytes + sizeof(struct helper_ask) + sizeof name + name.name_bytes, &name.node,
           sizeof name.node);
    assert_int_equal(answered(), TUNDISH_E_CORRUPT);
}

static void
names_that_are_said_again_take_no_room(void **state)
{
    size_t room;

    (void)state;
    served_write("lines", "a\nb\nc\nd\n");
    open_pair("{text_line: lines}, {batch: 2}", "");
    helper_pair_ask(&pair, &ask);
    assert_int_equal(answered(), TUNDISH_OK);
    room = pair.connection.files.room;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(answered(), TUNDISH_OK);
    assert_int_equal(pair.connection.files.room, room);
    assert_int_equal(pair.connection.files.count, 1);
}

/* The part has been made here meanwhile. */
static void
an_answer_that_nobody_wants_leaves_the_rows_alone(void **state)
{
    struct helper_answer refusal = { .status = TUNDISH_E_DATA, .bytes = 2 };
    uint64_t lie = UINT64_MAX;
    int64_t *values;

    (void)state;
    open_pair("{from_tensor_slices: {x: {values: [5, 6, 7, 8], dtype: int64}}}, {batch: 4}", "");
    make_part();
    values = pair.share.slot.buffers[0].data;
    memset(values, 0x55, 4 * sizeof *values);
    assert_int_equal(helper_pair_drop(&pair, view(&answer)), TUNDISH_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(values[i], INT64_C(0x5555555555555555));
    memcpy(answer.bytes + offsetof(struct helper_answer, bytes), &lie, sizeof lie);
    assert_int_equal(helper_pair_drop(&pair, view(&answer)), TUNDISH_E_CORRUPT);
    answer.used = 0;
    portable_add(&answer, &refusal, sizeof refusal);
    portable_add(&answer, "no", 2);
    assert_int_equal(helper_pair_drop(&pair, view(&answer)), TUNDISH_OK);
}

/* An answer in earnest, of which one member is a lie. */
static tundish_status
taken_with(size_t offset, uint64_t lie, size_t bytes)
{
    struct helper_made made = { 0 };
    uint8_t truth[8];
    tundish_status status;

    memcpy(truth, answer.bytes + offset, bytes);
    memcpy(answer.bytes + offset, &lie, bytes);
    status = helper_pair_take(&pair, view(&answer), false, &made);
    memcpy(answer.bytes + offset, truth, bytes);
    return status;
}

#define TAKEN_WITH(member, lie)                                                                    \
    taken_with(offsetof(struct helper_answer, member), lie,                                        \
               sizeof(((struct helper_answer *)NULL)->member))

static void
rows_that_were_not_left_out_are_not_counted(void **state)
{
    (void)state;
    open_pair("{range: 8}, {batch: 4}", "");
    make_part();
    assert_int_equal(TAKEN_WITH(skipped, 1), TUNDISH_E_CORRUPT);
    assert_int_equal(TAKEN_WITH(skipped, 0), TUNDISH_OK);
}

static void
no_more_rows_are_left_out_than_there_are(void **state)
{
    struct helper_made made;

    (void)state;
    served_write("numbers", "1\nx\n3\n4\n");
    open_pair("{text_line: numbers}, {decode_csv: {record_defaults: [int64], column_names: [v]}}, "
              "{batch: 4}",
              "on_error: skip");
    made = make_part();
    assert_int_equal(made.skipped, 1);
    assert_int_equal(TAKEN_WITH(skipped, 5), TUNDISH_E_CORRUPT);
    assert_int_equal(TAKEN_WITH(skipped, UINT64_MAX), TUNDISH_E_CORRUPT);
    /* It has three of four rows, of which none was bad. */
    assert_int_equal(TAKEN_WITH(skipped, 0), TUNDISH_E_CORRUPT);
}

/* The server may have it: it makes such a part itself. */
static void
a_file_that_is_missing_here_is_not_a_bad_row(void **state)
{
    (void)state;
    served_write("one.txt", "1");
    served_write("two.txt", "2");
    open_pair("{list_files: {file_pattern: '*.txt', shuffle: false}}, "
              "{read_file: {columns: [value]}}, {batch: 2}",
              "on_error: skip");
    make_part();
    served_remove("two.txt");
    assert_int_equal(answered(), TUNDISH_E_DATA);
    served_remove("one.txt");
}

/* A slice of fewer rows, whose columns fit together. */
static void
a_slice_of_other_rows_is_refused(void **state)
{
    struct helper_made made = { 0 };

    (void)state;
    open_pair("{from_tensor_slices: {s: [a, b, c, d, e, f]}}, {batch: 4}", "");
    make_part();
    assert_true(helper_pair_deal(&pair)); /* of two rows */
    assert_int_equal(helper_pair_take(&pair, view(&answer), false, &made), TUNDISH_E_CORRUPT);
    make_part();
}

static void
a_long_answer_that_does_not_come_takes_no_memory(void **state)
{
    struct helper_made made = { 0 };
    uint64_t bytes = HELPER_ANSWER_BYTES;

    (void)state;
    open_pair("{from_tensor_slices: {s: [a, b, c, d]}}, {batch: 4}", "");
    make_part();
    memcpy(answer.bytes + offsetof(struct helper_answer, bytes), &bytes, sizeof bytes);
    assert_int_not_equal(helper_pair_take(&pair, view(&answer), false, &made), TUNDISH_OK);
    assert_true(pair.line.answer.room <= 2 << 20);
}

static void
a_sentence_forges_no_line_of_the_log(void **state)
{
    static const char text[] = "no\nhelpers: all is well";
    struct helper_answer head = { .status = TUNDISH_E_DATA, .bytes = sizeof text - 1 };
    struct helper_made made = { 0 };

    (void)state;
    open_pair("{range: 8}, {batch: 4}", "");
    portable_add(&answer, &head, sizeof head);
    portable_add(&answer, text, sizeof text - 1);
    assert_int_equal(helper_pair_take(&pair, view(&answer), false, &made), TUNDISH_E_DATA);
    assert_null(strchr(tnd_error_text(), '\n'));
    assert_non_null(strstr(tnd_error_text(), "all is well"));
}

/* It is found before the helper does anything. */
static void
a_changed_byte_of_an_ask_is_found(void **state)
{
    size_t all;

    (void)state;
    served_write("lines", "a\nb\nc\nd\n");
    open_pair("{text_line: lines}, {batch: 2}", "");
    helper_pair_ask(&pair, &ask);
    all = ask.used + 2 * HELPER_SEAL_BYTES;
    for (pair.changed = 1; pair.changed <= all; pair.changed++) {
        assert_int_equal(helper_pair_answer(&pair, view(&ask), &answer), TUNDISH_E_CORRUPT);
        assert_int_equal(answer.used, 0);
        assert_int_equal(pair.connection.files.count, 0);
    }
    pair.changed = 0;
    assert_int_equal(answered(), TUNDISH_OK);
}

/* In its slot, beside it, and as a slice. */
static void
a_changed_byte_of_an_answer_is_found(void **state)
{
    static const char *const stages[] = {
        "{from_tensor_slices: {x: [5, 6, 7, 8]}}, {batch: 4}",
        "{from_tensor_slices: {s: [a, b, c, d]}}, {batch: 4}",
    };
    struct helper_made made = { 0 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        size_t all;

        open_pair(stages[i], "");
        make_part();
        all = answer.used + 2 * HELPER_SEAL_BYTES;
        for (pair.changed = 1; pair.changed <= all; pair.changed++)
            for (int apart = 0; apart < 2; apart++)
                assert_int_equal(helper_pair_take(&pair, view(&answer), apart, &made),
                                 TUNDISH_E_CORRUPT);
        for (pair.changed = 1; pair.changed <= all; pair.changed++)
            assert_int_equal(helper_pair_drop(&pair, view(&answer)), TUNDISH_E_CORRUPT);
        pair.changed = 0;
        make_part();
        if (i == 0)
            helper_pair_close(&pair);
    }
}

/* The only file's, in the request. */
static void
change_sum(uint64_t to)
{
    memcpy(ask.bytes + sizeof(struct helper_ask) + offsetof(struct helper_name, sum), &to,
           sizeof to);
}

static uint32_t
flags_of_answer(void)
{
    struct helper_answer head;

    memcpy(&head, answer.bytes, sizeof head);
    return head.flags;
}

static void
files_of_the_same_sum_are_said_to_be_the_same(void **state)
{
    (void)state;
    served_write("lines", "a\nb\nc\nd\n");
    open_pair("{text_line: lines}, {batch: 2}", "");
    helper_pair_ask(&pair, &ask);
    assert_int_equal(answered(), TUNDISH_OK);
    assert_int_equal(flags_of_answer(), HELPER_HAS_SAME_FILES);
    helper_pair_reconnect(&pair);
    helper_pair_ask(&pair, &ask);
    change_sum(0);
    assert_int_equal(answered(), TUNDISH_OK);
    assert_int_equal(flags_of_answer(), 0);
}

/* Not a row is made of it, then or later. */
static void
a_file_of_another_sum_ends_the_work(void **state)
{
    struct helper_made made = { 0 };

    (void)state;
    served_write("lines", "a\nb\nc\nd\n");
    open_pair("{text_line: lines}, {batch: 2}", "");
    helper_pair_ask(&pair, &ask);
    change_sum(77);
    assert_int_equal(answered(), TUNDISH_E_DATA);
    assert_int_equal(flags_of_answer(), HELPER_HAS_OTHER_FILE);
    assert_int_equal(helper_pair_take(&pair, view(&answer), false, &made), TUNDISH_E_DATA);
    assert_int_equal(made.flags, HELPER_HAS_OTHER_FILE);
    assert_non_null(strstr(tnd_error_text(), "lines has other bytes here than at the server"));
    assert_true(helper_pair_deal(&pair));
    helper_pair_ask(&pair, &ask);
    assert_int_equal(answered(), TUNDISH_E_DATA);
}

/* The server has made it after the file was named. */
static void
a_sum_may_come_later(void **state)
{
    struct helper_name name = { .size = UINT64_MAX };
    struct helper_ask head;
    struct portable_bytes late = { 0 };

    (void)state;
    served_write("lines", "a\nb\nc\nd\n");
    open_pair("{text_line: lines}, {batch: 2}", "");
    helper_pair_ask(&pair, &ask);
    memcpy(&name, ask.bytes + sizeof head, sizeof name);
    change_sum(0);
    assert_int_equal(answered(), TUNDISH_OK);
    assert_int_equal(flags_of_answer(), 0);

    helper_pair_ask(&pair, &ask); /* which names the file no more */
    memcpy(&head, ask.bytes, sizeof head);
    name.node = HELPER_NO_NODE;
    name.name_bytes = 0;
    for (int is_right = 1; is_right >= 0; is_right--) {
        struct helper_ask more = head;

        name.sum += !is_right;
        more.name_count++;
        more.bytes += sizeof name;
        late.used = 0;
        portable_add(&late, &more, sizeof more);
        portable_add(&late, &name, sizeof name);
        portable_add(&late, ask.bytes + sizeof head, ask.used - sizeof head);
        assert_int_equal(helper_pair_answer(&pair, view(&late), &answer), TUNDISH_OK);
        assert_int_equal(flags_of_answer(),
                         is_right ? HELPER_HAS_SAME_FILES : HELPER_HAS_OTHER_FILE);
    }
    free(late.bytes);
}

static void
the_sum_of_a_file_that_was_not_named_is_refused(void **state)
{
    const struct helper_name name = { .node = HELPER_NO_NODE, .number = 1000, .sum = 5 };
    struct helper_ask head;

    (void)state;
    served_write("lines", "a\nb\nc\nd\n");
    open_pair("{text_line: lines}, {batch: 2}", "");
    head = helper_pair_head(&pair);
    head.name_count = 1;
    head.bytes = sizeof name;
    portable_add(&ask, &head, sizeof head);
    portable_add(&ask, &name, sizeof name);
    assert_int_equal(answered(), TUNDISH_E_CORRUPT);
}

/* Of a file of another content, as the server has it now, nothing is used. */
static void
files_that_rows_name_are_compared_before_rows_are_used(void **state)
{
    struct helper_made made = { 0 };
    bool differs = false;

    (void)state;
    served_write("one.txt", "1");
    open_pair("{list_files: {file_pattern: '*.txt', shuffle: false}}, "
              "{read_file: {columns: [value]}}, {batch: 1}",
              "");
    make_part();
    assert_int_equal(helper_pair_take(&pair, view(&answer), false, &made), TUNDISH_OK);
    assert_int_equal(helper_line_compare_reads(&pair.line, &differs), TUNDISH_OK);
    assert_false(differs);
    served_write("one.txt", "2");
    assert_int_equal(helper_line_compare_reads(&pair.line, &differs), TUNDISH_E_CORRUPT);
    assert_true(differs);
    assert_non_null(strstr(tnd_error_text(), "one.txt has other bytes there than"));
    served_remove("one.txt");
    differs = false;
    assert_int_equal(helper_line_compare_reads(&pair.line, &differs), TUNDISH_E_DATA);
    assert_false(differs);
}

static tundish_status
compare_noted(const char *path, size_t bytes, uint64_t version, bool *ret_differs)
{
    const struct helper_own own = { pair.session.plan->file, pair.sums };
    const struct helper_read read = { .version = version, .path_bytes = (uint32_t)bytes };
    struct portable_bytes noted = { 0 };
    tundish_status status;

    portable_add(&noted, &read, sizeof read);
    portable_add(&noted, path, strlen(path));
    status = helper_reads_compare(&own, view(&noted), ret_differs);
    free(noted.bytes);
    return status;
}

static void
an_object_without_a_version_can_not_be_compared(void **state)
{
    static const char url[] = "http://127.0.0.1:1/object";
    bool differs = false;

    (void)state;
    open_pair("{from_tensor_slices: {x: [5, 6, 7, 8]}}, {batch: 4}", "");
    assert_int_equal(compare_noted(url, strlen(url), 0, &differs), TUNDISH_E_PLACE);
    assert_false(differs);
    helper_sums_note(pair.sums, url, 5);
    assert_int_equal(compare_noted(url, strlen(url), 5, &differs), TUNDISH_OK);
    assert_int_equal(compare_noted(url, strlen(url) + 1, 5, &differs), TUNDISH_E_CORRUPT);
    assert_int_equal(compare_noted("a", 0, 5, &differs), TUNDISH_E_CORRUPT);
    assert_int_equal(compare_noted("/dev/null", 9, 5, &differs), TUNDISH_E_DATA);
    assert_false(differs);
}

/* More than there is room for at first, and a version that is told anew. */
static void
versions_of_many_names_are_kept(void **state)
{
    char name[32];

    (void)state;
    open_pair("{from_tensor_slices: {x: [5, 6, 7, 8]}}, {batch: 4}", "");
    assert_int_equal(helper_sums_known(pair.sums, "u0"), 0);
    for (uint64_t turn = 1; turn < 3; turn++)
        for (uint64_t i = 0; i < 3000; i++) {
            snprintf(name, sizeof name, "u%llu", (unsigned long long)i);
            helper_sums_note(pair.sums, name, turn + i);
            assert_int_equal(helper_sums_known(pair.sums, name), turn + i);
        }
    assert_int_equal(helper_sums_known(pair.sums, "u2999"), 3001);
}

/* What was made under zstd elsewhere is compared by its values. */
static void
other_values_under_zstd_are_found(void **state)
{
    struct helper_made made = { 0 };
    const struct slot *came;
    struct slot_buffer *local;

    (void)state;
    open_pair("{range: 4000}, {cast: {columns: [value], dtype: float32}}, {batch: 2000}",
              "compression: zstd");
    helper_pair_ask(&pair, &ask);
    assert_int_equal(answered(), TUNDISH_OK);
    assert_int_equal(helper_pair_take(&pair, view(&answer), true, &made), TUNDISH_OK);
    came = &pair.line.slots[0];
    assert_int_equal(came->buffers[0].codec.number, TND_CODEC_ZSTD);
    memcpy(pair.share.slot.columns[0].shape, came->columns[0].shape, sizeof(int64_t));
    local = &pair.share.slot.buffers[0];
    *local = came->buffers[0];
    assert_true(helper_line_is_same(&pair.line, &pair.part));
    local->codec = (struct tnd_codec){ 0 };
    local->data = calloc(1, local->decoded_bytes);
    local->stored_bytes = local->decoded_bytes;
    assert_false(helper_line_is_same(&pair.line, &pair.part));
}

static void
expect_slice(uint32_t replica, const int64_t *values, size_t bytes)
{
    const struct slot *came = &pair.line.slots[replica];

    assert_int_equal(came->columns[0].shape[0], bytes / 16);
    assert_int_equal(came->columns[0].shape[1], 2);
    assert_int_equal(came->buffers[0].stored_bytes, bytes);
    assert_memory_equal(came->buffers[0].data, values, bytes);
}

/* They are cut from a batch that is as wide as its longest row. */
static void
slices_of_a_batch_are_made_together(void **state)
{
    static const int64_t slices[3][4] = { { 1, 0, 2, 3 }, { 4, 0, 5, 0 }, { 6, 0 } };
    struct share shares[3];
    struct helper_ask head;
    struct helper_made made;

    (void)state;
    served_write("rows", "{\"a\": [1]}\n{\"a\": [2, 3]}\n{\"a\": [4]}\n{\"a\": [5]}\n"
                         "{\"a\": [6]}\n{\"a\": \"x\"}\n");
    helper_pair_open_for(&pair, 3, served_folder,
                         "{text_line: rows}, {decode_json: {features: {a: {type: Ragged, dtype: "
                         "int64}}}}, {padded_batch: 6}",
                         "on_error: skip");
    assert_true(helper_pair_deal(&pair));
    for (int r = 0; r < 3; r++)
        shares[r] = (struct share){ .fill = &pair.session.fill };
    pair.step.shares = shares;
    pair.part.more = 2;
    made = make_part();
    assert_int_equal(made.skipped, 1);
    expect_slice(0, slices[0], 32);
    expect_slice(1, slices[1], 32);
    expect_slice(2, slices[2], 16);
    memcpy(&head, ask.bytes, sizeof head);
    assert_int_equal(head.more, 2);
    head.more = UINT32_MAX;
    memcpy(ask.bytes, &head, sizeof head);
    assert_int_equal(answered(), TUNDISH_E_CORRUPT);
    head.more = 3; /* one more than there is */
    head.bytes++;
    memcpy(ask.bytes, &head, sizeof head);
    portable_add(&ask, "", 1);
    assert_int_equal(answered(), TUNDISH_E_CORRUPT);
}

#define OF_PAIR(test) cmocka_unit_test_teardown(test, forget_pair)

TEST_FILE(test_helper_wire)
{
    const struct CMUnitTest tests[] = {
        OF_PAIR(rows_of_tensors_are_made),
        OF_PAIR(slices_of_a_batch_are_made_together),
        OF_PAIR(tensors_that_are_not_there_are_refused),
        OF_PAIR(slices_of_an_outer_column_that_it_has_not_are_refused),
        OF_PAIR(an_ask_for_no_rows_is_refused),
        OF_PAIR(a_batch_of_no_pieces_is_refused),
        OF_PAIR(runs_of_another_branch_are_refused),
        OF_PAIR(records_outside_of_their_file_are_refused),
        OF_PAIR(a_file_of_another_source_is_refused),
        OF_PAIR(names_that_are_said_again_take_no_room),
        OF_PAIR(an_answer_that_nobody_wants_leaves_the_rows_alone),
        OF_PAIR(rows_that_were_not_left_out_are_not_counted),
        OF_PAIR(no_more_rows_are_left_out_than_there_are),
        OF_PAIR(a_file_that_is_missing_here_is_not_a_bad_row),
        OF_PAIR(a_slice_of_other_rows_is_refused),
        OF_PAIR(a_long_answer_that_does_not_come_takes_no_memory),
        OF_PAIR(a_sentence_forges_no_line_of_the_log),
        OF_PAIR(a_changed_byte_of_an_ask_is_found),
        OF_PAIR(a_changed_byte_of_an_answer_is_found),
        OF_PAIR(files_of_the_same_sum_are_said_to_be_the_same),
        OF_PAIR(a_file_of_another_sum_ends_the_work),
        OF_PAIR(a_sum_may_come_later),
        OF_PAIR(the_sum_of_a_file_that_was_not_named_is_refused),
        OF_PAIR(files_that_rows_name_are_compared_before_rows_are_used),
        OF_PAIR(an_object_without_a_version_can_not_be_compared),
        OF_PAIR(versions_of_many_names_are_kept),
        OF_PAIR(other_values_under_zstd_are_found),
    };

    return cmocka_run_group_tests(tests, served_make_folder, served_remove_folder);
}
