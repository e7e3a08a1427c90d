/* test_source_directory.c - folders of classes. */
#include "source_fixture.h"
#include "unit/test_file.h"

static void
add_folder(const struct folder *folder, const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* d/cat: b.png a.JPG, more/c.gif, more-x/d.jpg; d/dog: z.jpeg n.txt; d/.hidden: h.jpg; d/loose.jpg
 */
static void
animals(struct folder *folder)
{
    static const char *const folders[] = {
        "d", "d/cat", "d/cat/more", "d/cat/more-x", "d/dog", "d/.hidden",
    };
    static const char *const files[] = {
        "d/cat/b.png",  "d/cat/a.JPG", "d/cat/more/c.gif", "d/cat/more-x/d.jpg",
        "d/dog/z.jpeg", "d/dog/n.txt", "d/.hidden/h.jpg",  "d/loose.jpg",
    };

    folder_open(folder);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        add_folder(folder, folders[i]);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        put_text(folder, files[i], files[i]);
}

static void
files_come_by_class_then_folder_then_name(void **state)
{
    struct folder folder;

    (void)state;
    animals(&folder);
    assert_texts(&folder, "[directory: d, select: path]",
                 "d/cat/a.JPG|d/cat/b.png|d/cat/more/c.gif|d/cat/more-x/d.jpg|d/dog/z.jpeg|");
    assert_texts(&folder, "[directory: d/, select: value]",
                 "d/cat/a.JPG|d/cat/b.png|d/cat/more/c.gif|d/cat/more-x/d.jpg|d/dog/z.jpeg|");
    assert_texts(&folder, "[directory: {directory: d, extensions: [.txt]}, select: value]",
                 "d/dog/n.txt|");
    folder_close(&folder);
}

static void
labels_count_the_classes_in_their_order(void **state)
{
    struct folder folder;

    (void)state;
    animals(&folder);
    assert_texts(&folder,
                 "[directory: {directory: d, class_names: [dog, cat]}, map: {v: "
                 "\"path + ' ' + ('1' if label == 1 else '0')\"}, select: v, take: 2]",
                 "d/dog/z.jpeg 0|d/cat/a.JPG 1|");
    folder_close(&folder);
}

/* The files that Keras' image_dataset_from_directory gives. */
static void
parts_are_split_as_in_keras(void **state)
{
#define PART(rest)                                                                                 \
    "[directory: {directory: d, validation_split: 0.4, subset: " rest "}, select: path]"
    struct folder folder;

    (void)state;
    animals(&folder);
    assert_texts(&folder, PART("training"), "d/cat/a.JPG|d/cat/b.png|d/cat/more/c.gif|");
    assert_texts(&folder, PART("validation"), "d/cat/more-x/d.jpg|d/dog/z.jpeg|");
    /* RandomState(7) shuffles them to a d c b z; then each part is shuffled. */
    assert_texts(&folder, PART("training, shuffle: true, seed: 7, reshuffle_each_iteration: false"),
                 "d/cat/a.JPG|d/cat/more/c.gif|d/cat/more-x/d.jpg|");
    assert_texts(&folder, PART("validation, shuffle: true, seed: 7"), "d/cat/b.png|d/dog/z.jpeg|");
#undef PART
    folder_close(&folder);
}

static void
an_order_that_is_kept_is_that_of_every_epoch(void **state)
{
    struct folder folder;

    (void)state;
    animals(&folder);
    assert_texts(&folder,
                 "[directory: {directory: d, shuffle: true, seed: 7, reshuffle_each_iteration: "
                 "false}, take: 3, repeat: 2, select: path]",
                 "d/cat/more/c.gif|d/dog/z.jpeg|d/cat/more-x/d.jpg|"
                 "d/cat/more/c.gif|d/dog/z.jpeg|d/cat/more-x/d.jpg|");
    assert_texts(&folder,
                 "[list_files: {file_pattern: d/cat/*, seed: 3, reshuffle_each_iteration: false}, "
                 "take: 2, repeat: 2]",
                 "d/cat/more-x|d/cat/more|d/cat/more-x|d/cat/more|");
    folder_close(&folder);
}

static void
what_is_wrong_is_named(void **state)
{
    struct folder folder;

    (void)state;
    animals(&folder);
    assert_refused(&folder, "[directory: nowhere]", "cannot list the folder nowhere");
    assert_refused(&folder, "[directory: {directory: d, class_names: [cow]}]",
                   "'cow' is not a folder in d; there are cat, dog");
    assert_refused(&folder, "[directory: {directory: d, class_names: [cat, cat]}]", "twice");
    assert_refused(&folder, "[directory: {directory: d, class_names: [../d]}]",
                   "cannot be a class");
    assert_refused(&folder, "[directory: {directory: d, extensions: [.bin]}]", "no file in its");
    assert_refused(&folder, "[directory: {directory: d, validation_split: 0.1, subset: training}]",
                   "leaves none for validation");
    assert_refused(&folder, "[directory: {directory: d, validation_split: 0.5}]", "go together");
    assert_refused(&folder,
                   "[directory: {directory: d, validation_split: 0.5, subset: training, shuffle: "
                   "true}]",
                   "needs a seed");
    assert_refused(&folder, "[directory: {directory: d, validation_split: 1, subset: training}]",
                   "between 0 and 1");
    folder_close(&folder);
}

static void
a_file_that_is_gone_is_a_bad_row_and_no_other(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    char path[256];
    char *texts;

    (void)state;
    animals(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, "[directory: d, select: value]"),
                     TUNDISH_OK);
    snprintf(path, sizeof path, "%s/d/cat/b.png", folder.path);
    assert_int_equal(unlink(path), 0);
    texts = pipeline_texts(&pipeline, 64);
    assert_string_equal(texts,
                        "d/cat/a.JPG|?d/cat/b.png: cannot be opened: No such file or directory "
                        "(directory, line 3 of case.yaml)|d/cat/more/c.gif|d/cat/more-x/d.jpg|"
                        "d/dog/z.jpeg|");
    free(texts);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

static void
a_link_that_leads_back_is_refused(void **state)
{
    struct folder folder;
    char path[256];

    (void)state;
    animals(&folder);
    snprintf(path, sizeof path, "%s/d/dog/back", folder.path);
    assert_int_equal(symlink("..", path), 0);
    assert_refused(&folder, "[directory: d]", "does a link lead back");
    folder_close(&folder);
}

#define STAGE " (read_file, line 3 of case.yaml)"

static void
read_file_gives_what_a_path_names(void **state)
{
    struct folder folder;

    (void)state;
    animals(&folder);
    put_text(&folder, "list", "d/loose.jpg\nnone\n\nd\n");
    assert_texts(
        &folder, "[text_line: list, read_file]",
        "d/loose.jpg|?list, line 2: none: cannot be opened: No such file or directory" STAGE
        "|?list, line 3: an empty path names no file" STAGE
        "|?list, line 4: d: it is not a regular file: Is a directory" STAGE "|");
    folder_close(&folder);
}

TEST_FILE(test_source_directory)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_by_class_then_folder_then_name),
        cmocka_unit_test(labels_count_the_classes_in_their_order),
        cmocka_unit_test(parts_are_split_as_in_keras),
        cmocka_unit_test(an_order_that_is_kept_is_that_of_every_epoch),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_file_that_is_gone_is_a_bad_row_and_no_other),
        cmocka_unit_test(a_link_that_leads_back_is_refused),
        cmocka_unit_test(read_file_gives_what_a_path_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
