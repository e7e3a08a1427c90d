/* source_cache_file.c - `cache` with a filename: the elements of the first pass that was read to
 * its end, in a file that later passes and later jobs read instead of making them.
 * The content of elements is made here, on the order's thread, and written to the file. Later
 * stages then refer to the file's records, as they do with a source. A batch is one record. If all
 * columns of a batch have its rows, its element is a run with that record at each row (evaluate.c),
 * so that stages that count rows still work. Inside interleave and flat_map every outer element has
 * a file of its own. An iterator decides when it is made whether it reads or writes. A pass that is
 * not read to its end leaves no file. The element count in a place is 1 more than the number of the
 * pass that the file holds, as for the cache in memory. If the file is gone when a job resumes,
 * that pass is made again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/crc32c.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "order/arguments.h"
#include "order/cardinality.h"
#include "order/rewind.h"
#include "source/files/fetch.h"
#include "source/files/whereabouts.h"
#include "source/rows/cache_batch.h"
#include "source/upstream.h"

struct cache_file {
    char *name;
};

/* Elements that were pulled from the input and not yet passed on. */
struct waiting {
    uint64_t *words;
    size_t at, count, room;
};

struct cache_file_state {
    struct order_iterator *input; /* NULL: this one reads */
    struct cache_key key;
    struct cache_build build;
    struct file_set made_of;
    struct waiting waiting;
    struct row_bytes row;
    bool has_failed; /* a row is missing: the pass is not kept */

    struct cache_rows rows;
    struct record_reader reader;
    uint64_t at;
};

enum { AT_ONCE = 256, CHECKSUM_BYTES = 4 };

static struct cache_file_state *
state_of(struct order_iterator *iterator)
{
    return (struct cache_file_state *)iterator->state;
}

static tundish_status
cache_file_open(void *memory, const struct stage_config *config, struct schema *ret_schema)
{
    struct cache_file *cache = memory;
    const char *reason = NULL;
    const char *obstacle = row_codec_obstacle(config->input, &reason);

    cache->name = tnd_strdup(spec_text(config->stage, "filename"));
    if (obstacle == NULL && config->outer != NULL)
        obstacle = row_codec_obstacle(config->outer, &reason);
    if (obstacle != NULL)
        return stage_complain(config, "cache in a file: column '%s' %s", obstacle, reason);
    schema_pass_all(ret_schema, config->input);
    for (uint32_t i = 0; i < ret_schema->count; i++)
        /* Columns are read from the file: none is the input's own memory any more. */
        ret_schema->columns[i].passed_from = -1;
    return TUNDISH_OK;
}

static void
cache_file_close(void *memory)
{
    struct cache_file *cache = memory;

    free(cache->name);
}

/* Does a shard that the plan inserted stand before the cache? Then every worker reads other rows
 * and needs a file of its own. */
static bool
is_sharded(const struct plan_node *node)
{
    if (node->order == &order_shard && node->stage == NULL)
        return true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (is_sharded(node->inputs[i]))
            return true;
    return false;
}

/* Hash the outer elements that this dataset was made for; 0 outside interleave and flat_map. */
static uint64_t
hash_scope(const struct order_scope *scope)
{
    struct row_bytes bytes = { 0 };
    uint64_t hash = 0;

    for (; scope != NULL; scope = scope->outside) {
        bytes.used = 0;
        row_codec_encode(scope->values, 0, &bytes);
        hash = tnd_hash_farm_cat(hash, tnd_hash_farm((const char *)bytes.data, bytes.used));
    }
    free(bytes.data);
    return hash;
}

