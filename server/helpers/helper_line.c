/* helper_line.c - see helper_line.h. */
#include "helpers/helper_line.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"
#include "core/printable.h"
#include "helpers/helper_reads.h"
#include "source/files/files_private.h"
#include "source/scan/scan.h"
#include "source/source.h"

static void
make_room_for_slices(struct helper_line *line, uint32_t count)
{
    if (count <= line->slot_count)
        return;
    line->slots = tnd_realloc(line->slots, count, sizeof *line->slots);
    while (line->slot_count < count)
        lane_slot_init_as(&line->session->spec, &line->slots[line->slot_count++]);
}

void
helper_line_open(struct helper_line *line, struct session *session, struct byte_view key,
                 struct helper_sums *sums)
{
    *line = (struct helper_line){
        .session = session,
        .key = key,
        .made_sums = sums,
        .wire = { .socket = -1, .stop = &session->stop },
        .places = tnd_zalloc(session->plan->element_spec.count + 2, sizeof *line->places),
    };
    make_room_for_slices(line, 1);
}

void
helper_line_hang_up(struct helper_line *line)
{
    helper_wire_close(&line->wire);
    free(line->files.bits);
    free(line->paths.bits);
    free(line->sums.bits);
    line->files = line->paths = line->sums = (struct told_numbers){ 0 };
    line->asked = line->sums_seen = 0;
}

void
helper_line_close(struct helper_line *line)
{
    if (line->session == NULL)
        return;
    helper_line_hang_up(line);
    free(line->names.bytes);
    free(line->elements.bytes);
    free(line->answer.bytes);
    free(line->reads.bytes);
    free(line->places);
    for (uint32_t i = 0; i < line->slot_count; i++)
        lane_slot_fini(&line->slots[i]);
    free(line->slots);
}

static bool
has_number(const struct told_numbers *told, uint32_t number)
{
    return number / 64 < told->room && (told->bits[number / 64] >> number % 64 & 1) != 0;
}

/* Is the number new to the other side? It is told from now on. */
static bool
note_number(struct told_numbers *told, uint32_t number)
{
    uint64_t bit = UINT64_C(1) << number % 64;
    bool is_new;

    if (number / 64 >= told->room) {
        uint32_t room = 2 * (number / 64) + 16;

        told->bits = tnd_realloc(told->bits, room, sizeof *told->bits);
        memset(told->bits + told->room, 0, (room - told->room) * sizeof *told->bits);
        told->room = room;
    }
    is_new = (told->bits[number / 64] & bit) == 0;
    told->bits[number / 64] |= bit;
    return is_new;
}

static void
add_name(struct helper_line *line, const struct helper_name *name, const char *text)
{
    portable_add(&line->names, name, sizeof *name);
    portable_add(&line->names, text, name->name_bytes);
    line->name_count++;
}

static uint64_t
known_size(struct source_file *file)
{
    uint64_t size;

    pthread_mutex_lock(&file->services->lock);
    size = file->is_known && !file->is_url ? file->identity.size : UINT64_MAX;
    pthread_mutex_unlock(&file->services->lock);
    return size;
}

/* A server that says neither may give each of two machines another version. */
static bool
can_be_compared(struct source_file *file)
{
    bool is_known;

    if (!file->is_url)
        return true;
    pthread_mutex_lock(&file->services->lock);
    is_known = file->is_known;
    pthread_mutex_unlock(&file->services->lock);
    return !is_known || content_sum_applies(file);
}

/* This server has unpacked a compressed file already; each helper would have to do that again. */
static tundish_status
name_file(struct helper_line *line, const struct plan_node *source, const uint64_t *words)
{
    struct source_file *file = files_file(line->session->files, reference_file(words));
    struct helper_name name = { .node = source->index, .number = reference_file(words) };

    if (file == NULL || file->format.packing != PACKING_NONE)
        return tnd_fail(TUNDISH_E_PLACE, "%s is packed", file != NULL ? file->name : "a file");
    if (!can_be_compared(file))
        return tnd_fail(TUNDISH_E_PLACE,
                        "%s has neither an ETag nor a date, by which a helper's could be compared "
                        "with it",
                        file->name);
    if (!note_number(&line->files, name.number))
        return TUNDISH_OK;
    name.size = known_size(file);
    name.sum = helper_sums_want(line->made_sums, file);
    name.name_bytes = strlen(file->name);
    if (name.sum != 0)
        (void)note_number(&line->sums, name.number);
    add_name(line, &name, file->name);
    return TUNDISH_OK;
}

