/* expression_tree.c - parse text to a tree, by recursive descent. */
#include "content/expression/expression_tree.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "content/expression/tokens.h"
#include "core/memory.h"

/* The parser recurses and expressions come from users: bound its depth and its memory. */
enum { DEPTH_MAX = 200, NODES_MAX = 10000, CHILDREN_MAX = 1000 };

static struct tree *parse_condition(struct parser *parser);

/* All nodes are on one list, so an error needs no clean-up on the way out. */
static struct tree *
node_new(struct parser *parser, enum tree_kind kind, uint32_t at)
{
    struct tree *node = tnd_zalloc(1, sizeof *node);

    *node = (struct tree){ .kind = kind, .at = at, .next = parser->nodes };
    parser->nodes = node;
    if (++parser->node_count > NODES_MAX)
        parser_complain(parser, at, "the expression has more than %d parts", NODES_MAX);
    return node;
}

/* Children grow one by one: expressions are parsed once, and most have two. */
static void
add_child(struct parser *parser, struct tree *node, struct tree *child)
{
    if (node->child_count == CHILDREN_MAX) {
        parser_complain(parser, child->at, "more than %d items", CHILDREN_MAX);
        return;
    }
    node->children = tnd_realloc(node->children, node->child_count + 1, sizeof(struct tree *));
    node->children[node->child_count++] = child;
}

static struct tree *
node_of_two(struct parser *parser, enum tree_kind kind, uint32_t at, struct tree *left,
            struct tree *right)
{
    struct tree *node = node_new(parser, kind, at);

    add_child(parser, node, left);
    add_child(parser, node, right);
    return node;
}

void
tree_close(struct tree *nodes)
{
    while (nodes != NULL) {
        struct tree *next = nodes->next;

        free(nodes->text);
        free(nodes->children);
        free(nodes);
        nodes = next;
    }
}

static struct tree *
parse_integer(struct parser *parser)
{
    struct tree *node = node_new(parser, TREE_INTEGER, parser->token.at);
    char *end;

    errno = 0;
    /* C would take a leading 0 as octal, so name the base. */
    node->integer = strtoull(&parser->text[node->at], &end,
                             parser->text[node->at] == '0' &&
                                     tolower((unsigned char)parser->text[node->at + 1]) == 'x'
                                 ? 16
                                 : 10);
    if (errno == ERANGE || end != &parser->text[parser->token.end])
        parser_complain(parser, node->at, "%.*s is not an integer of 64 bits",
                        (int)(parser->token.end - node->at), &parser->text[node->at]);
    tokens_advance(parser);
    return node;
}

static struct tree *
parse_number(struct parser *parser)
{
    struct tree *node = node_new(parser, TREE_NUMBER, parser->token.at);
    char *copy = tnd_strndup(&parser->text[node->at], parser->token.end - node->at);

    node->number = strtod(copy, NULL);
    free(copy);
    tokens_advance(parser);
    return node;
}

static int
hex_digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* Python's escapes for a single byte. */
static uint32_t
unescape(struct parser *parser, uint32_t at, char *ret_byte)
{
    static const char letters[] = "ntr0\\'\"", bytes[] = "\n\t\r\0\\'\"";
    const char *text = parser->text;
    const char *letter = text[at] != '\0' ? strchr(letters, text[at]) : NULL;

    *ret_byte = '?';
    if (letter != NULL) {
        *ret_byte = bytes[letter - letters];
        return at + 1;
    }
    if (text[at] == 'x' && isxdigit((unsigned char)text[at + 1]) &&
        isxdigit((unsigned char)text[at + 2])) {
        *ret_byte = (char)(hex_digit(text[at + 1]) * 16 + hex_digit(text[at + 2]));
        return at + 3;
    }
    parser_complain(parser, at - 1, "\\%c is none of \\n \\t \\r \\0 \\xHH \\\\ \\' \\\"",
                    text[at]);
    return at + 1;
}