static char *
name_for(const struct order_iterator *iterator, uint64_t scope_hash)
{
    const struct cache_file *cache = iterator->node->state;
    const struct order_services *services = iterator->instance->services;
    char *name = scope_hash == 0 ? tnd_strdup(cache->name)
                                 : tnd_sprintf("%s.%016" PRIx64, cache->name, scope_hash);
    char *sharded = name;

    if (is_sharded(iterator->node->inputs[0]))
        sharded =
            services->shard_count != 0
                ? tnd_sprintf("%s.shard-%u-of-%u", name, services->shard, services->shard_count)
                : tnd_sprintf("%s.%u-of-%u", name, services->worker, services->worker_count);
    if (sharded != name)
        free(name);
    return sharded;
}

/* Set the counts of all nodes before the cache back to 0, so that the pass is made as it was the
 * first time. Only the cache makes iterators of these nodes. */
static void
count_anew(struct order_instance *instance, const struct plan_node *node)
{
    size_t count = order_counts_before(instance, node, NULL);
    uint64_t **counts = tnd_alloc(count * sizeof *counts);

    order_counts_before(instance, node, counts);
    for (size_t i = 0; i < count; i++)
        *counts[i] = 0;
    free(counts);
}

/* Start to write a pass. A resumed job may find the file gone: it can make only the first pass
 * again, whose counts all begin at 0. */
static tundish_status
begin_pass(struct order_iterator *iterator)
{
    struct cache_file_state *state = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    struct source_files *files = iterator->instance->services->files;
    uint64_t kept_pass = iterator->instance->element_counts[iterator->node->number];
    struct file_set *before;
    tundish_status status;

    if (kept_pass > 1)
        return order_fail(iterator, TUNDISH_E_PLACE,
                          "the place was saved after reading %s, which contained pass %" PRIu64
                          " and is gone; only the first pass can be computed again",
                          state->key.name, kept_pass);
    if (kept_pass == 1)
        count_anew(iterator->instance, input);
    status = cache_build_begin(files, &state->key, &state->build);
    if (status != TUNDISH_OK)
        return status;
    /* The files that the pass reads are noted in the cache file, which is stale once one of them
     * changes. */
    before = files_note_files(files, &state->made_of);
    status = order_open(input, iterator->instance, &state->input);
    files_note_files(files, before);
    return status;
}

/* A resumed job must find the pass that an uninterrupted run would read or make here: a shuffle
 * before the cache gives every pass another order. */
static tundish_status
check_pass(struct order_iterator *iterator, uint64_t pass)
{
    const struct cache_file_state *state = state_of(iterator);
    uint64_t kept_pass = iterator->instance->element_counts[iterator->node->number];
    uint64_t wanted = kept_pass > 0 ? kept_pass - 1 : iterator->iterator_number;

    if (!iterator->instance->services->resumed || pass == wanted)
        return TUNDISH_OK;
    return order_fail(iterator, TUNDISH_E_PLACE,
                      "%s contains pass %" PRIu64 " of its input, but the place needs pass %" PRIu64
                      ": restore the file of that run, or start without the place",
                      state->key.name, pass + 1, wanted + 1);
}

/* Workers that found different caches would deliver different rows, and their digests must differ.
 * `| 1` keeps a found cache apart from none. */
static void
note_in_digest(const struct cache_file_state *state, struct order_digest *digest, bool found)
{
    if (digest != NULL)
        order_digest_note_cache(digest, found ? state->rows.list->hash | 1 : 0,
                                found ? state->rows.file->number : state->build.spool.file->number);
}

