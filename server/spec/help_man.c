/* help_man.c - the table of stages as a manual page, and its parts as help. */
#include <stdbool.h>
#include <string.h>

#include "spec/describe.h"
#include "spec/expression_help.h"
#include "spec/help_text.h"
#include "spec/stage_help.h"

static const struct paragraph {
    bool of_columns;
    const char *text;
} introduction[] = {
    { false,
      "A pipeline file is YAML. It contains named streams. A stream is a list of stages, of which "
      "the first is a source; it also says how batches are dealt to replicas and delivered." },
    { false,
      "A stage is a mapping with one key, its name. If a stage has a short form below, `name: "
      "VALUE` "
      "sets only that parameter; `name` alone takes all defaults. If a stage has a counterpart in "
      "TensorFlow or Keras, its parameters, defaults and results are the same." },
    { true,
      "Columns are named. Sources with one component call it `value`. A stage with `columns` "
      "replaces these columns; with `output` it keeps them and adds new columns at the end. Before "
      "batch a stage processes rows, after batch it processes batches." },
    { true,
      "A list of columns may contain names, globs (C*, in the order of the columns) and ranges: "
      "C1..C26 means C1, C2 and so on to C26; C01..C10 keeps the zeros. {column} inside an "
      "expression of map, a key of a feature, `output` or a vocabulary's path is replaced by the "
      "column's name; {{column} inserts {column}." },
    { true, "dtypes are bool, uint8, int8, uint16, int16, uint32, int32, uint64, int64, float16, "
            "bfloat16, "
            "float32, float64 and string. A shape is a list; an unknown dimension is null." },
    { false,
      "A dataset is a name from `datasets:` or a list of stages. Each reference to a named dataset "
      "builds a new instance." },
    { false,
      "In any text ${NAME} and ${NAME:-default} insert an environment variable; $${ inserts ${. "
      "Inside interleave and flat_map, $name is a column of the outer element; it must be a whole "
      "unquoted text or part of an expression. With from_function: true there are also "
      "$num_input_pipelines, $input_pipeline_id, $num_replicas_in_sync and "
      "$per_replica_batch_size(G)." },
    { false,
      "Booleans are only true and false. Anchors, aliases, merges and tags are rejected, but for "
      "!!binary: a text given in base64, of any bytes. Quote a "
      "text that starts with * & ! % @ | > or a backquote, and inside {} or [] a text that "
      "contains "
      "{ } [ ] or a comma. Relative paths start at the pipeline file's folder." },
    { false, "Every error names file, line and column, and all errors of a file are reported." },
    { false,
      "Content is computed only for rows that are delivered. So a row with bad content (a field "
      "that "
      "is not a number, an image that cannot be decoded) is an error in its own step, after all "
      "earlier steps. It is not an error if skip, shard, take, drop_remainder, filter or a shorter "
      "input of zip drops the row. TensorFlow fails when it reads the row." },
};

static const char *const example[] = {
    "streams:",
    "  train:",
    "    dataset:",
    "      - list_files: {file_pattern: \"data/train-*.tfrecord\", seed: 1}",
    "      - interleave: {dataset: [tfrecord], cycle_length: 4}",
    "      - shuffle: {buffer_size: 100000, seed: 7}",
    "      - parse_example:",
    "          features:",
    "            label: {type: FixedLen, dtype: int64, shape: []}",
    "            \"C*\":  {type: FixedLen, dtype: string, shape: [], default_value: \"\"}",
    "          columns: [label, C1..C26]",
    "      - string_lookup: {columns: C*, vocabulary: \"vocab/{column}.txt\"}",
    "      - batch: 4096",
    "    distribute: {replicas: 4}",
};

static void
print_parameter(const struct parameter_info *parameter, FILE *out)
{
    fprintf(out, ".TP\n.B %s\n", parameter->name);
    help_print_roff(parameter->help, out);
    fputs("\n(", out);
    if (parameter->types & TYPE_ANY)
        fputs("any value", out);
    else
        describe_parameter(parameter, out);
    if (parameter->required)
        fputs("; needed", out);
    if (parameter->default_value != NULL) {
        fputs("; default ", out);
        help_print_roff(parameter->default_value, out);
    }
    fputs(parameter->types & TYPE_VARYING ? "; may be $name)\n" : ")\n", out);
}

