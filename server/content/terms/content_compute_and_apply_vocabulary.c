/* content_compute_and_apply_vocabulary.c - tft.compute_and_apply_vocabulary: strings or integers to
 * their line numbers in a learned vocabulary. */
#include <stdlib.h>
#include <string.h>

#include "content/learned/learning.h"
#include "content/terms/lookup.h"
#include "content/terms/lookup_counters.h"
#include "core/memory.h"

struct applied {
    tundish_dtype dtype; /* of the input */
    struct vocab *vocab;
    char *name; /* of the vocabulary, for display */
    struct vocab_rule rule;
};

struct compute_and_apply_vocabulary {
    struct content_targets targets;
    bool needs_blanks;       /* struct learned_form */
    struct applied *columns; /* of each target */
};

static tundish_status
open_column(const struct stage_config *config, struct column_spec *column, struct applied *applied)
{
    const char *name = learned_name_of(config, column->name);
    int64_t buckets = spec_int(config->stage, "num_oov_buckets");
    int64_t unknown = spec_int(config->stage, "default_value"), last;
    tundish_status status;

    applied->dtype = column->dtype;
    if (column->dtype != TUNDISH_STRING && !tnd_dtype_is_integer(column->dtype))
        return stage_complain(config, "%s: '%s' has dtype %s; expected strings or integers",
                              config->stage->info->name, column->name,
                              tnd_dtype_name(column->dtype));
    status = learned_require(config, name);
    if (status == TUNDISH_OK)
        status = learned_vocab_open(
            config, name, column->dtype == TUNDISH_STRING ? VOCAB_STRINGS : VOCAB_INTEGERS,
            &applied->vocab);
    if (status != TUNDISH_OK)
        return status;
    last = (int64_t)vocab_count(applied->vocab) - 1;
    applied->name = tnd_strdup(name);
    /* As tf.lookup.StaticVocabularyTable: with buckets, an absent term hashes (FarmHash) to an
     * index after the last line. */
    applied->rule = (struct vocab_rule){
        .oov_first = buckets > 0 ? last + 1 : unknown,
        .oov_count = buckets > 0 ? (uint64_t)buckets : 1,
        .oov = VOCAB_OOV_FARM,
    };
    column->dtype = TUNDISH_INT64;
    column->has_range = true;
    column->minimum = buckets > 0 || unknown > 0 ? 0 : unknown;
    column->maximum = buckets > 0 ? last + buckets : unknown > last ? unknown : last;
    return TUNDISH_OK;
}

static tundish_status
compute_and_apply_vocabulary_open(void *state, const struct stage_config *config,
                                  struct schema *ret_schema, bool *ret_batch_wide)
{
    struct compute_and_apply_vocabulary *stage = state;
    const struct learned_form form = learned_form_of(config->stage);
    tundish_status status = content_targets_open(config, ret_schema, &stage->targets);

    *ret_batch_wide = false;
    stage->needs_blanks = learned_form_needs_blanks(&form);
    if (status != TUNDISH_OK)
        return status;
    stage->columns = tnd_zalloc((size_t)stage->targets.count + 1, sizeof *stage->columns);
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++)
        status = open_column(config, &ret_schema->columns[stage->targets.list[i].output],
                             &stage->columns[i]);
    content_sort_columns(ret_schema, &stage->targets);
    return status;
}

/* Texts with blanks as __SPACE__: tf.Transform stores terms so where a blank separates them from
 * their frequency. */
static const struct byte_view *
without_blanks(const struct byte_view *texts, size_t count, struct scratch *scratch)
{
    struct byte_view *plain = scratch_array(scratch, count + 1, sizeof *plain);

    for (size_t i = 0; i < count; i++)
        plain[i] = learned_without_blanks(texts[i], scratch);
    return plain;
}

static tundish_status
compute_and_apply_vocabulary_apply(const void *state, const struct frame *input,
                                   struct frame *output)
{
    const struct compute_and_apply_vocabulary *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++) {
        const struct content_target *target = &stage->targets.list[i];
        const struct applied *applied = &stage->columns[i];
        const struct column *from = &input->columns[target->input];
        size_t count = (size_t)from->value_count;
        int64_t *lines = frame_values(output, target->output, count * sizeof *lines);
        uint64_t absent = 0;
        const struct vocab_output to = { lines, TUNDISH_INT64, 1, &absent };

        if (applied->dtype == TUNDISH_STRING)
            vocab_map(applied->vocab, &applied->rule,
                      stage->needs_blanks ? without_blanks(from->values, count, output->scratch)
                                          : from->values,
                      count, &to);
        else
            vocab_map_integers(applied->vocab, &applied->rule,
                               integers_of(applied->dtype, from, output->scratch), count, &to);
        lookup_count(output, i, count, absent);
        column_set_like(&output->columns[target->output], from, lines);
    }
    return TUNDISH_OK;
}

static void
compute_and_apply_vocabulary_close(void *state)
{
    struct compute_and_apply_vocabulary *stage = state;

    for (uint32_t i = 0; stage->columns != NULL && i < stage->targets.count; i++) {
        vocab_close(stage->columns[i].vocab);
        free(stage->columns[i].name);
    }
    free(stage->columns);
    content_targets_close(&stage->targets);
}

static void
compute_and_apply_vocabulary_vocabularies(const void *state, content_say_vocabulary *say,
                                          void *context)
{
    const struct compute_and_apply_vocabulary *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++)
        say(context, stage->columns[i].name, stage->columns[i].vocab);
}

static struct learned_form
compute_and_apply_vocabulary_form(const struct spec_stage *stage)
{
    const char *format = spec_text(stage, "file_format");
    struct learned_form form = {
        .is_records = strcmp(format, "tfrecord_gzip") == 0,
        .has_frequency = spec_bool(stage, "store_frequency"),
    };

    if (spec_has_value(stage, "vocab_filename"))
        form.suffix = form.is_records ? ".tfrecord.gz" : "";
    else
        form.suffix = form.is_records ? ".vocabulary.tfrecord.gz" : ".vocabulary.txt";
    return form;
}

static const struct content_learning learning = {
    .kind = LEARNED_VOCABULARY,
    .named_by = "vocab_filename",
    .form = compute_and_apply_vocabulary_form,
};

const struct content_ops content_compute_and_apply_vocabulary = {
    .name = "compute_and_apply_vocabulary",
    .takes_missing = true,
    .learning = &learning,
    .state_bytes = sizeof(struct compute_and_apply_vocabulary),
    .open = compute_and_apply_vocabulary_open,
    .apply = compute_and_apply_vocabulary_apply,
    .close = compute_and_apply_vocabulary_close,
    .vocabularies = compute_and_apply_vocabulary_vocabularies,
};
