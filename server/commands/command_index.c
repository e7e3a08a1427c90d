/* command_index.c - `tundish index`: find the records of files ahead of time. */
#include "commands/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "core/plural.h"
#include "source/files/files.h"

struct indexing {
    const char *kind;
    const char *cache;
    bool json;
};

/* On a terminal the same line is written again and again. */
static void
show_progress(void *context, uint64_t bytes_done)
{
    fprintf(stderr, "\r%s: %" PRIu64 " MB", (const char *)context, bytes_done / 1000000);
}

static void
say(const struct indexing *indexing, const char *path, const struct source_index *index)
{
    if (indexing->json) {
        struct json json;

        json_start(&json, stdout);
        json_object(&json);
        json_key_text(&json, "file", path);
        json_key_int(&json, "records", (int64_t)index->record_count);
        json_key_int(&json, "bytes", (int64_t)index->file_bytes);
        json_key(&json, "hash");
        json_uint(&json, index->hash);
        json_key_bool(&json, "kept", index->is_kept);
        json_object_end(&json);
        putchar('\n');
        return;
    }
    printf("%s: %" PRIu64 " record%s in %" PRIu64 " byte%s, %s\n", path, index->record_count,
           TND_PLURAL(index->record_count), index->file_bytes, TND_PLURAL(index->file_bytes),
           index->is_kept ? "index kept" : "too small or too new to be worth an index");
}

static int
index_files(const struct indexing *indexing, char **paths)
{
    struct source_files_options options = { .root = ".",
                                            .cache_folder = indexing->cache,
                                            .remote = &spec_remote_default };
    bool terminal = isatty(STDERR_FILENO);
    struct source_files *files;
    int result = EXIT_OK;

    if (source_files_open(&options, &files) != TUNDISH_OK) {
        fprintf(stderr, "tundish index: %s\n", tnd_error_text());
        return EXIT_SYSTEM;
    }
    for (; *paths != NULL; paths++) {
        struct source_index index;
        tundish_status status;

        /* A missing file is a system error, and a damaged one is not: scripts tell them apart by
         * the exit status. */
        if (!spec_is_url(*paths) && access(*paths, R_OK) != 0) {
            fprintf(stderr, "tundish index: %s: %s\n", *paths, strerror(errno));
            /* The other files are indexed all the same. */
            result = result == EXIT_OK ? EXIT_SYSTEM : result;
            continue;
        }
        status = source_index_build(files, *paths, indexing->kind, terminal ? show_progress : NULL,
                                    *paths, &index);

        /* Erase the progress, of which the result takes the line. */
        if (terminal)
            fputs("\r\033[K", stderr);
        if (status == TUNDISH_OK) {
            say(indexing, *paths, &index);
        } else {
            fprintf(stderr, "tundish index: %s\n", tnd_error_text());
            result = status == TUNDISH_E_SYSTEM ? EXIT_SYSTEM : EXIT_REFUSED;
        }
    }
    source_files_close(files);
    return result;
}

static int
command_index_run(int argc, char **argv)
{
    struct indexing indexing = { .kind = "tfrecord" };
    const struct option_row rows[] = {
        { "kind", .text = &indexing.kind },
        { "cache", .text = &indexing.cache },
        { "json", .flag = &indexing.json },
        { 0 },
    };
    int result = options_read(&command_index, argc, argv, rows);

    if (result != EXIT_OK)
        return result;
    if (optind >= argc)
        return command_misused(&command_index, "files are needed");
    return index_files(&indexing, argv + optind);
}

const struct command command_index = {
    .name = "index",
    .arguments = "FILE ...",
    .help = "Index the records of files in advance.",
    .details = "  --kind KIND         tfrecord (default), text_line, csv or webdataset\n"
               "  --cache DIR         folder for indexes\n"
               "  --json              print one JSON object per file, one per line\n"
               "\n"
               "A file may be a URL; of a store, AWS_ENDPOINT_URL, AWS_REGION and the credentials\n"
               "of the environment hold.\n",
    .run = command_index_run,
};
