/* provenance_find.c - the folder where the results of a pipeline file lie. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "learn/results/provenance.h"

/* analysis/ beside the pipeline file, and a name in it; "": itself. */
static char *
analysis_folder(const struct spec_file *file, const char *name)
{
    const char *slash = strrchr(file->path, '/');

    return tnd_sprintf("%.*sanalysis%s%s", slash != NULL ? (int)(slash - file->path + 1) : 0,
                       file->path, name[0] != '\0' ? "/" : "", name);
}

char *
provenance_folder(const struct spec_file *file, const char *asked)
{
    const char *slash = strrchr(file->path, '/');

    if (asked != NULL)
        return tnd_strdup(asked);
    return analysis_folder(file, slash != NULL ? slash + 1 : file->path);
}

static bool
has_origin(const char *folder)
{
    char *path = tnd_sprintf("%s/origin", folder);
    bool is_there = access(path, F_OK) == 0;

    free(path);
    return is_there;
}

static bool
is_pipeline_file(const char *name)
{
    const char *end = strrchr(name, '.');

    return end != NULL && (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0);
}

/* Does no other pipeline file lie beside this one, whose results these could be? */
static bool
is_alone(const struct spec_file *file)
{
    char *folder = analysis_folder(file, "..");
    const char *slash = strrchr(file->path, '/');
    const char *own = slash != NULL ? slash + 1 : file->path;
    DIR *listing = opendir(folder);
    const struct dirent *entry;
    bool is_alone = listing != NULL;

    while (is_alone && (entry = readdir(listing)) != NULL)
        is_alone = strcmp(entry->d_name, own) == 0 || !is_pipeline_file(entry->d_name);
    if (listing != NULL)
        closedir(listing);
    free(folder);
    return is_alone;
}

/* Two files may have the same stages, and learn from other data. So the files decide, or their
 * names where they need not be there, unless there is only one that the results can be of: paths
 * may contain what the environment says. */
static enum provenance_check
check_of_shared(const struct spec_file *file, bool check_files)
{
    if (check_files)
        return PROVENANCE_FILES;
    return is_alone(file) ? PROVENANCE_STAGES : PROVENANCE_NAMES;
}

/* Results that all files of the folder shared. */
static void
try_shared(const struct spec_file *file, const char *shared, bool check_files,
           struct learned *ret_learned)
{
    struct learned learned;

    provenance_open(file, shared, check_of_shared(file, check_files), &learned);
    if (learned.problem != NULL) {
        char *problem = tnd_sprintf("%s; %s", ret_learned->problem, learned.problem);

        free(ret_learned->problem);
        ret_learned->problem = problem;
        provenance_close(&learned);
        return;
    }
    provenance_close(ret_learned);
    *ret_learned = learned;
}

void
provenance_find(const struct spec_file *file, const char *asked, bool check_files,
                struct learned *ret_learned)
{
    enum provenance_check check = check_files ? PROVENANCE_FILES : PROVENANCE_STAGES;
    char *own = provenance_folder(file, asked);
    char *shared = analysis_folder(file, "");

    provenance_open(file, own, check, ret_learned);
    if (asked == NULL && ret_learned->problem != NULL && !has_origin(own) && has_origin(shared))
        try_shared(file, shared, check_files, ret_learned);
    free(shared);
    free(own);
}
