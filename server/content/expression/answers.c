/* answers.c - evaluate an order stage's expressions for each element of its input, such as filter's
 * predicate or a key to group by. Each gives one column, named like the parameter. */
#include <stdlib.h>

#include "content/content.h"
#include "content/expression/expression_tree.h"
#include "core/dtype.h"
#include "core/memory.h"

struct answer {
    struct expression *expression;
    bool of_answers;
};

struct answers {
    struct answer *list;
    uint32_t count;
};

/* Check that the expression gives one scalar for each element. */
static tundish_status
check_spec(const struct expression_config *config, const struct stage_config *stage,
           const struct stage_question *question, const struct column_spec *spec)
{
    tundish_status status;
    char *text;

    if (spec->dtype == question->dtype && spec->rank == 0 && spec->kind == TUNDISH_DENSE)
        return TUNDISH_OK;
    text = column_spec_text(spec);
    status = expression_complain(config, 0, "%s needs one %s for each element, not %s",
                                 stage->stage->info->name, tnd_dtype_name(question->dtype), text);
    free(text);
    return status;
}

/* Compile one question's expression. It sees the stage's input, or the answers before it. */
static tundish_status
open_answer(struct answer *answer, const struct stage_config *config,
            const struct stage_question *question, const struct spec_value *value,
            struct schema *ret_schema)
{
    struct expression_config expression = {
        .text = value->text,
        .line = value->line,
        .column = value->column + value->quoted,
        .input = question->of_answers ? ret_schema : config->input,
        .outer = config->outer,
        .depth = question->of_answers ? 0 : config->depth,
        .literals = config->literals,
        .literal_count = config->literal_count,
        .errors = config->errors,
    };
    tundish_status status = expression_open(&expression, &answer->expression);

    answer->of_answers = question->of_answers;
    if (status == TUNDISH_OK)
        status = check_spec(&expression, config, question, expression_spec(answer->expression));
    return status;
}

static tundish_status
answers_open(void *state, const struct stage_config *config, struct schema *ret_schema,
             bool *ret_batch_wide)
{
    struct answers *answers = state;

    for (uint32_t i = 0; config->questions[i].parameter != NULL; i++) {
        const struct stage_question *question = &config->questions[i];
        const struct spec_value *value = spec_get(config->stage, question->parameter);
        struct answer *answer;
        tundish_status status;

        if (value == NULL)
            continue;
        answers->list = tnd_realloc(answers->list, answers->count + 1, sizeof *answers->list);
        answer = &answers->list[answers->count++];
        *answer = (struct answer){ 0 };
        status = open_answer(answer, config, question, value, ret_schema);
        if (status != TUNDISH_OK)
            return status;
        schema_add(ret_schema, question->parameter, question->dtype);
        *ret_batch_wide |= expression_is_batch_wide(answer->expression);
    }
    return TUNDISH_OK;
}

static tundish_status
answers_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct answers *answers = state;
    /* Expressions of answers read the columns that earlier ones wrote. */
    struct frame before = *output;

    for (uint32_t i = 0; i < answers->count; i++)
        expression_apply(answers->list[i].expression, answers->list[i].of_answers ? &before : input,
                         output, i);
    return TUNDISH_OK;
}

static void
answers_close(void *state)
{
    struct answers *answers = state;

    for (uint32_t i = 0; i < answers->count; i++)
        expression_close(answers->list[i].expression);
    free(answers->list);
}

const struct content_ops content_answers = {
    .name = "answers",
    .state_bytes = sizeof(struct answers),
    .open = answers_open,
    .apply = answers_apply,
    .close = answers_close,
};
