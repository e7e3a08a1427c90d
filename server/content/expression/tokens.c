/* tokens.c - split an expression into tokens. */
#include "content/expression/tokens.h"

#include <ctype.h>
#include <string.h>

static bool
is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool
is_name_part(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static uint32_t
end_of_name(const char *text, uint32_t at)
{
    while (is_name_part(text[at]))
        at++;
    return at;
}

/* Scan a number in Python's notation. An e without digits after it belongs to the next token, which
 * is then refused. */
static void
scan_number(struct parser *parser, uint32_t at)
{
    const char *text = parser->text;
    bool is_integer = true;

    if (text[at] == '0' && (text[at + 1] == 'x' || text[at + 1] == 'X')) {
        at += 2;
        while (isxdigit((unsigned char)text[at]))
            at++;
    } else {
        while (isdigit((unsigned char)text[at]))
            at++;
        if (text[at] == '.') {
            is_integer = false;
            at++;
            while (isdigit((unsigned char)text[at]))
                at++;
        }
        /* The e belongs to the number only if digits follow, so it is looked at first. */
        if (text[at] == 'e' || text[at] == 'E') {
            uint32_t exponent = at + 1;

            exponent += text[exponent] == '+' || text[exponent] == '-';
            if (isdigit((unsigned char)text[exponent])) {
                is_integer = false;
                for (at = exponent; isdigit((unsigned char)text[at]);)
                    at++;
            }
        }
    }
    if (is_name_part(text[at]))
        parser_complain(parser, at, "a number ends in '%c'", text[at]);
    parser->token.kind = is_integer ? TOKEN_INTEGER : TOKEN_NUMBER;
    parser->token.end = at;
}

/* A quoted text or name. Backslashes escape in texts only: a name in backquotes is literal. */
static void
scan_quoted(struct parser *parser, uint32_t at, enum token_kind kind)
{
    const char *text = parser->text;
    char quote = text[at];
    uint32_t end = at + 1;

    while (text[end] != quote && text[end] != '\0')
        end += quote != '`' && text[end] == '\\' && text[end + 1] != '\0' ? 2 : 1;
    if (text[end] == '\0')
        parser_complain(parser, at, "%c is unmatched", quote);
    else
        end++;
    parser->token.kind = kind;
    parser->token.end = end;
}

static void
scan_sign(struct parser *parser, uint32_t at)
{
    /* Longer signs come first, so that ** is not read as two *. */
    static const char *const signs[] = {
        "...", "**", "//", "<=", ">=", "==", "!=", "+", "-", "*", "/",
        "%",   "<",  ">",  "(",  ")",  "[",  "]",  ",", ":", "=",
    };

    parser->token.kind = TOKEN_SIGN;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t bytes = strlen(signs[i]);

        if (strncmp(&parser->text[at], signs[i], bytes) == 0) {
            memcpy(parser->token.sign, signs[i], bytes + 1);
            parser->token.end = at + (uint32_t)bytes;
            return;
        }
    }
    parser_complain(parser, at, "'%c' has no meaning here", parser->text[at]);
    parser->token.kind = TOKEN_END;
}

void
tokens_advance(struct parser *parser)
{
    const char *text = parser->text;
    uint32_t at = parser->token.end;

    while (isspace((unsigned char)text[at]))
        at++;
    parser->token = (struct token){ .at = at, .end = at };
    if (text[at] == '\0')
        parser->token.kind = TOKEN_END;
    else if (is_name_start(text[at])) {
        parser->token.kind = TOKEN_NAME;
        parser->token.end = end_of_name(text, at);
    } else if (text[at] == '$' && is_name_start(text[at + 1])) {
        /* The dollar is part of the token but not of the name. */
        parser->token.kind = TOKEN_OUTER;
        parser->token.end = end_of_name(text, at + 1);
    } else if (isdigit((unsigned char)text[at]) ||
               (text[at] == '.' && isdigit((unsigned char)text[at + 1])))
        scan_number(parser, at);
    else if (text[at] == '\'' || text[at] == '"')
        scan_quoted(parser, at, TOKEN_TEXT);
    else if (text[at] == '`')
        scan_quoted(parser, at, TOKEN_QUOTED);
    else
        scan_sign(parser, at);
}

bool
tokens_is_sign(const struct parser *parser, const char *sign)
{
    return parser->token.kind == TOKEN_SIGN && strcmp(parser->token.sign, sign) == 0;
}

bool
tokens_is_word(const struct parser *parser, const char *word)
{
    size_t bytes = strlen(word);

    return parser->token.kind == TOKEN_NAME && parser->token.end - parser->token.at == bytes &&
           memcmp(&parser->text[parser->token.at], word, bytes) == 0;
}

bool
tokens_take_sign(struct parser *parser, const char *sign)
{
    if (parser->status != TUNDISH_OK || !tokens_is_sign(parser, sign))
        return false;
    tokens_advance(parser);
    return true;
}

bool
tokens_take_word(struct parser *parser, const char *word)
{
    if (parser->status != TUNDISH_OK || !tokens_is_word(parser, word))
        return false;
    tokens_advance(parser);
    return true;
}

void
tokens_expect_sign(struct parser *parser, const char *sign)
{
    if (tokens_take_sign(parser, sign))
        return;
    if (parser->token.kind == TOKEN_END)
        parser_complain(parser, parser->token.at, "the expression ends where %s was expected",
                        sign);
    else
        parser_complain(parser, parser->token.at, "%s was expected here, not '%.*s'", sign,
                        (int)(parser->token.end - parser->token.at),
                        &parser->text[parser->token.at]);
}
