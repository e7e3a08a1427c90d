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

static void
put_label(const struct plan_node *node, FILE *file)
{
    fputs(node->name, file);
    if (node->stage != NULL)
        fprintf(file, " (line %u)", node->stage->line);
    fputs("\\n", file);
    put_arguments(node, file);
}

static void
put_node(const struct plan_node *node, FILE *file)
{
    static const char *const colours[] = { "lightyellow", "lightblue", "palegreen" };
    const char *colour = colours[node->source != NULL ? 0 : node->order != NULL ? 1 : 2];

    fprintf(file, "  n%u [label=\"", node->index);
    put_label(node, file);
    fprintf(file, "\", fillcolor=%s%s];\n", colour,
            node->stage == NULL ? ", style=\"filled,dashed\"" : "");
    for (uint32_t i = 0; i < node->input_count; i++) {
        put_node(node->inputs[i], file);
        fprintf(file, "  n%u -> n%u;\n", node->inputs[i]->index, node->index);
    }
    if (node->body != NULL) {
        put_node(node->body->root, file);
        fprintf(file, "  n%u -> n%u [style=dashed, label=\"each\"];\n", node->body->root->index,
                node->index);
    }
}

void
plan_print_dot(const struct plan *plan, FILE *file)
{
    fputs("digraph \"", file);
    put_escaped(plan->stream->name, file);
    fputs("\" {\n  rankdir=LR;\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n",
          file);
    put_node(plan->graph->root, file);
    fputs("}\n", file);
}
