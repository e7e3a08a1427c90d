/* artifact.c - files of the analysis folder. */
#include "learn/results/artifact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/dtype.h"
#include "core/json.h"
#include "core/memory.h"

tundish_status
artifact_begin(struct artifact_folder *folder, const char *name, const char *suffix,
               struct artifact *ret_artifact)
{
    struct artifact artifact = { .folder = folder };
    tundish_status status;

    /* Names come from the pipeline file: they must not leave the folder or hide in it. */
    if (strchr(name, '/') != NULL || name[0] == '.' || (name[0] == '\0' && suffix[0] == '\0'))
        return tnd_fail(TUNDISH_E_PIPELINE, "'%s' is not a valid file name", name);
    artifact.name = tnd_sprintf("%s%s", name, suffix);
    /* The process is in the name, so that two that write to one folder do not share a file, and
     * leftovers can be found. */
    artifact.building =
        tnd_sprintf("%s/%s.%ld.building", folder->path, artifact.name, (long)getpid());
    status = artifact_folder_begin(folder, artifact.building, &artifact.file);
    if (status != TUNDISH_OK)
        artifact_cancel(&artifact);
    else
        *ret_artifact = artifact;
    return status;
}

tundish_status
artifact_publish(struct artifact *artifact)
{
    /* A file gets its name only after its bytes are on the disk. */
    bool failed = fflush(artifact->file) != 0 || fsync(fileno(artifact->file)) != 0;
    tundish_status status;

    if (fclose(artifact->file) != 0)
        failed = true;
    artifact->file = NULL;
    status =
        failed ? tnd_fail_errno(errno, "cannot write %s/%s", artifact->folder->path, artifact->name)
               : artifact_folder_publish(artifact->folder, artifact->building, artifact->name);
    if (status == TUNDISH_OK) {
        free(artifact->building);
        artifact->building = NULL;
    }
    /* After success this frees only the strings. */
    artifact_cancel(artifact);
    return status;
}

void
artifact_cancel(struct artifact *artifact)
{
    if (artifact->file != NULL)
        fclose(artifact->file);
    if (artifact->building != NULL)
        unlink(artifact->building);
    free(artifact->building);
    free(artifact->name);
    *artifact = (struct artifact){ 0 };
}

static void
write_values(struct json *json, const struct artifact_table *table, int64_t count)
{
    json_key(json, "values");
    json_array(json);
    for (int64_t i = 0; i < count; i++)
        if (table->dtype == TUNDISH_INT64)
            json_int(json, table->integers[i]);
        /* The shortest precisions that give every float32 (9) and float64 (17) back. */
        else if (table->dtype == TUNDISH_FLOAT32)
            json_float(json, (double)(float)table->numbers[i], 9);
        else
            json_float(json, table->numbers[i], 17);
    json_array_end(json);
}

tundish_status
artifact_write_table(struct artifact_folder *folder, const char *name, const char *suffix,
                     const struct artifact_table *table)
{
    struct artifact artifact = { 0 };
    tundish_status status = artifact_begin(folder, name, suffix, &artifact);
    struct json json;
    int64_t count = 1;

    if (status != TUNDISH_OK)
        return status;
    json_start(&json, artifact.file);
    json_object(&json);
    json_key_text(&json, "dtype", tnd_dtype_name(table->dtype));
    json_key(&json, "shape");
    json_array(&json);
    for (uint32_t i = 0; i < table->rank; i++) {
        json_int(&json, table->shape[i]);
        count *= table->shape[i];
    }
    json_array_end(&json);
    write_values(&json, table, count);
    if (table->keys != NULL) {
        json_key(&json, "keys");
        json_array(&json);
        /* A table by key has one entry for each along its first dimension. */
        for (int64_t i = 0; i < table->shape[0]; i++)
            json_bytes(&json, table->keys[i]);
        json_array_end(&json);
    }
    json_object_end(&json);
    fputc('\n', artifact.file);
    return artifact_publish(&artifact);
}
