/* source_fixture.h - a pipeline of one source, planned and read: what tests of sources need. */
#ifndef TEST_SOURCE_FIXTURE_H
#define TEST_SOURCE_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "../remove_tree.h"
#include "batch/evaluate.h"
#include "core/bytes.h"
#include "core/crc32c.h"
#include "core/memory.h"
#include "order/order.h"
#include "plan/plan.h"
#include "source/files/files.h"
#include "source/source.h"

/* A folder for one test, with an empty cache folder in it. */
struct folder {
    char path[64];
    char cache[80];
    bool skip_damage; /* as on_error: skip */
    bool samples;     /* elements are made to be measured */
};

static inline void
folder_open(struct folder *folder)
{
    folder->skip_damage = folder->samples = false;
    strcpy(folder->path, "/tmp/tundish-source-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->cache, sizeof folder->cache, "%s/cache", folder->path);
    assert_int_equal(mkdir(folder->cache, 0700), 0);
}

static inline void
folder_close(struct folder *folder)
{
    assert_int_equal(remove_tree(folder->path), 0);
}

static inline void
put_file(const struct folder *folder, const char *name, const void *data, size_t bytes)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static inline void
put_text(const struct folder *folder, const char *name, const char *text)
{
    put_file(folder, name, text, strlen(text));
}

/* Bytes that grow, to make files of. */
struct bytes {
    uint8_t *data;
    size_t used, room;
};

static inline void
bytes_add(struct bytes *bytes, const void *data, size_t count)
{
    if (bytes->room - bytes->used < count) {
        bytes->room = 2 * (bytes->room + count);
        bytes->data = tnd_realloc(bytes->data, bytes->room, 1);
    }
    if (count > 0)
        memcpy(bytes->data + bytes->used, data, count);
    bytes->used += count;
}

static inline void
add_record(struct bytes *bytes, const void *data, uint64_t length)
{
    uint32_t length_crc = tnd_crc32c_mask(tnd_crc32c(0, &length, 8));
    uint32_t data_crc = tnd_crc32c_mask(tnd_crc32c(0, data, length));

    bytes_add(bytes, &length, 8);
    bytes_add(bytes, &length_crc, 4);
    bytes_add(bytes, data, length);
    bytes_add(bytes, &data_crc, 4);
}

struct pipeline {
    struct spec_errors errors;
    struct spec_file *file;
    struct plan *plan;
    struct source_files *files;
    struct order_services services;
    struct order_instance *instance;
    struct order_iterator *iterator;
    const struct plan_node *node;
    struct evaluation evaluation, outer; /* of rows, and of outer elements */
    struct frame frame;
};

static inline void
pipeline_close(struct pipeline *pipeline)
{
    order_close(pipeline->iterator);
    order_instance_close(pipeline->instance);
    source_files_close(pipeline->files);
    if (pipeline->plan != NULL)
        plan_close(pipeline->plan);
    if (pipeline->file != NULL)
        spec_close(pipeline->file);
    spec_errors_close(&pipeline->errors);
    scratch_close(pipeline->evaluation.scratch);
    scratch_close(pipeline->outer.scratch);
    memset(pipeline, 0, sizeof *pipeline);
}

/* Plan a stream whose stages are `stages` (a YAML list). On failure the sentences are in
 * tnd_error_text. */
static inline tundish_status
pipeline_open(struct pipeline *pipeline, const struct folder *folder, uint32_t reader_count,
              const char *stages)
{
    char *text = tnd_sprintf("streams:\n  case:\n    dataset: %s\n", stages);
    struct plan_options options = { .worker_count = 1 };
    struct source_files_options files = { .root = folder->path,
                                          .cache_folder = folder->cache,
                                          .reader_count = reader_count,
                                          .skip_damage = folder->skip_damage };
    tundish_status status;

    memset(pipeline, 0, sizeof *pipeline);
    status = spec_open_text(text, strlen(text), "case.yaml", folder->path, &pipeline->errors,
                            &pipeline->file);
    free(text);
    if (status == TUNDISH_OK)
        status = plan_open(pipeline->file, &pipeline->file->streams[0], &options, &pipeline->errors,
                           &pipeline->plan);
    if (status != TUNDISH_OK) {
        char *sentences = spec_errors_text(&pipeline->errors);

        (void)tnd_fail(status, "%s", sentences);
        free(sentences);
        return status;
    }
    assert_int_equal(source_files_open(&files, &pipeline->files), TUNDISH_OK);
    pipeline->services = (struct order_services){
        .files = pipeline->files,
        .worker_count = 1,
        .replicas_in_sync = 1,
        .samples = folder->samples,
    };
    evaluate_serve_order(&pipeline->outer, &pipeline->services);
    pipeline->instance = order_instance_open(pipeline->plan->graph, NULL, &pipeline->services);
    pipeline->node = pipeline->plan->graph->root;
    pipeline->evaluation =
        (struct evaluation){ .files = pipeline->files, .scratch = scratch_open() };
    pipeline->outer = (struct evaluation){ .files = pipeline->files, .scratch = scratch_open() };
    return order_open(pipeline->node, pipeline->instance, &pipeline->iterator);
}

/* Make content of `count` elements into pipeline->frame. */
static inline tundish_status
pipeline_content(struct pipeline *pipeline, const uint64_t *words, int64_t count)
{
    struct evaluate_request request = { .words = words,
                                        .stride = pipeline->node->width,
                                        .count = count };

    scratch_reset(pipeline->evaluation.scratch);
    return evaluate(&pipeline->evaluation, pipeline->node, &request, &pipeline->frame);
}

/* The next element, with its content in pipeline->frame. */
static inline enum order_result
pipeline_next(struct pipeline *pipeline)
{
    uint64_t words[PLAN_WIDTH_MAX];
    size_t count;
    enum order_result result = order_next(pipeline->iterator, words, 1, &count);

    if (result == ORDER_OK)
        assert_int_equal(pipeline_content(pipeline, words, 1), TUNDISH_OK);
    return result;
}

static inline struct byte_view
text_at(const struct pipeline *pipeline, uint32_t column, size_t row)
{
    return ((const struct byte_view *)pipeline->frame.columns[column].values)[row];
}

/* A sentence without its folder, and, of the order's failures, its stage: they are the same in
 * every test of a file. */
static inline char *
plain_sentence(const char *text, bool has_stage)
{
    char *plain = tnd_strdup(text);
    char *folder = strstr(plain, " (in /tmp/"), *stage = strrchr(plain, '(');

    if (!has_stage && stage != NULL && strstr(stage, ", line ") != NULL &&
        strstr(stage, " of ") != NULL && stage > plain)
        stage[-1] = '\0';
    if (folder != NULL && strchr(folder, ')') != NULL)
        memmove(folder, strchr(folder, ')') + 1, strlen(strchr(folder, ')') + 1) + 1);
    return plain;
}

static inline void
add_text(struct bytes *all, const char *before, const char *text)
{
    char *plain = plain_sentence(text, *before == '?');

    bytes_add(all, before, strlen(before));
    bytes_add(all, plain, strlen(plain));
    bytes_add(all, "|", 1);
    free(plain);
}

/* All elements' texts, each followed by '|'; "!" and the sentence for each failure of the order,
 * "?" and the sentence for each of content. */
static inline char *
pipeline_texts(struct pipeline *pipeline, size_t max)
{
    uint64_t words[64 * PLAN_WIDTH_MAX];
    uint32_t width = pipeline->node->width;
    struct bytes all = { 0 };
    size_t count;

    for (;;) {
        enum order_result result = order_next(pipeline->iterator, words, max, &count);
        bool good =
            result == ORDER_OK && pipeline_content(pipeline, words, (int64_t)count) == TUNDISH_OK;

        if (result == ORDER_END)
            break;
        if (result == ORDER_FAILED)
            add_text(&all, "!", tnd_error_text());
        for (size_t i = 0; i < count; i++) {
            struct byte_view text;

            if (!good && pipeline_content(pipeline, words + i * width, 1) != TUNDISH_OK) {
                add_text(&all, "?", tnd_error_text());
                continue;
            }
            text = text_at(pipeline, 0, good ? i : 0);
            bytes_add(&all, text.data, text.size);
            bytes_add(&all, "|", 1);
        }
        run_words_release(words, count, width, pipeline->node->run_words);
    }
    bytes_add(&all, "", 1);
    return (char *)all.data;
}

/* The texts of a pipeline, with and without threads, one at a time and many. */
static inline void
assert_texts(const struct folder *folder, const char *stages, const char *expected)
{
    for (uint32_t readers = 0; readers < 3; readers += 2)
        for (size_t max = 1; max <= 64; max += 63) {
            struct pipeline pipeline;
            char *texts;

            if (pipeline_open(&pipeline, folder, readers, stages) != TUNDISH_OK)
                fail_msg("%s", tnd_error_text());
            texts = pipeline_texts(&pipeline, max);
            assert_string_equal(texts, expected);
            free(texts);
            pipeline_close(&pipeline);
        }
}

/* A pipeline that is refused when it is planned, or fails when an iterator is made, with a sentence
 * that has these words. */
static inline void
assert_refused(const struct folder *folder, const char *stages, const char *words)
{
    struct pipeline pipeline;

    assert_int_not_equal(pipeline_open(&pipeline, folder, 0, stages), TUNDISH_OK);
    if (strstr(tnd_error_text(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tnd_error_text());
    pipeline_close(&pipeline);
}

#endif
