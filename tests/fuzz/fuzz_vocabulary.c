/* fuzz_vocabulary.c - vocabularies that somebody else wrote: lines, lines with frequencies, and
 * gzipped records. The first byte chooses which, and whether integers are meant. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "content/learned/learned.h"
#include "core/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { FORMS = 4 };

static char folder[] = "/tmp/tundish-fuzz-XXXXXX";

/* The vocabulary, and the tables that were made of it. */
static void
empty_folder(void)
{
    DIR *listing = opendir(folder);
    struct dirent *entry;

    must(listing != NULL);
    while ((entry = readdir(listing)) != NULL)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(listing), entry->d_name, 0);
    closedir(listing);
}

static void
remove_folder(void)
{
    empty_folder();
    rmdir(folder);
}

static void
make_folder(void)
{
    static bool is_made;

    if (is_made)
        return;
    must(mkdtemp(folder) != NULL);
    must(atexit(remove_folder) == 0);
    is_made = true;
}

static void
write_file(const char *path, const uint8_t *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");

    must(file != NULL && fwrite(data, 1, bytes, file) == bytes && fclose(file) == 0);
}

/* Stages whose vocabulary is called x, one a form. */
static const struct spec_stage *
stage_of(unsigned form)
{
    static const char text[] =
        "streams: {a: {dataset: [from_tensors: {x: [a]},\n"
        "  compute_and_apply_vocabulary: {},\n"
        "  compute_and_apply_vocabulary: {store_frequency: true},\n"
        "  compute_and_apply_vocabulary: {file_format: tfrecord_gzip},\n"
        "  compute_and_apply_vocabulary: {file_format: tfrecord_gzip, store_frequency: true}]}}\n";
    static struct spec_file *file;
    struct spec_errors errors = { 0 };

    if (file == NULL)
        must(spec_open_text(text, sizeof text - 1, "fuzz", "/", &errors, &file) == TUNDISH_OK);
    return &file->streams[0].dataset.stages[1 + form];
}

static void
use(const struct vocab *vocab, enum vocab_keys keys)
{
    int64_t last = (int64_t)vocab_count(vocab) - 1, line = -1, integer;
    struct byte_view term;

    if (last < 0) /* what was learned of no batch */
        return;
    if (keys == VOCAB_STRINGS) {
        must(vocab_term(vocab, last, &term));
        vocab_lookup(vocab, &term, 1, &line);
    } else {
        must(vocab_integer(vocab, last, &integer));
        vocab_lookup_integers(vocab, &integer, 1, &line);
    }
    must(line == last);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    unsigned choice = bytes > 0 ? data[0] : 0;
    enum vocab_keys keys = (choice & 4) != 0 ? VOCAB_INTEGERS : VOCAB_STRINGS;
    struct learned learned = { .folder = folder, .is_analyzing = true };
    struct spec_errors errors = { 0 };
    const struct stage_config config = {
        .stage = stage_of(choice % FORMS),
        .cache_folder = folder,
        .learned = &learned,
        .errors = &errors,
    };
    const struct learned_form form = learned_form_of(config.stage);
    struct vocab *vocab = NULL;
    char *path;

    make_folder(); /* whose name the path has */
    path = learned_path(&learned, "x", form.suffix);
    if (bytes > 0)
        write_file(path, data + 1, bytes - 1);
    if (bytes > 0 && learned_vocab_open(&config, "x", keys, &vocab) == TUNDISH_OK) {
        use(vocab, keys);
        vocab_close(vocab);
    }
    empty_folder();
    free(path);
    spec_errors_close(&errors);
    return 0;
}
