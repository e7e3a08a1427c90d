/* learned.c - which learned results a stage may use. */
#include "content/learned/learned.h"

#include <stdlib.h>
#include <string.h>

#include "content/learned/learned_file.h"
#include "content/learned/learning.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "spec/fingerprint.h"

const struct content_learning *
learned_learning_of(const struct spec_stage *stage)
{
    const struct content_ops *ops = content_find(stage->info->name);

    return ops != NULL ? ops->learning : NULL;
}

bool
learned_is_needed(const struct spec_stage *stage)
{
    const struct content_learning *learning = learned_learning_of(stage);

    return learning != NULL && (learning->is_needed == NULL || learning->is_needed(stage));
}

/* The fingerprint leaves out where the stage is applied and what it is called there. */
static enum spec_counting
counts(const struct parameter_info *parameter)
{
    static const char *const applied[] = { "columns", "output", "statistics" };

    for (size_t i = 0; i < sizeof applied / sizeof *applied; i++)
        if (strcmp(parameter->name, applied[i]) == 0)
            return COUNTS_NOT;
    return COUNTS_WHOLE;
}

uint64_t
learned_fingerprint(const struct spec_stage *stage)
{
    return spec_hash_stage(0, stage, counts);
}

const char *
learned_name_of(const struct stage_config *config, const char *output_column)
{
    const char *named_by = learned_learning_of(config->stage)->named_by;
    const struct spec_value *name =
        spec_get(config->stage, named_by != NULL ? named_by : "statistics");

    return name == NULL || name->kind == SPEC_NULL ? output_column : name->text;
}

tundish_status
learned_require(const struct stage_config *config, const char *name)
{
    const struct learned *learned = config->learned;
    const char *stage = config->stage->info->name;

    if (learned == NULL)
        return stage_complain(config, "%s: nothing was learned for '%s'; run `tundish analyze %s`",
                              stage, name, config->stage->file->path);
    /* The analysis opens the stages itself, with the results of its own earlier passes. */
    if (learned->is_analyzing)
        return TUNDISH_OK;
    if (learned->problem != NULL)
        return stage_complain(config, "%s: %s; run `tundish analyze %s`", stage, learned->problem,
                              config->stage->file->path);
    for (uint32_t i = 0; i < learned->count; i++)
        if (strcmp(learned->names[i].name, name) == 0) {
            if (learned->names[i].stage == learned_fingerprint(config->stage))
                return TUNDISH_OK;
            return stage_complain(config,
                                  "%s: the statistics for '%s' were learned with other parameters; "
                                  "run `tundish analyze %s`",
                                  stage, name, config->stage->file->path);
        }
    return stage_complain(config,
                          "%s: nothing was learned for '%s' (in %s); run `tundish analyze %s`",
                          stage, name, learned->folder, config->stage->file->path);
}

void
learned_file_note(const struct stage_config *config, const struct learned_file *file)
{
    /* The plan hashes every learned file, so that nodes with unequal statistics notice it. */
    if (config->learned_hash != NULL)
        *config->learned_hash =
            tnd_hash_farm_chain(*config->learned_hash, file->bytes, file->byte_count);
}

tundish_status
learned_file_check(const struct stage_config *config, const char *path, uint64_t hash)
{
    const struct learned *learned = config->learned;
    /* Results are recorded by file name, so that the folder can be moved. */
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;

    for (uint32_t i = 0; i < learned->result_count; i++)
        if (strcmp(learned->results[i].file, name) == 0 && learned->results[i].hash == hash)
            return TUNDISH_OK;
    return learned->is_analyzing ? TUNDISH_OK
                                 : tnd_fail(TUNDISH_E_DATA, "%s is not as it was learned", path);
}

tundish_status
learned_complain_of(const struct stage_config *config)
{
    return stage_complain(config, "%s: %s; run `tundish analyze %s`", config->stage->info->name,
                          tnd_error_text(), config->stage->file->path);
}

char *
learned_path(const struct learned *learned, const char *name, const char *suffix)
{
    return tnd_sprintf("%s/%s%s", learned->folder, name, suffix);
}