/* Those that were made since the last request, of files that the other side knows. */
static void
add_sums(struct helper_line *line)
{
    uint64_t count = helper_sums_count(line->made_sums);

    for (; line->sums_seen < count; line->sums_seen++) {
        const struct source_file *file = helper_sums_at(line->made_sums, line->sums_seen);
        struct helper_name name = { .node = HELPER_NO_NODE,
                                    .number = file->number,
                                    .size = UINT64_MAX };

        if (!has_number(&line->files, file->number) || !note_number(&line->sums, file->number))
            continue;
        name.sum = atomic_load_explicit(&file->content_sum, memory_order_relaxed);
        add_name(line, &name, "");
    }
}

static tundish_status
visit_source(void *user, const struct plan_node *source, uint64_t *words)
{
    struct helper_line *line = user;
    struct helper_name name = { .node = source->index, .size = UINT64_MAX };
    const char *path;
    size_t bytes;

    line->row_count++;
    if (source->source->words == WORDS_HAVE_FILE)
        return name_file(line, source, words);
    if (source->source->words != WORDS_HAVE_PATH)
        return TUNDISH_OK;
    name.number = (uint32_t)words[0];
    if (!note_number(&line->paths, name.number))
        return TUNDISH_OK;
    path = files_path(line->session->files, name.number, &bytes);
    name.name_bytes = bytes;
    add_name(line, &name, path);
    return TUNDISH_OK;
}

/* They come into the log. */
static void
note_sentence(char *bytes, uint64_t count, char ret_text[HELPER_TEXT_BYTES])
{
    bytes[count] = '\0';
    tnd_printable(bytes, ret_text, HELPER_TEXT_BYTES);
}

tundish_status
helper_line_take_sentence(struct helper_line *line, uint64_t bytes,
                          char ret_text[HELPER_TEXT_BYTES])
{
    char came[HELPER_TEXT_BYTES];
    tundish_status status;

    if (bytes >= HELPER_TEXT_BYTES)
        return tnd_fail(TUNDISH_E_CORRUPT, "its sentence is too long");
    status = helper_receive(&line->wire, &(struct iovec){ came, bytes }, 1);
    if (status == TUNDISH_OK)
        note_sentence(came, bytes, ret_text);
    return status;
}

/* The rows of a part as a slice of their own, as fill_part sees them. */
static struct run
rows_of_part(const struct part *part, const struct deal_slice *slice)
{
    return run_part(run_of_word(slice->words[0]), (uint64_t)part->begin,
                    (uint64_t)(part->end - part->begin));
}

/* The slices after the first differ from it in their number alone. */
static void
add_more(struct helper_line *line, const struct part *part)
{
    for (uint32_t i = 1; i <= part->more; i++) {
        uint8_t packed = part->step->shares[part->replica + i].fill == &line->session->packed;

        must_in_debug(part->step->round.slices[part->replica + i].present);
        portable_add(&line->elements, &packed, sizeof packed);
    }
}

static tundish_status
write_elements(struct helper_line *line, const struct part *part)
{
    const struct plan_node *root = line->session->plan->graph->root;
    const struct deal_slice *slice = &part->step->round.slices[part->replica];
    const struct portable_visit visit = { visit_source, line };
    bool in_place = part->step->shares[part->replica].fill->in_place;
    struct run rows = in_place ? rows_of_part(part, slice) : (struct run){ 0 };
    uint64_t word = run_word(&rows);
    struct portable_elements elements = {
        .words = in_place ? &word : slice->words,
        .count = 1,
        .width = root->width,
        .run_words = root->run_words,
    };

    line->names.used = line->elements.used = 0;
    line->name_count = 0;
    line->row_count = 0;
    add_sums(line);
    portable_write(&elements, &line->elements);
    add_more(line, part);
    return portable_visit(&visit, root, elements.words, root->width, 1);
}

static tundish_status
send_ask(struct helper_line *line, const struct part *part)
{
    const struct fill *fill = part->step->shares[part->replica].fill;
    tundish_status status = write_elements(line, part);
    struct helper_ask ask = {
        .number = ++line->asked,
        .bytes = line->names.used + line->elements.used,
        .rows = fill->in_place ? (uint64_t)(part->end - part->begin) : 0,
        .name_count = line->name_count,
        .packed = fill == &line->session->packed,
        .in_place = fill->in_place,
        .more = part->more,
    };

    line->slice_count = 1 + part->more;
    if (status == TUNDISH_OK && ask.bytes > HELPER_ASK_BYTES)
        status = tnd_fail(TUNDISH_E_PLACE, "the references of a batch are too many");
    if (status == TUNDISH_OK)
        status = helper_send(&line->wire, &(struct iovec){ &ask, sizeof ask }, 1);
    if (status != TUNDISH_OK)
        return status;
    return helper_send(&line->wire,
                       (struct iovec[]){ { line->names.bytes, line->names.used },
                                         { line->elements.bytes, line->elements.used } },
                       2);
}

