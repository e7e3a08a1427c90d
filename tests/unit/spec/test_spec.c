/* test_spec.c - whole files: all errors at once, files on disk, the recorded cases. */
#include "spec_fixture.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/status.h"
#include "unit/test_file.h"

static void
all_errors_of_a_file_are_reported_in_order(void **state)
{
    (void)state;
    assert_errors("sead: 1\n"
                  "datasets:\n"
                  "  a: [range: 5, batch: &x 0]\n"
                  "streams:\n"
                  "  train:\n"
                  "    dataset:\n"
                  "      - range: ten\n"
                  "      - shuffle: {bufer_size: 5}\n"
                  "      - zip: [b]\n"
                  "    distribute: {replicas: 0}\n"
                  "    delivr: {}\n"
                  "  eval: {dataset: c}\n",
                  "1:1: pipeline file has no \"sead\"; did you mean seed?\n"
                  "3:24: anchors (&x) are not supported; a text that starts with & must be quoted\n"
                  "7:16: stop of range must be an integer, not \"ten\"\n"
                  "8:19: shuffle has no \"bufer_size\"; did you mean buffer_size?\n"
                  "9:9: zip can only be the first stage; move the stages before it to `datasets`\n"
                  "9:15: there is no dataset \"b\"; did you mean a?\n"
                  "10:28: replicas of distribute must be an integer from 1 to 4096, not 0\n"
                  "11:5: stream has no \"delivr\"; did you mean deliver?\n"
                  "12:19: there is no dataset \"c\"; did you mean a?\n");
}

static void
a_file_needs_streams(void **state)
{
    (void)state;
    assert_error_has("seed: 1\n", "pipeline file needs streams");
    assert_error_has("streams: {}\n", "at least one stream");
    assert_error_has("streams: []\n", "a mapping");
    assert_error_has("streams: {a: }\n", "stream must be a mapping, not null");
    assert_error_has("streams: {a: {}}\n", "stream needs dataset");
    assert_error_has("- a\n", "pipeline file must be a mapping, not a list");
}

static void
the_environment_stands_in_before_types_are_looked_at(void **state)
{
    struct spec_file *file;

    (void)state;
    setenv("TUNDISH_TEST_N", "12", 1);
    file = parse(STREAM_OF("range: ${TUNDISH_TEST_N}", "take: ${TUNDISH_TEST_NO:-7}"));
    assert_int_equal(spec_int(stage_of(file, 0), "stop"), 12);
    assert_int_equal(spec_int(stage_of(file, 1), "count"), 7);
    spec_close(file);
    assert_error_has(STREAM_OF("range: \"${TUNDISH_TEST_N}\""), "not \"12\"");
    assert_error_has(STREAM_OF("tfrecord: ${TUNDISH_TEST_UNSET}"), "is not set");
}

static void
stages_know_their_file_and_place(void **state)
{
    struct spec_file *file = parse(STREAM_OF("range: 5", "batch: 2"));

    (void)state;
    assert_ptr_equal(stage_of(file, 1)->file, file);
    assert_int_equal(stage_of(file, 1)->line, 5);
    assert_int_equal(stage_of(file, 1)->column, 9);
    assert_string_equal(file->streams[0].name, "case");
    assert_null(spec_find_stream(file, "other"));
    spec_close(file);
}

static void
relative_paths_start_at_the_files_folder_or_the_root(void **state)
{
    char folder[] = "/tmp/tundish-test-XXXXXX";
    char path[64];
    struct spec_errors errors = { 0 };
    struct spec_file *file;
    char *joined;
    FILE *out;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.yaml", folder);
    out = fopen(path, "w");
    fputs(STREAM_OF("range: 5"), out);
    fclose(out);
    assert_int_equal(spec_open(path, NULL, &errors, &file), TUNDISH_OK);
    joined = spec_path(file, "data/x");
    assert_true(strncmp(joined, folder, strlen(folder)) == 0);
    assert_string_equal(joined + strlen(folder), "/data/x");
    free(joined);
    joined = spec_path(file, "/data/x");
    assert_string_equal(joined, "/data/x");
    free(joined);
    spec_close(file);
    assert_int_equal(spec_open(path, "/elsewhere", &errors, &file), TUNDISH_OK);
    joined = spec_path(file, "x");
    assert_string_equal(joined, "/elsewhere/x");
    free(joined);
    spec_close(file);
    unlink(path);
    rmdir(folder);
}

static void
a_file_that_cannot_be_read_is_a_system_error(void **state)
{
    struct spec_errors errors = { 0 };
    struct spec_file *file = NULL;

    (void)state;
    assert_int_equal(spec_open("/nowhere/a.yaml", NULL, &errors, &file), TUNDISH_E_SYSTEM);
    assert_int_equal(spec_open("/", NULL, &errors, &file), TUNDISH_E_SYSTEM);
    assert_null(file);
    assert_int_equal(errors.count, 0);
    spec_close(NULL);
    spec_errors_close(NULL);
}

static char *
whole_file(const char *path)
{
    FILE *in = fopen(path, "r");
    char *text = NULL;
    size_t text_bytes = 0;

    if (in == NULL || getdelim(&text, &text_bytes, '\0', in) < 0)
        fail_msg("cannot read %s", path);
    fclose(in);
    return text;
}

/* A case that ends in an error may be refused: by the file alone as well as by what it meets. */
static bool
may_be_refused(const char *yaml_path)
{
    char *json_path = tnd_sprintf("%.*s.json", (int)(strlen(yaml_path) - 5), yaml_path);
    char *json = whole_file(json_path);
    bool may = strstr(json, "\"refused\"") != NULL || strstr(json, "\"error\"") != NULL;

    free(json);
    free(json_path);
    return may;
}

static unsigned
check_recorded_area(const char *area)
{
    char *folder = tnd_sprintf("%s/%s", RECORDED_CASES, area);
    DIR *listing = opendir(folder);
    struct dirent *entry;
    unsigned count = 0;

    assert_non_null(listing);
    while ((entry = readdir(listing)) != NULL) {
        size_t name_bytes = strlen(entry->d_name);
        struct spec_errors errors = { 0 };
        struct spec_file *file = NULL;
        char *path;

        if (name_bytes < 5 || strcmp(entry->d_name + name_bytes - 5, ".yaml") != 0)
            continue;
        path = tnd_sprintf("%s/%s", folder, entry->d_name);
        if (spec_open(path, NULL, &errors, &file) != TUNDISH_OK && !may_be_refused(path))
            fail_msg("%s", tnd_error_text());
        if (file != NULL)
            assert_non_null(spec_find_stream(file, "case"));
        spec_errors_close(&errors);
        spec_close(file);
        free(path);
        count++;
    }
    closedir(listing);
    free(folder);
    return count;
}

static void
every_recorded_case_is_understood(void **state)
{
    static const char *const areas[] = { "order", "source", "distribute", "content", "analyze" };
    unsigned count = 0;

    (void)state;
    setenv("CASE_FOLDER", "/tmp", 1); /* cases that write get it from their runner */
    for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++)
        count += check_recorded_area(areas[i]);
    assert_true(count > 0);
}

TEST_FILE(test_spec)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_errors_of_a_file_are_reported_in_order),
        cmocka_unit_test(a_file_needs_streams),
        cmocka_unit_test(the_environment_stands_in_before_types_are_looked_at),
        cmocka_unit_test(stages_know_their_file_and_place),
        cmocka_unit_test(relative_paths_start_at_the_files_folder_or_the_root),
        cmocka_unit_test(a_file_that_cannot_be_read_is_a_system_error),
        cmocka_unit_test(every_recorded_case_is_understood),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