static struct tree *
parse_text(struct parser *parser, enum tree_kind kind)
{
    uint32_t last = parser->token.end - 1;
    struct tree *node = node_new(parser, kind, parser->token.at);
    bool escapes = kind == TREE_TEXT;

    if (parser->status != TUNDISH_OK)
        return node;
    /* Escapes only shorten a text, so the token is long enough. */
    node->text = tnd_alloc(parser->token.end - node->at);
    for (uint32_t at = node->at + 1; at < last;) {
        char *byte = &node->text[node->text_bytes++];

        if (escapes && parser->text[at] == '\\')
            at = unescape(parser, at + 1, byte);
        else
            *byte = parser->text[at++];
    }
    node->text[node->text_bytes] = '\0';
    tokens_advance(parser);
    return node;
}

static struct tree *
parse_name(struct parser *parser, enum tree_kind kind, uint32_t prefix)
{
    struct tree *node = node_new(parser, kind, parser->token.at);

    node->text_bytes = parser->token.end - node->at - prefix;
    node->text = tnd_strndup(&parser->text[node->at + prefix], node->text_bytes);
    tokens_advance(parser);
    return node;
}

/* Parse arguments up to the closing bracket. Only axis= may be named. */
static void
parse_arguments(struct parser *parser, struct tree *call)
{
    call->kind = TREE_CALL;
    while (parser->status == TUNDISH_OK && !tokens_is_sign(parser, ")")) {
        struct tree *argument = parse_condition(parser);

        /* The name of a named argument parses as a column; only the = after it tells. */
        if (parser->status == TUNDISH_OK && argument->kind == TREE_COLUMN &&
            tokens_is_sign(parser, "=")) {
            if (strcmp(argument->text, "axis") != 0 || call->axis != NULL)
                parser_complain(parser, argument->at, "%s= is not known: only axis= is, once",
                                argument->text);
            tokens_advance(parser);
            call->axis = parse_condition(parser);
        } else
            add_child(parser, call, argument);
        if (!tokens_is_sign(parser, ")"))
            tokens_expect_sign(parser, ",");
    }
    tokens_expect_sign(parser, ")");
}

static struct tree *
parse_vector(struct parser *parser)
{
    struct tree *node = node_new(parser, TREE_VECTOR, parser->token.at);

    tokens_advance(parser);
    while (parser->status == TUNDISH_OK && !tokens_is_sign(parser, "]")) {
        add_child(parser, node, parse_condition(parser));
        if (!tokens_is_sign(parser, "]"))
            tokens_expect_sign(parser, ",");
    }
    tokens_expect_sign(parser, "]");
    return node;
}

/* A column with such a name is written in backquotes. */
static bool
is_keyword(const struct parser *parser)
{
    return tokens_is_word(parser, "and") || tokens_is_word(parser, "or") ||
           tokens_is_word(parser, "not") || tokens_is_word(parser, "if") ||
           tokens_is_word(parser, "else");
}

static struct tree *
parse_atom(struct parser *parser)
{
    struct tree *node;

    switch (parser->token.kind) {
    case TOKEN_INTEGER:
        return parse_integer(parser);
    case TOKEN_NUMBER:
        return parse_number(parser);
    case TOKEN_TEXT:
        return parse_text(parser, TREE_TEXT);
    case TOKEN_QUOTED:
        return parse_text(parser, TREE_COLUMN);
    case TOKEN_OUTER:
        return parse_name(parser, TREE_OUTER, 1);
    case TOKEN_NAME:
        if (is_keyword(parser))
            break;
        node = parse_name(parser, TREE_COLUMN, 0);
        if (tokens_take_sign(parser, "("))
            parse_arguments(parser, node);
        return node;
    case TOKEN_SIGN:
        if (tokens_is_sign(parser, "["))
            return parse_vector(parser);
        if (tokens_take_sign(parser, "(")) {
            node = parse_condition(parser);
            tokens_expect_sign(parser, ")");
            return node;
        }
        break;
    case TOKEN_END:
        parser_complain(parser, parser->token.at, "the expression ends where a value was expected");
        return node_new(parser, TREE_OMITTED, parser->token.at);
    }
    parser_complain(parser, parser->token.at, "a value was expected here, not '%.*s'",
                    (int)(parser->token.end - parser->token.at), &parser->text[parser->token.at]);
    return node_new(parser, TREE_OMITTED, parser->token.at);
}

