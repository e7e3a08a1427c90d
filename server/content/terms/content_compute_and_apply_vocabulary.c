/* content_compute_and_apply_vocabulary.c - tft.compute_and_apply_vocabulary: strings or integers to
 * their line numbers in a learned vocabulary. */
#include <stdlib.h>
#include <string.h>

#include "content/column_wise.h"
#include "content/learned/learning.h"
#include "content/terms/lookup.h"
#include "content/terms/lookup_counters.h"
#include "core/memory.h"

struct applied {
    struct vocab *vocab;
    char *name; /* of the vocabulary, for display */
    struct vocab_rule rule;
};

struct compute_and_apply_vocabulary {
    struct column_wise wise;
    bool needs_blanks; /* struct learned_form */
};

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    struct applied *applied = own;
    const char *name = learned_name_of(config, column->name);
    int64_t buckets = spec_int(config->stage, "num_oov_buckets");
    int64_t unknown = spec_int(config->stage, "default_value"), last;
    tundish_status status;

    (void)state;
    (void)batch_wide;
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
read_form(void *state, const struct stage_config *config)
{
    struct compute_and_apply_vocabulary *stage = state;
    const struct learned_form form = learned_form_of(config->stage);

    stage->needs_blanks = learned_form_needs_blanks(&form);
    return TUNDISH_OK;
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

static void
map_column(const void *state, const struct column_map *map)
{
    const struct compute_and_apply_vocabulary *stage = state;
    const struct applied *applied = map->own;
    struct scratch *scratch = map->output->scratch;
    const void *terms = map->from->values;
    size_t count = (size_t)map->from->value_count;
    int64_t *lines = frame_values(map->output, map->at, count * sizeof *lines);
    uint64_t absent = 0;
    const struct vocab_output to = { lines, TUNDISH_INT64, 1, &absent };

    if (map->spec->dtype == TUNDISH_STRING)
        vocab_map(applied->vocab, &applied->rule,
                  stage->needs_blanks ? without_blanks(terms, count, scratch) : terms, count, &to);
    else
        vocab_map_integers(applied->vocab, &applied->rule,
                           lookup_integers(map->spec->dtype, map->from, scratch), count, &to);
    lookup_count(map->output, map->number, count, absent);
    column_set_like(map->to, map->from, lines);
}

static void
close_applied(void *own)
{
    struct applied *applied = own;

    vocab_close(applied->vocab);
    free(applied->name);
}

static const struct column_wise_ops columns = {
    .own_bytes = sizeof(struct applied),
    .sorts = true,
    .read = read_form,
    .describe = describe,
    .map = map_column,
    .close_own = close_applied,
};

static void
say_vocabularies(const void *state, content_say_vocabulary *say, void *context)
{
    const struct column_wise *wise = state;
    const struct applied *applied = (const void *)wise->own;

    for (uint32_t i = 0; i < wise->targets.count; i++)
        say(context, applied[i].name, applied[i].vocab);
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
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
    .vocabularies = say_vocabularies,
};
