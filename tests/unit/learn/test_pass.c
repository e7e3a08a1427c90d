/* test_pass.c - passes by several threads: what is learned is what one thread learns. */
#include <dirent.h>

#include "../source/source_fixture.h"
#include "learn/analyze.h"
#include "unit/test_file.h"

enum { ROWS = 9000 };

static const char pipeline[] =
    "streams:\n"
    "  rows:\n"
    "    dataset:\n"
    "      - csv: {filenames: rows.csv, record_defaults: [0, 0.0, \"\"], column_names: [n, x, w]}\n"
    "      - filter: \"n % 7 != 3\"\n"
    "      - compute_and_apply_vocabulary: {columns: w, weights: x, output: weighed}\n"
    "      - string_lookup: {columns: w, output_mode: tf_idf, output: ids}\n"
    "      - discretization: {columns: x, num_bins: 5, output: bin}\n"
    "      - bucketize: {columns: n, num_buckets: 4, output: part}\n"
    "      - scale_to_z_score_per_key: {columns: x, key: w}\n"
    "      - batch: 100\n";

static void
write_rows(const struct folder *folder, const char *end)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    for (int i = 0; i < ROWS; i++)
        fprintf(file, "%d,%d.25,w%d\n", i, i * 37 % 101, i * i % 1009);
    fputs(end, file);
    fclose(file);
    put_file(folder, "rows.csv", text, bytes);
    free(text);
}

/* Learn into FOLDER/NAME. */
static tundish_status
learn(const struct folder *folder, const char *name, uint32_t threads, int64_t memory_bytes)
{
    char analysis[128];
    struct spec_errors errors = { 0 };
    struct analyze_options options = {
        .folder = analysis,
        .cache_folder = folder->cache,
        .thread_count = threads,
        .memory_bytes = memory_bytes,
        .is_quiet = true,
        .errors = &errors,
    };
    struct spec_file *file;
    tundish_status status;

    snprintf(analysis, sizeof analysis, "%s/%s", folder->path, name);
    assert_int_equal(spec_open_text(pipeline, strlen(pipeline), "f", folder->path, &errors, &file),
                     TUNDISH_OK);
    options.file = file;
    options.stream = &file->streams[0];
    status = analyze_run(&options);
    spec_close(file);
    spec_errors_close(&errors);
    return status;
}

static char *
read_whole(const char *folder, const char *name, const char *file, size_t *ret_bytes)
{
    char path[512], *text = calloc(1 << 20, 1);
    FILE *opened;

    snprintf(path, sizeof path, "%s/%s/%s", folder, name, file);
    opened = fopen(path, "rb");
    assert_non_null(opened);
    *ret_bytes = fread(text, 1, 1 << 20, opened);
    fclose(opened);
    return text;
}

static void
assert_same_results(const struct folder *folder, const char *one, const char *other)
{
    char path[128];
    DIR *files;
    int count = 0;

    snprintf(path, sizeof path, "%s/%s", folder->path, one);
    files = opendir(path);
    assert_non_null(files);
    for (struct dirent *entry; (entry = readdir(files)) != NULL;) {
        size_t bytes, other_bytes;
        char *text, *other_text;

        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "origin") == 0)
            continue;
        text = read_whole(folder->path, one, entry->d_name, &bytes);
        other_text = read_whole(folder->path, other, entry->d_name, &other_bytes);
        assert_true(bytes > 0);
        assert_int_equal(bytes, other_bytes);
        assert_memory_equal(text, other_text, bytes);
        free(text);
        free(other_text);
        count++;
    }
    closedir(files);
    assert_int_equal(count, 7); /* two vocabularies, weights, boundaries twice, mean, variance */
}

static void
several_threads_learn_what_one_does(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    write_rows(&folder, "");
    assert_int_equal(learn(&folder, "one", 1, 1 << 30), TUNDISH_OK);
    assert_int_equal(learn(&folder, "four", 4, 1 << 30), TUNDISH_OK);
    assert_same_results(&folder, "one", "four");
    assert_int_equal(learn(&folder, "spilled", 3, 1), TUNDISH_OK);
    assert_same_results(&folder, "one", "spilled");
    folder_close(&folder);
}

static void
all_threads_end_at_the_first_bad_row(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    write_rows(&folder, "1,2.5\n3,x,y\n");
    for (uint32_t threads = 1; threads < 5; threads += 3) {
        assert_int_equal(learn(&folder, "bad", threads, 1 << 30), TUNDISH_E_DATA);
        assert_non_null(strstr(tnd_error_text(), "rows.csv"));
        assert_null(strstr(tnd_error_text(), "not a valid")); /* that is the one behind it */
    }
    folder_close(&folder);
}

TEST_FILE(test_pass)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_threads_learn_what_one_does),
        cmocka_unit_test(all_threads_end_at_the_first_bad_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