/* The columns into their places in the slot, and what comes after them. */
static tundish_status
take_in_place(struct helper_line *line, const struct helper_answer *answer,
              char came[HELPER_TEXT_BYTES])
{
    uint32_t columns = line->session->plan->element_spec.count;

    line->places[columns] = (struct iovec){ came, answer->skipped_bytes };
    line->places[columns + 1] = (struct iovec){ line->reads.bytes, line->reads.used };
    return helper_receive(&line->wire, line->places, (int)columns + 2);
}

/* The message after the head. */
static uint64_t
bytes_after(const struct helper_answer *answer)
{
    return answer->status == TUNDISH_OK
               ? answer->bytes + answer->skipped_bytes + answer->reads_bytes
               : answer->bytes;
}

static tundish_status
check_ends(const struct helper_answer *answer)
{
    if (answer->skipped_bytes >= HELPER_TEXT_BYTES)
        return tnd_fail(TUNDISH_E_CORRUPT, "its sentence is too long");
    if (answer->reads_bytes > HELPER_READS_BYTES)
        return tnd_fail(TUNDISH_E_CORRUPT, "it names too many files");
    return TUNDISH_OK;
}

static void
make_room_for_reads(struct portable_bytes *reads, size_t bytes)
{
    if (bytes > reads->room) {
        reads->bytes = tnd_realloc(reads->bytes, bytes, 1);
        reads->room = bytes;
    }
    reads->used = bytes;
}

static tundish_status
take_apart(struct helper_line *line, const struct helper_answer *answer,
           char came[HELPER_TEXT_BYTES])
{
    tundish_status status;

    if (answer->bytes > HELPER_ANSWER_BYTES * line->slice_count)
        return tnd_fail(TUNDISH_E_CORRUPT, "its answer has %llu bytes",
                        (unsigned long long)answer->bytes);
    status = helper_receive_stated(&line->wire, bytes_after(answer), &line->answer);
    if (status == TUNDISH_OK && answer->skipped_bytes > 0)
        memcpy(came, line->answer.bytes + answer->bytes, answer->skipped_bytes);
    if (status == TUNDISH_OK && line->reads.used > 0)
        memcpy(line->reads.bytes, line->answer.bytes + answer->bytes + answer->skipped_bytes,
               line->reads.used);
    return status;
}

static tundish_status
read_slices(struct helper_line *line, const struct part *part, uint64_t bytes)
{
    const struct share *shares = &part->step->shares[part->replica];
    uint64_t head_bytes = helper_head_bytes(line->slots) * line->slice_count;
    struct byte_view heads = { line->answer.bytes, head_bytes < bytes ? head_bytes : bytes };
    struct byte_view buffers = { heads.data + heads.size, bytes - heads.size };
    tundish_status status = TUNDISH_OK;

    make_room_for_slices(line, line->slice_count);
    for (uint32_t i = 0; i < line->slice_count && status == TUNDISH_OK; i++)
        status = helper_read_columns(shares[i].fill, &heads, &buffers, &line->slots[i]);
    if (status == TUNDISH_OK && buffers.size != 0)
        status =
            tnd_fail(TUNDISH_E_CORRUPT, "%llu bytes too many", (unsigned long long)buffers.size);
    return status;
}

static tundish_status
take_columns(struct helper_line *line, const struct part *part, bool apart,
             const struct helper_answer *answer, char ret_text[HELPER_TEXT_BYTES])
{
    const struct share *share = &part->step->shares[part->replica];
    char came[HELPER_TEXT_BYTES];
    tundish_status status = check_ends(answer);

    if (status != TUNDISH_OK)
        return status;
    make_room_for_reads(&line->reads, answer->reads_bytes);
    if (share->fill->in_place) {
        uint64_t expected =
            fill_places(share->fill, part->begin, part->end, &share->slot, line->places);

        if (answer->bytes != expected)
            return tnd_fail(TUNDISH_E_CORRUPT, "its answer has %llu bytes; expected %llu",
                            (unsigned long long)answer->bytes, (unsigned long long)expected);
    }
    status = share->fill->in_place && !apart ? take_in_place(line, answer, came)
                                             : take_apart(line, answer, came);
    if (status == TUNDISH_OK && !share->fill->in_place)
        status = read_slices(line, part, answer->bytes);
    if (status == TUNDISH_OK)
        note_sentence(came, answer->skipped_bytes, ret_text);
    return status;
}

