/* print_dot.c - prints a plan as a Graphviz drawing. */
#include "plan/print.h"

#include <stdlib.h>

#include "core/must.h"

/* A line of a label that is longer than this is broken. */
enum { LINE_LETTERS = 40 };

/* In a label a quote, a backslash and a new line stand after a backslash. */
static void
put_escaped(const char *text, FILE *file)
{
    unsigned letters = 0;

    for (; *text != '\0'; text++, letters++) {
        if (letters >= LINE_LETTERS && *text == ' ') {
            fputs("\\n", file);
            letters = 0;
            continue;
        }
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        if (*text == '\n')
            fputs("\\n", file);
        else
            fputc(*text, file);
    }
}

static void
put_arguments(const struct plan_node *node, FILE *file)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);

    must(memory != NULL);
    print_arguments(node, memory);
    must(fclose(memory) == 0);
    put_escaped(text, file);
    free(text);
}

struct drawing {
    plan_label_call *more;
    void *user;
    FILE *file;
};

static void
put_label(const struct drawing *drawing, const struct plan_node *node)
{
    fputs(node->name, drawing->file);
    if (node->stage != NULL)
        fprintf(drawing->file, " (line %u)", node->stage->line);
    fputs("\\n", drawing->file);
    put_arguments(node, drawing->file);
    if (drawing->more != NULL)
        drawing->more(drawing->user, node, drawing->file);
}

static void
put_node(const struct drawing *drawing, const struct plan_node *node)
{
    FILE *file = drawing->file;
    static const char *const colours[] = { "lightyellow", "lightblue", "palegreen" };
    const char *colour = colours[node->source != NULL ? 0 : node->order != NULL ? 1 : 2];

    fprintf(file, "  n%u [label=\"", node->index);
    put_label(drawing, node);
    fprintf(file, "\", fillcolor=%s%s];\n", colour,
            node->stage == NULL ? ", style=\"filled,dashed\"" : "");
    for (uint32_t i = 0; i < node->input_count; i++) {
        put_node(drawing, node->inputs[i]);
        fprintf(file, "  n%u -> n%u;\n", node->inputs[i]->index, node->index);
    }
    if (node->body != NULL) {
        put_node(drawing, node->body->root);
        fprintf(file, "  n%u -> n%u [style=dashed, label=\"each\"];\n", node->body->root->index,
                node->index);
    }
}

void
plan_print_dot(const struct plan *plan, plan_label_call *more, void *user, FILE *file)
{
    const struct drawing drawing = { more, user, file };

    fputs("digraph \"", file);
    put_escaped(plan->stream->name, file);
    fputs("\" {\n  rankdir=LR;\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n",
          file);
    put_node(&drawing, plan->graph->root);
    fputs("}\n", file);
}
