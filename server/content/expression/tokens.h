/* tokens.h - the words of an expression, one ahead of the parser. */
#ifndef CONTENT_EXPRESSION_TOKENS_H
#define CONTENT_EXPRESSION_TOKENS_H

#include "content/expression/expression_tree.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,   /* also keywords */
    TOKEN_QUOTED, /* `name` */
    TOKEN_OUTER,  /* $name */
    TOKEN_INTEGER,
    TOKEN_NUMBER,
    TOKEN_TEXT,
    TOKEN_SIGN /* an operator or a bracket */
};

struct token {
    enum token_kind kind;
    uint32_t at, end; /* offsets; of names and strings with their quotes */
    char sign[4];
};

/* Begins with zeros but for its first two members, and tokens_advance. */
struct parser {
    const struct expression_config *config;
    const char *text;
    struct token token; /* the one that comes next */
    struct tree *nodes;
    uint32_t node_count;
    uint32_t depth;
    tundish_status status;
};

/* The first complaint counts; after it no more tokens are read. */
#define parser_complain(parser, at, ...)                                                           \
    ((parser)->status != TUNDISH_OK                                                                \
         ? (parser)->status                                                                        \
         : ((parser)->status = expression_complain((parser)->config, at, __VA_ARGS__)))

/* Advance to the next token. */
void tokens_advance(struct parser *parser);

bool tokens_is_sign(const struct parser *parser, const char *sign);
bool tokens_is_word(const struct parser *parser, const char *word);

/* Step past it if it stands here. */
bool tokens_take_sign(struct parser *parser, const char *sign);
bool tokens_take_word(struct parser *parser, const char *word);

/* The same, and a complaint if it does not. */
void tokens_expect_sign(struct parser *parser, const char *sign);

#endif