static tundish_status
cache_file_iterate(struct order_iterator *iterator)
{
    struct cache_file_state *state = state_of(iterator);
    const struct order_services *services = iterator->instance->services;
    uint64_t *kept_pass = &iterator->instance->element_counts[iterator->node->number];
    const struct plan_node *input = iterator->node->inputs[0];
    uint64_t scope_hash = hash_scope(iterator->instance->scope);
    bool found = false;
    tundish_status status;

    /* The fingerprint covers the stages before the cache, so that a file written by an older
     * pipeline is not read. */
    state->key = (struct cache_key){
        .name = name_for(iterator, scope_hash),
        .fingerprint = upstream_fingerprint(input, files_root(services->files)) ^ scope_hash,
        .listing = upstream_listing(input, files_root(services->files)),
    };
    status = cache_rows_open(services->files, &state->key, services->stop, &state->rows, &found);
    if (status == TUNDISH_OK && !found)
        status = begin_pass(iterator);
    if (status == TUNDISH_OK)
        note_in_digest(state, services->digest, found);
    if (status == TUNDISH_OK && !found)
        return TUNDISH_OK;
    if (status == TUNDISH_OK)
        status = check_pass(iterator, state->rows.pass);
    if (status == TUNDISH_OK)
        status = cache_rows_seek(&state->rows, 0, &state->reader);
    if (status == TUNDISH_OK)
        *kept_pass = state->rows.pass + 1;
    return status;
}

static void
cache_file_iterate_close(struct order_iterator *iterator)
{
    struct cache_file_state *state = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    const struct waiting *waiting = &state->waiting;

    if (waiting->words != NULL)
        run_words_release(waiting->words + waiting->at * input->width, waiting->count - waiting->at,
                          input->width, input->run_words);
    free(waiting->words);
    order_close(state->input);
    cache_build_close(&state->build);
    cache_rows_close(&state->rows);
    free(state->made_of.numbers);
    free(state->row.data);
    free((void *)(uintptr_t)state->key.name);
}

/* Pull the next elements of the input into `waiting`. */
static enum order_result
pull_input(struct order_iterator *iterator, size_t max)
{
    struct cache_file_state *state = state_of(iterator);
    struct source_files *files = iterator->instance->services->files;
    struct waiting *waiting = &state->waiting;
    size_t at_once = iterator->node->depth != 0 ? 1 : AT_ONCE;
    struct file_set *before;
    enum order_result result;

    if (max > at_once)
        max = at_once;
    if (max > waiting->room) {
        waiting->room = max;
        waiting->words = tnd_realloc(waiting->words, max,
                                     iterator->node->inputs[0]->width * sizeof *waiting->words);
    }
    waiting->at = 0;
    before = files_note_files(files, &state->made_of);
    result = order_next(state->input, waiting->words, max, &waiting->count);
    files_note_files(files, before);
    return result;
}

/* Write one element of the frame to the file; `words` gets the reference to its record, or the run
 * of a batch. */
static tundish_status
keep_element(struct order_iterator *iterator, const struct frame *frame, int64_t element,
             uint64_t *words)
{
    struct cache_file_state *state = state_of(iterator);
    uint64_t record[SOURCE_WIDTH];
    uint64_t rows = 0;
    tundish_status status = TUNDISH_OK;

    if (iterator->node->run_words != 0)
        status = cache_batch_count(frame, element, &rows);
    if (status != TUNDISH_OK)
        return status;
    state->row.used = 0;
    row_codec_encode(frame, element, &state->row);
    status = cache_build_add(&state->build, state->row.data, state->row.used, rows, record);
    if (status != TUNDISH_OK)
        return status;
    if (rows > 0)
        words[0] = cache_batch_word(record, rows);
    else
        memcpy(words, record, sizeof record);
    return TUNDISH_OK;
}

/* Evaluate the first `count` waiting elements and write them to the file. */
static tundish_status
make_elements(struct order_iterator *iterator, size_t count, uint64_t *words, size_t *ret_made)
{
    struct cache_file_state *state = state_of(iterator);
    struct order_services *services = iterator->instance->services;
    const struct plan_node *node = iterator->node, *input = node->inputs[0];
    const uint64_t *from = state->waiting.words + state->waiting.at * input->width;
    const struct frame *frame = NULL;
    tundish_status status =
        services->evaluate(services, input, iterator->instance->scope, from, count, &frame);

    for (int64_t i = 0; status == TUNDISH_OK && i < frame->count; i++) {
        status = keep_element(iterator, frame, i, &words[node->width * (size_t)i]);
        *ret_made += status == TUNDISH_OK;
    }
    /* The references go to other threads now, which read the records from the file. */
    if (status == TUNDISH_OK)
        status = cache_build_flush(&state->build);
    if (status != TUNDISH_OK) {
        run_words_release(words, *ret_made, node->width, node->run_words);
        *ret_made = 0;
    }
    return status;
}