/* A part of i:j:k, any of which may be left out. */
static struct tree *
parse_slice_part(struct parser *parser)
{
    if (tokens_is_sign(parser, ":") || tokens_is_sign(parser, ",") || tokens_is_sign(parser, "]"))
        return node_new(parser, TREE_OMITTED, parser->token.at);
    return parse_condition(parser);
}

static struct tree *
parse_item(struct parser *parser)
{
    struct tree *first, *slice;

    if (tokens_is_sign(parser, "...")) {
        struct tree *ellipsis = node_new(parser, TREE_ELLIPSIS, parser->token.at);

        tokens_advance(parser);
        return ellipsis;
    }
    first = parse_slice_part(parser);
    if (!tokens_is_sign(parser, ":")) {
        if (first->kind == TREE_OMITTED)
            parser_complain(parser, first->at, "an index was expected here");
        return first;
    }
    /* A slice always has three children, so that those who read it need not count. */
    slice = node_new(parser, TREE_SLICE, first->at);
    add_child(parser, slice, first);
    tokens_advance(parser);
    add_child(parser, slice, parse_slice_part(parser));
    add_child(parser, slice,
              tokens_take_sign(parser, ":") ? parse_slice_part(parser)
                                            : node_new(parser, TREE_OMITTED, parser->token.at));
    return slice;
}

static struct tree *
parse_indexed(struct parser *parser)
{
    struct tree *node = parse_atom(parser);

    while (tokens_is_sign(parser, "[") && parser->status == TUNDISH_OK) {
        struct tree *index = node_new(parser, TREE_INDEX, parser->token.at);

        tokens_advance(parser);
        add_child(parser, index, node);
        /* A comma may follow the last item, as in Python. */
        do
            add_child(parser, index, parse_item(parser));
        while (tokens_take_sign(parser, ",") && !tokens_is_sign(parser, "]"));
        tokens_expect_sign(parser, "]");
        node = index;
    }
    return node;
}

/* A sign binds less than **: -a ** b is -(a ** b), and ** groups to the right, as in Python. */
static struct tree *
parse_unary(struct parser *parser)
{
    uint32_t at = parser->token.at;
    struct tree *node;

    if (++parser->depth > DEPTH_MAX) {
        parser_complain(parser, at, "the expression is nested more than %d deep", DEPTH_MAX);
        parser->depth--;
        return node_new(parser, TREE_OMITTED, at);
    }
    if (tokens_is_sign(parser, "-") || tokens_is_sign(parser, "+")) {
        node = node_new(parser, tokens_is_sign(parser, "-") ? TREE_NEGATE : TREE_PLUS_SIGN, at);
        tokens_advance(parser);
        add_child(parser, node, parse_unary(parser));
    } else {
        node = parse_indexed(parser);
        at = parser->token.at;
        if (tokens_take_sign(parser, "**"))
            node = node_of_two(parser, TREE_POWER, at, node, parse_unary(parser));
    }
    parser->depth--;
    return node;
}

enum rank { RANK_PRODUCT, RANK_SUM, RANK_COMPARISON };

/* Operators between two operands, of ranks that take several. */
static const struct binary_sign {
    enum rank rank;
    const char *sign;
    enum tree_kind kind;
} signs[] = {
#define SIGN(rank, sign, kind, ...) { RANK_##rank, sign, kind },
#include "spec/expressions.def"
};

/* Take the sign of a rank that stands here, or return NULL. */
static const struct binary_sign *
take_sign(struct parser *parser, enum rank rank)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (signs[i].rank == rank && tokens_take_sign(parser, signs[i].sign))
            return &signs[i];
    return NULL;
}

/* Parse operators of one rank, which group to the left. */
static struct tree *
parse_left(struct parser *parser, struct tree *(*operand)(struct parser *), enum rank rank)
{
    struct tree *node = operand(parser);
    const struct binary_sign *sign;

    for (uint32_t at = parser->token.at; (sign = take_sign(parser, rank)) != NULL;
         at = parser->token.at)
        node = node_of_two(parser, sign->kind, at, node, operand(parser));
    return node;
}