/* A slice of one run has a row for each element of it, but for those that were left out. */
static bool
has_rows(const struct helper_line *line, const struct part *part, uint64_t skipped)
{
    const struct share *share = &part->step->shares[part->replica];
    const struct schema *schema = &share->fill->plan->element_spec;
    int64_t most = fill_rows(share->fill, &part->step->round.slices[part->replica]);

    for (uint32_t i = 0; i < schema->count; i++) {
        int64_t rows = line->slots->columns[i].shape[0];

        if (schema->columns[i].rank < 1 || rows > most || (rows < most && skipped == 0) ||
            rows != line->slots->columns[0].shape[0])
            return false;
    }
    return true;
}

static tundish_status
check_rows(const struct helper_line *line, const struct part *part, uint64_t skipped)
{
    const struct fill *fill = part->step->shares[part->replica].fill;

    if (skipped > (fill->plan->stream->deliver.skip_errors ? line->row_count : 0))
        return tnd_fail(TUNDISH_E_CORRUPT, "it left out %llu rows of %llu",
                        (unsigned long long)skipped, (unsigned long long)line->row_count);
    if (!fill->in_place && fill->plan->rows_apart && !has_rows(line, part, skipped))
        return tnd_fail(TUNDISH_E_CORRUPT, "the answer does not contain the slice's rows");
    return TUNDISH_OK;
}

static tundish_status
take_head(struct helper_line *line, struct helper_answer *ret_answer)
{
    tundish_status status =
        helper_receive(&line->wire, &(struct iovec){ ret_answer, sizeof *ret_answer }, 1);

    if (status == TUNDISH_OK && ret_answer->number != line->asked)
        status = tnd_fail(TUNDISH_E_CORRUPT, "the answer is for another request");
    return status;
}

tundish_status
helper_line_ask(struct helper_line *line, const struct part *part, int64_t deadline_ns)
{
    line->wire.deadline_ns = deadline_ns;
    return send_ask(line, part);
}

tundish_status
helper_line_await(struct helper_line *line, int64_t until_ns)
{
    line->wire.deadline_ns = until_ns;
    return helper_wire_readable(&line->wire);
}

tundish_status
helper_line_take(struct helper_line *line, const struct part *part, bool apart, int64_t deadline_ns,
                 struct helper_made *ret_made)
{
    struct helper_answer answer;
    char text[HELPER_TEXT_BYTES];
    tundish_status status;

    line->wire.deadline_ns = deadline_ns;
    status = take_head(line, &answer);
    if (status != TUNDISH_OK)
        return status;
    ret_made->flags = answer.flags;
    if (answer.status != TUNDISH_OK) {
        status = helper_line_take_sentence(line, answer.bytes, text);
        return status != TUNDISH_OK ? status : tnd_fail(TUNDISH_E_DATA, "it says: %s", text);
    }
    status = take_columns(line, part, apart, &answer, ret_made->skipped_text);
    if (status == TUNDISH_OK)
        status = check_rows(line, part, answer.skipped);
    ret_made->skipped = answer.skipped;
    ret_made->busy_ns = answer.busy_ns;
    return status;
}

tundish_status
helper_line_drop(struct helper_line *line, int64_t deadline_ns)
{
    struct helper_answer answer;
    tundish_status status;

    line->wire.deadline_ns = deadline_ns;
    status = take_head(line, &answer);
    if (status == TUNDISH_OK && answer.bytes > HELPER_ANSWER_BYTES * line->slice_count)
        status = tnd_fail(TUNDISH_E_CORRUPT, "its answer has %llu bytes",
                          (unsigned long long)answer.bytes);
    if (status == TUNDISH_OK)
        status = check_ends(&answer);
    if (status != TUNDISH_OK)
        return status;
    return helper_receive_stated(&line->wire, bytes_after(&answer), &line->answer);
}

tundish_status
helper_line_compare_reads(const struct helper_line *line, bool *ret_differs)
{
    const struct helper_own own = { line->session->plan->file, line->made_sums };

    return helper_reads_compare(&own, (struct byte_view){ line->reads.bytes, line->reads.used },
                                ret_differs);
}
