/* helper_streams.h - streams whose parts a server and a helper speak of, for fuzzing either: a
 * source of each kind, batches of batches, pieces, branches, and columns of each kind and codec. */
#ifndef FUZZ_HELPER_STREAMS_H
#define FUZZ_HELPER_STREAMS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/must.h"
#include "rig/helper_pair.h"
#include "unit/remove_tree.h"

static const struct {
    const char *stages, *deliver;
    uint32_t replicas;
} helper_streams[] = {
    { "{text_line: lines}, {batch: 4}", "", 1 },
    { "{tfrecord: data/content_bytes.tfrecord}, {shuffle: 3}, {batch: 2}", "", 1 },
    { "{csv: {filenames: data/basic.csv, record_defaults: [int64, float32, string], "
      "column_names: [id, score, word]}}, {batch: 3}",
      "on_error: skip", 1 },
    { "{parquet: data/texts.parquet}, {batch: 5}", "", 1 },
    { "{parquet: data/lists.parquet}, {ragged_batch: 5}", "", 1 },
    { "{zip: {datasets: [[{text_line: {filenames: lines, name: a}}], [{fixed_length_record: "
      "{filenames: lines, record_bytes: 2, name: b}}, enumerate]]}}, {batch: 3}",
      "", 1 },
    { "{range: 64}, {batch: 3}, {rebatch: 4}", "", 1 },
    { "{range: 40}, {batch: {batch_size: 4, drop_remainder: true}}, "
      "{batch: {batch_size: 2, drop_remainder: true}}",
      "", 1 },
    { "{sample_from_datasets: {datasets: [[{range: 9}, {batch: 2}], [{range: 50}, {batch: 3}]], "
      "seed: 1}}, {batch: 1}",
      "on_error: skip", 1 },
    { "{concatenate: [[{range: 4}, {batch: 2}], [{from_tensor_slices: {value: {values: [5, 6, 7], "
      "dtype: int64}}}, {batch: 3}]]}, {rebatch: 3}",
      "", 1 },
    { "{from_tensor_slices: {v: [[1, 2], [3, 4], [5, 6]]}}, "
      "{flat_map: [{from_tensor_slices: {x: $v}}]}, {batch: 4}",
      "", 1 },
    { "{list_files: {file_pattern: 'data/*', shuffle: false}}, {read_file: {columns: [value]}}, "
      "{ragged_batch: 2}",
      "on_error: skip", 1 },
    { "{text_line: lines}, {batch: 3}, {string_split: {sep: ' '}}", "compression: zstd", 1 },
    { "{from_tensor_slices: {m: [[1, 0], [0, 4], [5, 6]], s: [a, b, c]}}, {batch: 2}, "
      "{to_sparse: {columns: [m]}}",
      "", 1 },
    { "{range: 4000}, {shuffle: 50}, {batch: 300}", "compression: narrow", 1 },
    { "{range: 4000}, {cast: {columns: [value], dtype: float32}}, {batch: 300}",
      "compression: zstd", 1 },
    { "{from_tensor_slices: {x: [1.0, 2.0, 3.0]}}, {expand_dims: {columns: [x], axis: -1}}, "
      "{reshape: {columns: [x], shape: [1, 1, 1]}}, "
      "{random_brightness: {columns: [x], factor: 0.5, seed: 5}}, {batch: 2}",
      "", 1 },
    { "{text_line: lines}, {padded_batch: 2}, {padded_batch: 2}", "", 1 },
    { "{text_line: lines}, {string_split: {sep: ' '}}, {padded_batch: 4}", "", 3 },
};

enum { HELPER_STREAMS = sizeof helper_streams / sizeof *helper_streams };

static char helper_folder[64];
static struct helper_pair helper_pairs[HELPER_STREAMS];
static unsigned helper_uses[HELPER_STREAMS];

static void
remove_folder(void)
{
    for (size_t i = 0; i < HELPER_STREAMS; i++)
        if (helper_uses[i] > 0)
            helper_pair_close(&helper_pairs[i]);
    remove_tree(helper_folder);
}

static void
copy_file(const char *name)
{
    char from[512], to[512], bytes[1 << 16];
    FILE *in, *out;
    size_t count;

    snprintf(from, sizeof from, "%s/%s", FUZZ_CASES, name);
    snprintf(to, sizeof to, "%s/%s", helper_folder, name);
    in = fopen(from, "rb");
    out = fopen(to, "wb");
    must(in != NULL && out != NULL);
    while ((count = fread(bytes, 1, sizeof bytes, in)) > 0)
        must(fwrite(bytes, 1, count, out) == count);
    must(fclose(in) == 0 && fclose(out) == 0);
}

/* Nobody waits: as soon as an end would, its time is over. */
static int64_t
jump(void *context)
{
    static int64_t now_ns;

    (void)context;
    return now_ns += INT64_C(60000000000);
}

static void
make_folder(void)
{
    static const struct tnd_clock clock = { .now_ns = jump };
    char path[128];
    FILE *lines;

    strcpy(helper_folder, "/tmp/tundish-fuzz-XXXXXX");
    must(mkdtemp(helper_folder) != NULL);
    atexit(remove_folder);
    snprintf(path, sizeof path, "%s/data", helper_folder);
    must(mkdir(path, 0700) == 0);
    copy_file("data/basic.csv");
    copy_file("data/content_bytes.tfrecord");
    copy_file("data/texts.parquet");
    copy_file("data/lists.parquet");
    snprintf(path, sizeof path, "%s/lines", helper_folder);
    lines = fopen(path, "w");
    must(lines != NULL);
    for (int i = 0; i < 40; i++)
        fprintf(lines, "line %d of %d\n", i, i * i);
    must(fclose(lines) == 0);
    tnd_clock_install(&clock);
}

/* The stream of this number, with a part dealt. It is opened anew now and then: a helper remembers
 * the files that it was told of. */
static struct helper_pair *
helper_stream(uint8_t number)
{
    enum { USES = 2000 };
    size_t i = number % HELPER_STREAMS;
    struct helper_pair *pair = &helper_pairs[i];

    if (helper_folder[0] == '\0')
        make_folder();
    if (helper_uses[i] == USES)
        helper_pair_close(pair);
    if (helper_uses[i] % USES == 0) {
        helper_pair_open_for(pair, helper_streams[i].replicas, helper_folder,
                             helper_streams[i].stages, helper_streams[i].deliver);
        must(helper_pair_deal(pair));
        helper_uses[i] = 0;
    }
    helper_uses[i]++;
    return pair;
}

#endif