static void
pass_on(struct order_iterator *iterator, size_t count)
{
    struct cache_file_state *state = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    struct waiting *waiting = &state->waiting;

    run_words_release(waiting->words + waiting->at * input->width, count, input->width,
                      input->run_words);
    waiting->at += count;
}

/* Publish the file at the end of a pass, unless a row is missing in it. */
static enum order_result
finish_pass(struct order_iterator *iterator)
{
    struct cache_file_state *state = state_of(iterator);
    uint64_t *kept_pass = &iterator->instance->element_counts[iterator->node->number];

    if (state->has_failed)
        return ORDER_END;
    if (cache_build_publish(&state->build, &state->key, &state->made_of,
                            iterator->iterator_number) != TUNDISH_OK) {
        state->has_failed = true;
        return ORDER_FAILED;
    }
    if (*kept_pass == 0)
        *kept_pass = iterator->iterator_number + 1;
    return ORDER_END;
}

/* Elements are made together. If one of them is bad, they stay waiting and the loop makes them one
 * by one, so that only the bad one is lost. */
static enum order_result
write_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct cache_file_state *state = state_of(iterator);

    for (;;) {
        struct waiting *waiting = &state->waiting;
        size_t left = waiting->count - waiting->at;
        enum order_result result = left > 0 ? ORDER_OK : pull_input(iterator, max);
        size_t count = left > 0 ? 1 : waiting->count; /* after a failure one by one */
        tundish_status status;

        if (result == ORDER_END)
            return finish_pass(iterator);
        state->has_failed |= result == ORDER_FAILED;
        if (result != ORDER_OK)
            return result;
        status = make_elements(iterator, count, words, ret_count);
        if (status != TUNDISH_OK && count > 1)
            continue;
        pass_on(iterator, count);
        if (status != TUNDISH_OK) {
            state->has_failed = true;
            return ORDER_FAILED;
        }
        if (*ret_count > 0) /* else all of them were left out */
            return ORDER_OK;
    }
}

static enum order_result
read_failed(struct order_iterator *iterator)
{
    struct cache_file_state *state = state_of(iterator);

    order_fail(iterator, TUNDISH_E_CORRUPT,
               "%s, or its index in the cache folder, is damaged; remove both", state->key.name);
    state->at = state->rows.row_count;
    return ORDER_FAILED;
}

/* The next records of the file; batches become runs. */
static enum order_result
read_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct cache_file_state *state = state_of(iterator);
    bool is_batch = iterator->node->run_words != 0;
    uint64_t record[SOURCE_WIDTH];

    if (!record_reader_next(&state->reader, reference_high(state->rows.file),
                            is_batch ? record : words, is_batch ? 1 : max, ret_count))
        return read_failed(iterator);
    if (is_batch) {
        uint64_t rows = cache_batch_rows(&state->rows, state->at);

        /* The row count comes from the file: a damaged one must not become a run of other records.
         */
        if (!cache_batch_is_sound(record, rows)) {
            *ret_count = 0;
            return read_failed(iterator);
        }
        words[0] = cache_batch_word(record, rows);
    }
    state->at += *ret_count;
    return ORDER_OK;
}

static enum order_result
cache_file_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct cache_file_state *state = state_of(iterator);
    uint64_t left = state->rows.row_count - state->at;

    if (state->input != NULL)
        return write_next(iterator, words, max, ret_count);
    if (left == 0)
        return ORDER_END;
    return read_next(iterator, words, left < max ? (size_t)left : max, ret_count);
}

