/* expression_tree.h - an expression as written: its syntax and nothing else. */
#ifndef CONTENT_EXPRESSION_EXPRESSION_TREE_H
#define CONTENT_EXPRESSION_EXPRESSION_TREE_H

#include "content/expression/expression.h"

/* Literals are exact beyond 64 bits while they are folded. */
__extension__ typedef __int128 tree_integer;

enum tree_kind {
    TREE_INTEGER,
    TREE_NUMBER,
    TREE_TEXT,
    TREE_COLUMN, /* name */
    TREE_OUTER,  /* $name */
    TREE_CALL,   /* name(children), maybe with axis=... */
    TREE_NEGATE, /* from here on: operators on children */
    TREE_PLUS_SIGN,
    TREE_NOT,
    TREE_ADD,
    TREE_SUBTRACT,
    TREE_MULTIPLY,
    TREE_DIVIDE,
    TREE_FLOOR_DIVIDE,
    TREE_MODULO,
    TREE_POWER,
    TREE_LESS,
    TREE_LESS_EQUAL,
    TREE_GREATER,
    TREE_GREATER_EQUAL,
    TREE_EQUAL,
    TREE_NOT_EQUAL,
    TREE_AND, /* a chain a < b < c is (a < b) and (b < c) with b the same node */
    TREE_OR,
    TREE_CONDITION, /* children: value if true, condition, value if false */
    TREE_VECTOR,    /* [a, b, c] */
    TREE_INDEX,     /* children: the indexed value, then an item for each dimension */
    TREE_SLICE,     /* as an item: start, stop, step, each maybe TREE_OMITTED */
    TREE_ELLIPSIS,
    TREE_OMITTED
};

struct tree {
    enum tree_kind kind;
    uint32_t at; /* offset in the text */
    tree_integer integer;
    double number;
    char *text; /* of a name or a string, NUL-terminated; owned */
    uint32_t text_bytes;
    uint32_t child_count;
    struct tree **children;
    struct tree *axis; /* TREE_CALL, or NULL */
    struct tree *next; /* of all nodes, for closing */
};

/* Complain at offset `at` of the expression's text. */
#define expression_complain(config, at, ...)                                                       \
    spec_complain((config)->errors, (config)->line, (config)->column + (at), __VA_ARGS__)

/* Stores the list of all nodes in *ret_nodes also when it fails: tree_close it. */
tundish_status tree_parse(const struct expression_config *config, struct tree **ret_nodes,
                          struct tree **ret_root);
void tree_close(struct tree *nodes);

#endif
