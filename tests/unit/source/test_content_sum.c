/* test_content_sum.c - hashes of whole files: made once, kept, and never believed of another file.
 */
#include "source_fixture.h"

#include <dirent.h>
#include <fcntl.h>

#include "core/status.h"
#include "source/files/content_sum.h"
#include "source/files/files_private.h"
#include "source/scan/scanner.h"
#include "unit/source/file_clock.h"
#include "unit/test_file.h"

enum { FILE_BYTES = (2 << 20) + 77 };

static struct folder folder;
static struct source_files *files;
static _Atomic int stop;

/* The file, with one byte changed if `changed` is not 0. */
static void
write_file(size_t changed)
{
    uint8_t *bytes = malloc(FILE_BYTES);
    char path[256];

    for (size_t i = 0; i < FILE_BYTES; i++)
        bytes[i] = (uint8_t)(i * i >> 7);
    if (changed > 0)
        bytes[changed] ^= 4;
    put_file(&folder, "a", bytes, FILE_BYTES);
    free(bytes);
    snprintf(path, sizeof path, "%s/a", folder.path);
    assert_int_equal(stat(path, &written), 0);
}

/* As another process would see it. */
static struct source_file *
open_anew(void)
{
    const struct record_format format = { .scanner = &scanner_text_line };
    struct source_files_options options = { .root = folder.path, .cache_folder = folder.cache };
    struct source_file *file;
    int descriptor;

    source_files_close(files);
    assert_int_equal(source_files_open(&options, &files), TUNDISH_OK);
    file = files_enter(files, "a", 1, &format);
    assert_int_equal(file_open(file, &descriptor), TUNDISH_OK);
    close(descriptor);
    return file;
}

static uint64_t
make(struct source_file *file)
{
    assert_true(content_sum_applies(file));
    assert_int_equal(content_sum_make(file, &stop), TUNDISH_OK);
    assert_int_not_equal(file->content_sum, 0);
    return file->content_sum;
}

static int
begin(void **state)
{

    (void)state;
    folder_open(&folder);
    tnd_clock_install(&file_clock);
    age_ns = OLD_NS;
    write_file(0);
    return 0;
}

static int
end(void **state)
{
    (void)state;
    tnd_clock_install(NULL);
    source_files_close(files);
    files = NULL;
    folder_close(&folder);
    return 0;
}

static void
it_is_made_once(void **state)
{
    struct source_file *file = open_anew();
    uint64_t sum;

    (void)state;
    assert_int_equal(content_sum_recall(file), 0);
    sum = make(file);
    file = open_anew();
    assert_int_equal(file->content_sum, 0);
    assert_int_equal(content_sum_recall(file), sum);
    assert_int_equal(file->content_sum, sum);
}

/* Wherever it is: also between the pages that a place samples. */
static void
each_byte_counts(void **state)
{
    static const size_t changed[] = { 1, 5000, 1 << 20, (1 << 20) - 1, FILE_BYTES - 1 };
    uint64_t sum = make(open_anew());

    (void)state;
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        struct source_file *file;

        write_file(changed[i]);
        file = open_anew();
        assert_int_equal(content_sum_recall(file), 0);
        assert_int_not_equal(make(file), sum);
    }
}

static void
that_of_a_young_file_is_not_kept(void **state)
{
    (void)state;
    age_ns = YOUNG_NS;
    (void)make(open_anew());
    assert_int_equal(content_sum_recall(open_anew()), 0);
}

static void
find_kept(char path[512])
{
    DIR *entries = opendir(folder.cache);
    struct dirent *entry;

    path[0] = '\0';
    while ((entry = readdir(entries)) != NULL)
        if (strstr(entry->d_name, ".sum") != NULL)
            snprintf(path, 512, "%s/%s", folder.cache, entry->d_name);
    closedir(entries);
    assert_true(path[0] != '\0');
}

static void
a_damaged_one_is_not_believed(void **state)
{
    char path[512];
    struct stat about;
    int kept;

    (void)state;
    (void)make(open_anew());
    find_kept(path);
    kept = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(fstat(kept, &about), 0);
    for (off_t i = 0; i < about.st_size; i++) {
        uint8_t byte;

        assert_int_equal(pread(kept, &byte, 1, i), 1);
        byte ^= 0x20;
        assert_int_equal(pwrite(kept, &byte, 1, i), 1);
        assert_int_equal(content_sum_recall(open_anew()), 0);
        byte ^= 0x20;
        assert_int_equal(pwrite(kept, &byte, 1, i), 1);
    }
    assert_int_not_equal(content_sum_recall(open_anew()), 0);
    assert_int_equal(ftruncate(kept, about.st_size - 1), 0);
    assert_int_equal(content_sum_recall(open_anew()), 0);
    close(kept);
}

static void
a_stop_ends_it(void **state)
{
    struct source_file *file = open_anew();

    (void)state;
    atomic_store(&stop, 1);
    assert_int_equal(content_sum_make(file, &stop), TUNDISH_E_TIMEOUT);
    assert_int_equal(file->content_sum, 0);
    atomic_store(&stop, 0);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, begin, end)

TEST_FILE(test_content_sum)
{
    const struct CMUnitTest tests[] = {
        WITH_FILE(it_is_made_once),
        WITH_FILE(each_byte_counts),
        WITH_FILE(that_of_a_young_file_is_not_kept),
        WITH_FILE(a_damaged_one_is_not_believed),
        WITH_FILE(a_stop_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