static enum order_result
cache_file_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct cache_file_state *state = state_of(iterator);
    uint64_t left = state->rows.row_count - state->at;

    *ret_passed = 0;
    /* Rows that are passed over are made and written too: the file must hold the whole pass. */
    while (state->input != NULL && *ret_passed < count) {
        uint64_t words[SOURCE_WIDTH * AT_ONCE];
        size_t taken = 0;
        uint64_t wanted = count - *ret_passed;
        enum order_result result =
            write_next(iterator, words, wanted < AT_ONCE ? (size_t)wanted : AT_ONCE, &taken);

        if (result != ORDER_OK)
            return result;
        run_words_release(words, taken, iterator->node->width, iterator->node->run_words);
        *ret_passed += taken;
    }
    if (state->input != NULL)
        return ORDER_OK;
    *ret_passed = count < left ? count : left;
    state->at += *ret_passed;
    if (cache_rows_seek(&state->rows, state->at, &state->reader) != TUNDISH_OK)
        return ORDER_FAILED;
    return *ret_passed == count ? ORDER_OK : ORDER_END;
}

/* Stages that split its batches must read their content: the words name one record, not rows. */
static struct order_gathered
cache_file_gathered(const struct plan_node *node, uint32_t word)
{
    (void)word;
    return (struct order_gathered){ .elements = node };
}

static void
say_where(const void *context, int64_t row, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s: the row at %llu", fetch_file_name(context, row),
             (unsigned long long)fetch_words(context, row)[0]);
}

static tundish_status
cache_file_read(const void *state, const struct source_read *read)
{
    struct byte_view *rows =
        scratch_array(read->output->scratch, (size_t)read->count + 1, sizeof *rows);
    tundish_status status = fetch_rows(read, CHECKSUM_BYTES, rows);

    (void)state;
    if (status != TUNDISH_OK)
        return status;
    for (int64_t i = 0; i < read->count; i++) {
        struct byte_view *row = &rows[i];

        row->size -= CHECKSUM_BYTES;
        /* The checksum after each row is a masked CRC-32C, as in TFRecord. */
        if (tnd_crc32c_mask(tnd_crc32c(0, row->data, row->size)) != load_u32(row->data + row->size))
            return tnd_fail(TUNDISH_E_DATA,
                            "%s: this cache is damaged: the checksum of the row at %llu is wrong; "
                            "remove the file, and it is created again",
                            fetch_file_name(read, i), (unsigned long long)fetch_words(read, i)[0]);
    }
    return row_codec_decode(rows, read->count, read->output, say_where, read);
}

/* The first record of the file says what the elements are of. One that is being made has no name
 * and no list of its records. */
static void
cache_file_tell(const void *state, struct source_files *files, const uint64_t *words,
                struct whereabouts *ret_where)
{
    (void)state;
    whereabouts_of_reference(files, words, ret_where);
    if (ret_where->has_record && ret_where->record > 0) {
        ret_where->number_name = "element";
        ret_where->number = (int64_t)ret_where->record - 1;
    }
    ret_where->note = "the cache does not keep where its elements came from";
}

const struct source_ops source_cache_file = {
    .name = "cache_file",
    .order = { .name = "cache",
               .search = ORDER_SEARCH_INPUT,
               .batch_size = ORDER_SIZE_INPUT,
               .remembers = true,
               .state_bytes = sizeof(struct cache_file_state),
               .open = cache_file_iterate,
               .next = cache_file_next,
               .close = cache_file_iterate_close,
               .pass_over = cache_file_pass_over,
               .gathered = cache_file_gathered,
               .counts_elements = true,
               .cardinality = order_count_input },
    .state_bytes = sizeof(struct cache_file),
    .open = cache_file_open,
    .read = cache_file_read,
    .tell = cache_file_tell,
    .reads_files = false,
    .close = cache_file_close,
};