static void
print_stage(const struct stage_info *stage, FILE *out)
{
    fprintf(out, ".SS %s\n", stage->name);
    help_print_roff(stage->help, out);
    if (stage->namesake != NULL)
        fprintf(out, "\nAs\n.IR %s .", stage->namesake);
    if (stage->has_short_form)
        fprintf(out, "\nShort form:\n.BR %s .", stage->parameters[0].name);
    if (stage->is_whole)
        fprintf(out,
                "\n"
                "The stage's mapping is the value of\n"
                ".BR %s .",
                stage->parameters[0].name);
    fputs("\n.PP\n.nf\n", out);
    help_print_roff(stage_example(stage), out);
    fputs(".fi\n", out);
    for (uint32_t i = 0; i < stage->parameter_count; i++)
        print_parameter(&stage->parameters[i], out);
}

static void
print_heading(const char *group, FILE *out)
{
    fputs(".SH \"", out);
    for (; *group != '\0'; group++)
        fputc(*group >= 'a' && *group <= 'z' ? *group - 'a' + 'A' : *group, out);
    fputs("\"\n", out);
}

static void
print_paragraphs(bool all, FILE *out)
{
    for (size_t i = 0; i < sizeof introduction / sizeof introduction[0]; i++)
        if (all || introduction[i].of_columns) {
            fputc('\n', out);
            help_print_wrapped(introduction[i].text, 2, out);
        }
}

void
help_print_pipeline(FILE *out)
{
    fputs("pipeline: the pipeline file\n", out);
    print_paragraphs(true, out);
    fputs("\n  Example\n", out);
    for (size_t i = 0; i < sizeof example / sizeof example[0]; i++)
        fprintf(out, "      %s\n", example[i]);
    fputs("\n`tundish help` also explains streams, columns, features, expressions and stages.\n",
          out);
}

void
help_print_columns(FILE *out)
{
    fputs("columns: what a stage reads and makes\n", out);
    print_paragraphs(false, out);
}

void
help_print_streams(FILE *out)
{
    const struct stage_info *const sections[] = { &section_stream, &section_distribute,
                                                  &section_deliver };

    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        fputs(i > 0 ? "\n" : "", out);
        stage_print_help(sections[i], out);
    }
}

void
help_print_features(FILE *out)
{
    fputs("features: the entries of `features` in parse_example and decode_json\n", out);
    for (uint32_t i = 0; i < feature_count; i++) {
        fputc('\n', out);
        stage_print_help(&feature_table[i], out);
    }
}

void
stage_print_man(FILE *out)
{
    const char *group = "";

    fputs(".TH TUNDISH\\-PIPELINE 5 \"\" Tundish\n.SH NAME\ntundish\\-pipeline \\- the pipeline "
          "file\n.SH DESCRIPTION\n",
          out);
    for (size_t i = 0; i < sizeof introduction / sizeof introduction[0]; i++) {
        fputs(i > 0 ? ".PP\n" : "", out);
        help_print_roff(introduction[i].text, out);
        fputc('\n', out);
    }
    fputs(".SH EXAMPLE\n.nf\n", out);
    for (size_t i = 0; i < sizeof example / sizeof example[0]; i++) {
        help_print_roff(example[i], out);
        fputc('\n', out);
    }
    fputs(".fi\n.SH \"PIPELINE FILE\"\n", out);
    print_stage(&section_file, out);
    print_stage(&section_stream, out);
    print_stage(&section_distribute, out);
    print_stage(&section_deliver, out);
    print_stage(&section_remote, out);
    print_stage(&section_widen, out);
    /* The table is in the order of the manual, so a new group begins a section. */
    for (uint32_t i = 0; i < stage_count; i++) {
        if (strcmp(stage_table[i].group, group) != 0)
            print_heading(stage_table[i].group, out);
        group = stage_table[i].group;
        print_stage(&stage_table[i], out);
    }
    expression_print_man(out);
    fputs(".SH FEATURES\nThe entries of\n.B features\nin parse_example and decode_json.\n", out);
    for (uint32_t i = 0; i < feature_count; i++)
        print_stage(&feature_table[i], out);
    fputs(".SH \"SEE ALSO\"\n.BR tundish (1)\n", out);
}