/* From here on one function for each rank of Python's operators, tightest first. */
static struct tree *
parse_product(struct parser *parser)
{
    return parse_left(parser, parse_unary, RANK_PRODUCT);
}

static struct tree *
parse_sum(struct parser *parser)
{
    return parse_left(parser, parse_product, RANK_SUM);
}

/* Chains mean what they do in Python: a < b < c is (a < b) and (b < c). */
static struct tree *
parse_comparison(struct parser *parser)
{
    struct tree *left = parse_sum(parser), *chain = NULL;
    const struct binary_sign *sign;

    for (uint32_t at = parser->token.at; (sign = take_sign(parser, RANK_COMPARISON)) != NULL;
         at = parser->token.at) {
        struct tree *right = parse_sum(parser);
        struct tree *link = node_of_two(parser, sign->kind, at, left, right);

        chain = chain == NULL ? link : node_of_two(parser, TREE_AND, at, chain, link);
        left = right;
    }
    return chain == NULL ? left : chain;
}

/* `not` binds less than comparisons: not a < b is not (a < b). */
static struct tree *
parse_not(struct parser *parser)
{
    uint32_t at = parser->token.at;
    struct tree *node;

    if (!tokens_take_word(parser, "not"))
        return parse_comparison(parser);
    if (++parser->depth > DEPTH_MAX)
        parser_complain(parser, at, "the expression is nested more than %d deep", DEPTH_MAX);
    node = node_new(parser, TREE_NOT, at);
    add_child(parser, node, parse_not(parser));
    parser->depth--;
    return node;
}

static struct tree *
parse_and(struct parser *parser)
{
    struct tree *node = parse_not(parser);

    for (uint32_t at = parser->token.at; tokens_take_word(parser, "and"); at = parser->token.at)
        node = node_of_two(parser, TREE_AND, at, node, parse_not(parser));
    return node;
}

static struct tree *
parse_or(struct parser *parser)
{
    struct tree *node = parse_and(parser);

    for (uint32_t at = parser->token.at; tokens_take_word(parser, "or"); at = parser->token.at)
        node = node_of_two(parser, TREE_OR, at, node, parse_and(parser));
    return node;
}

static struct tree *
parse_condition(struct parser *parser)
{
    struct tree *node, *condition;
    uint32_t at;

    if (++parser->depth > DEPTH_MAX)
        parser_complain(parser, parser->token.at, "the expression is nested more than %d deep",
                        DEPTH_MAX);
    /* After a complaint nothing more is parsed: the callers return with placeholders. */
    node = parser->status == TUNDISH_OK ? parse_or(parser)
                                        : node_new(parser, TREE_OMITTED, parser->token.at);
    at = parser->token.at;
    if (tokens_take_word(parser, "if")) {
        condition = node_new(parser, TREE_CONDITION, at);
        add_child(parser, condition, node);
        add_child(parser, condition, parse_or(parser));
        if (!tokens_take_word(parser, "else"))
            parser_complain(parser, parser->token.at, "'if' needs an 'else' here");
        add_child(parser, condition, parse_condition(parser));
        node = condition;
    }
    parser->depth--;
    return node;
}

tundish_status
tree_parse(const struct expression_config *config, struct tree **ret_nodes, struct tree **ret_root)
{
    struct parser parser = { .config = config, .text = config->text };
    struct tree *root;

    if (strlen(config->text) > 1 << 20) {
        *ret_nodes = NULL;
        return expression_complain(config, 0, "an expression of more than 1 MiB");
    }
    tokens_advance(&parser);
    root = parse_condition(&parser);
    if (parser.status == TUNDISH_OK && parser.token.kind != TOKEN_END)
        parser_complain(&parser, parser.token.at, "an operator was expected here, not '%.*s'",
                        (int)(parser.token.end - parser.token.at), &parser.text[parser.token.at]);
    *ret_nodes = parser.nodes;
    if (parser.status == TUNDISH_OK)
        *ret_root = root;
    return parser.status;
}
