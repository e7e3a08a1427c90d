/* provenance.c - which data and stages the results were learned from. */
#include "learn/results/provenance.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "content/learned/learned_file.h"
#include "core/memory.h"
#include "core/own_file.h"
#include "learn/learn_view.h"
#include "learn/results/artifact.h"
#include "spec/fingerprint.h"

static const char FIRST_LINE[] = "tundish-analysis 2";

const struct spec_stream *
provenance_stream(const struct spec_file *file)
{
    if (file->learn_from != NULL)
        return spec_find_stream(file, file->learn_from);
    if (file->stream_count == 1)
        return &file->streams[0];
    /* A file with several streams usually calls the one to learn from "train". */
    return spec_find_stream(file, "train");
}

bool
provenance_is_needed(const struct spec_file *file)
{
    for (uint32_t s = 0; s < file->stream_count; s++)
        for (uint32_t i = 0; i < file->streams[s].dataset.stage_count; i++)
            if (learned_is_needed(&file->streams[s].dataset.stages[i]) ||
                learn_view_learns_inside(&file->streams[s].dataset.stages[i]))
                return true;
    return false;
}

/* Files are compared by their content elsewhere, so paths do not count. Nor do parameters that
 * change no row. */
static enum spec_counting
counts(const struct parameter_info *parameter)
{
    if ((parameter->types & (TYPE_PATHS | TYPE_NO_EFFECT)) != 0 ||
        strcmp(parameter->name, "num_parallel_reads") == 0)
        return COUNTS_NOT;
    return COUNTS_WHOLE;
}

/* The hash of a learner's stage and of the stages before it, as they are learned from. */
static uint64_t
hash_of(const struct learner *learner)
{
    struct learn_view view;
    uint64_t hash;

    learn_view_open(&view, &learner->up_to);
    hash = spec_hash_dataset(1, &view.dataset, counts);
    learn_view_close(&view);
    return hash;
}

struct reading {
    struct learned *learned;
    const char *folder;
    uint64_t *stages; /* for each name: the hash of all stages */
    struct input_files files;
};

static void
set_problem(struct learned *learned, char *problem)
{
    /* The first problem is reported: it usually causes the others. */
    if (learned->problem == NULL)
        learned->problem = problem;
    else
        free(problem);
}

static bool
read_learned(struct reading *reading, const char *line)
{
    struct learned *learned = reading->learned;
    uint64_t stages, stage;
    int used = 0;

    /* The file may have been edited or cut: every line must parse completely. */
    if (sscanf(line, "learned %16" SCNx64 " %16" SCNx64 " %n", &stages, &stage, &used) != 2 ||
        used == 0)
        return false;
    learned->names = tnd_realloc(learned->names, learned->count + 1, sizeof *learned->names);
    reading->stages = tnd_realloc(reading->stages, learned->count + 1, sizeof *reading->stages);
    reading->stages[learned->count] = stages;
    learned->names[learned->count++] =
        (struct learned_name){ .name = tnd_strdup(line + used), .stage = stage };
    return true;
}

static bool
read_result(struct learned *learned, const char *line)
{
    struct learned_result result;
    int used = 0;

    if (sscanf(line, "result %16" SCNx64 " %n", &result.hash, &used) != 1 || used == 0)
        return false;
    result.file = tnd_strdup(line + used);
    learned->results =
        tnd_realloc(learned->results, learned->result_count + 1, sizeof *learned->results);
    learned->results[learned->result_count++] = result;
    return true;
}

static bool
read_line(struct reading *reading, const char *line)
{
    if (strncmp(line, "learned ", 8) == 0)
        return read_learned(reading, line);
    if (strncmp(line, "result ", 7) == 0)
        return read_result(reading->learned, line);
    if (strncmp(line, "file ", 5) == 0)
        return input_files_read(&reading->files, line);
    return strncmp(line, "stream ", 7) == 0;
}

/* Statistics decide the values of columns: nobody else may choose them. */
static bool
is_planted(struct learned *learned, const char *path)
{
    struct stat about;

    if (stat(path, &about) != 0 || !tnd_own_file_is_planted(path, &about))
        return false;
    set_problem(learned, tnd_sprintf("%s belongs to user %u, in a folder that every user may write "
                                     "to",
                                     path, (unsigned)about.st_uid));
    return true;
}

static void
read_provenance(struct reading *reading)
{
    char *path = tnd_sprintf("%s/origin", reading->folder);
    struct learned_file file = { 0 };
    uint32_t number = 1;
    char *line, *rest;

    if (is_planted(reading->learned, reading->folder) || is_planted(reading->learned, path)) {
        free(path);
        return;
    }
    if (learned_file_read(path, &file) != TUNDISH_OK) {
        set_problem(reading->learned,
                    tnd_sprintf("nothing was learned yet (%s)", tnd_error_text()));
        free(path);
        return;
    }
    line = strtok_r((char *)file.bytes, "\n", &rest);
    if (line == NULL || strcmp(line, FIRST_LINE) != 0)
        set_problem(reading->learned, tnd_sprintf("%s:1: expected '%s'", path, FIRST_LINE));
    while (reading->learned->problem == NULL && (line = strtok_r(NULL, "\n", &rest)) != NULL) {
        number++;
        if (!read_line(reading, line))
            set_problem(reading->learned, tnd_sprintf("%s:%u: unexpected line", path, number));
    }
    learned_file_close(&file);
    free(path);
}

/* Check that every stage of the stream was learned after the same stages. */
static void
check_stages(struct reading *reading, const struct spec_stream *stream)
{
    struct learners learners;

    learners_open(&stream->dataset, &learners);
    for (uint32_t i = 0; i < learners.count; i++) {
        uint64_t hash = hash_of(&learners.list[i]);
        /* Names may be in another order, or some of them unused: it is enough that the hash is
         * there. */
        bool found = false;

        for (uint32_t k = 0; k < reading->learned->count; k++)
            found |= reading->stages[k] == hash;
        if (!found)
            set_problem(
                reading->learned,
                tnd_sprintf(
                    "the statistics in %s were learned with other stages than those up to line %u",
                    reading->folder, learners.list[i].stage->line));
    }
    learners_close(&learners);
}

static void
check_files(struct reading *reading, const struct spec_file *file, const struct spec_stream *stream)
{
    struct input_files now = { 0 };
    char *difference = NULL;

    if (input_files_find(file, &stream->dataset, &now) != TUNDISH_OK)
        set_problem(reading->learned, tnd_strdup(tnd_error_text()));
    else
        difference = input_files_differ(&reading->files, &now);
    if (difference != NULL)
        set_problem(reading->learned,
                    tnd_sprintf("the statistics in %s were learned from other files: %s",
                                reading->folder, difference));
    free(difference);
    input_files_close(&now);
}

static void
check_names(struct reading *reading, const struct spec_stream *stream)
{
    if (!input_files_are_named(&reading->files, &stream->dataset))
        set_problem(reading->learned,
                    tnd_sprintf("the statistics in %s were learned from files that are not named "
                                "here",
                                reading->folder));
}

void
provenance_open(const struct spec_file *file, const char *folder, enum provenance_check check,
                struct learned *ret_learned)
{
    const struct spec_stream *stream = provenance_stream(file);
    struct reading reading = { .learned = ret_learned, .folder = folder };

    *ret_learned = (struct learned){ .folder = tnd_strdup(folder) };
    if (stream == NULL)
        /* A problem is not an error yet: a stream that uses no statistics runs without them. */
        set_problem(ret_learned,
                    tnd_strdup("there are several streams, and learn_from does not name one"));
    if (ret_learned->problem == NULL)
        read_provenance(&reading);
    if (ret_learned->problem == NULL)
        check_stages(&reading, stream);
    if (ret_learned->problem == NULL && check == PROVENANCE_FILES)
        check_files(&reading, file, stream);
    if (ret_learned->problem == NULL && check == PROVENANCE_NAMES)
        check_names(&reading, stream);
    free(reading.stages);
    input_files_close(&reading.files);
}

void
provenance_close(struct learned *learned)
{
    for (uint32_t i = 0; i < learned->count; i++)
        free(learned->names[i].name);
    free(learned->names);
    for (uint32_t i = 0; i < learned->result_count; i++)
        free(learned->results[i].file);
    free(learned->results);
    free(learned->folder);
    free(learned->problem);
    *learned = (struct learned){ 0 };
}

static int
compare_files(const void *a, const void *b)
{
    return strcmp(((const struct artifact_file *)a)->name, ((const struct artifact_file *)b)->name);
}

/* Sorted by name, because the threads finish in any order and the file should be the same after
 * each analysis. */
static void
write_results(struct artifact_folder *folder, FILE *file)
{
    if (folder->file_count > 0)
        qsort(folder->files, folder->file_count, sizeof *folder->files, compare_files);
    for (size_t i = 0; i < folder->file_count; i++)
        fprintf(file, "result %016" PRIx64 " %s\n", folder->files[i].hash, folder->files[i].name);
}

tundish_status
provenance_write(struct input_files files, const struct spec_stream *stream,
                 struct artifact_folder *folder, const struct provenance_name *names, size_t count)
{
    struct artifact artifact = { 0 };
    tundish_status status = input_files_hash(&files);

    if (status == TUNDISH_OK)
        status = artifact_begin(folder, "origin", "", &artifact);
    if (status == TUNDISH_OK) {
        fprintf(artifact.file, "%s\nstream %s\n", FIRST_LINE, stream->name);
        for (size_t i = 0; i < count; i++)
            fprintf(artifact.file, "learned %016" PRIx64 " %016" PRIx64 " %s\n",
                    hash_of(names[i].learner), learned_fingerprint(names[i].learner->stage),
                    names[i].name);
        write_results(folder, artifact.file);
        input_files_write(&files, artifact.file);
        status = artifact_publish(&artifact);
    }
    artifact_cancel(&artifact);
    return status;
}
