/* yaml_sentence.c - libyaml's errors, in the words of the pipeline file. */
#include "spec/yaml_sentence.h"

#include <string.h>

/* The offset of a mark in bytes; libyaml counts characters. Marks come nearly in order, so
 * continuing from the last one keeps the whole file linear. */
static size_t
offset_of(struct yaml_source *source, size_t index)
{
    if (index < source->index)
        source->index = source->offset = 0;
    while (source->index < index && source->offset < source->text_bytes) {
        do
            source->offset++;
        while (source->offset < source->text_bytes &&
               ((unsigned char)source->text[source->offset] & 0xc0) == 0x80);
        source->index++;
    }
    return source->offset;
}

bool
yaml_source_has(struct yaml_source *source, yaml_mark_t from, yaml_mark_t to, char c)
{
    size_t first = offset_of(source, from.index);
    size_t end = offset_of(source, to.index);

    return end > first && memchr(source->text + first, c, end - first) != NULL;
}

static char
char_at(struct yaml_source *source, size_t index)
{
    size_t offset = offset_of(source, index);

    return offset < source->text_bytes ? source->text[offset] : '\0';
}

/* The last character before the mark that is not a space. */
static char
char_before(struct yaml_source *source, size_t index)
{
    size_t offset = offset_of(source, index);

    while (offset > 0 && source->text[offset - 1] == ' ')
        offset--;
    return offset > 0 ? source->text[offset - 1] : '\0';
}

static bool
says(const char *text, const char *part)
{
    return text != NULL && strstr(text, part) != NULL;
}

/* Report bytes that are not UTF-8, or control characters. libyaml gives only their offset, so count
 * the line and column here. */
static tundish_status
complain_about_bytes(const yaml_parser_t *parser, const struct yaml_source *source,
                     struct spec_errors *errors)
{
    uint32_t line = 1, column = 1;

    for (size_t i = 0; i < parser->problem_offset && i < source->text_bytes; i++) {
        bool continues = ((unsigned char)source->text[i] & 0xc0) == 0x80;

        column = source->text[i] == '\n' ? 1 : column + !continues;
        line += source->text[i] == '\n';
    }
    return spec_complain(errors, line, column,
                         "the file is not UTF-8 text here (%s); in double quotes \"\\x01\" stands "
                         "for a control character",
                         parser->problem);
}

static const char *
quoting_sentence(const yaml_parser_t *parser, struct yaml_source *source, yaml_mark_t *mark)
{
    const char *context = parser->context;
    char c = char_at(source, mark->index);

    if (says(context, "alias") || says(context, "anchor") || says(context, "tag") ||
        says(context, "directive") || says(context, "block scalar") ||
        says(parser->problem, "undefined tag handle")) {
        if (says(context, "scanning"))
            *mark = parser->context_mark;
        return "a text that starts with * & ! % @ | > or a backquote must be quoted";
    }
    if (says(parser->problem, "cannot start any token")) {
        if (c == '\t')
            return "a tab stands where YAML allows only spaces";
        return "a text that starts with * & ! % @ | > or a backquote must be quoted";
    }
    if (says(parser->problem, "mapping values are not allowed"))
        return "a colon and a space are out of place here: quote a text that contains them, or "
               "look at the indentation";
    if (says(context, "flow mapping") || says(context, "flow sequence")) {
        if (parser->problem_mark.index >= source->text_bytes || c == '\0')
            return "the file ends inside { } or [ ]";
        return "expected , or the closing bracket here; inside {} or [] a text that contains "
               "{ } [ ] or a comma, as ${NAME} or {column}, must be quoted";
    }
    if (says(context, "block mapping") || says(context, "block collection")) {
        char before = char_before(source, mark->index);

        if (before == '}' || before == ']' || before == '"' || before == '\'')
            return "nothing may follow here on this line; a text that starts with { [ or a quote "
                   "must be quoted as a whole";
        return says(context, "block mapping")
                   ? "expected another key or the end of this mapping: look at the indentation"
                   : "expected `- ` or the end of this list: look at the indentation";
    }
    return NULL;
}

static const char *
other_sentence(const yaml_parser_t *parser, yaml_mark_t *mark)
{
    if (says(parser->context, "simple key"))
        return "expected a colon after this key: look at the indentation";
    if (says(parser->context, "quoted scalar") && says(parser->problem, "end of")) {
        *mark = parser->context_mark;
        return "the quote that opens here is never closed";
    }
    if (says(parser->problem, "unknown escape"))
        return "unknown escape in a double-quoted text; a backslash itself is written \\\\, or put "
               "the text in single quotes";
    if (says(parser->problem, "did not find expected <document start>"))
        return "nothing may follow here: the file's one mapping has ended";
    return NULL;
}

tundish_status
yaml_complain(const yaml_parser_t *parser, struct yaml_source *source, struct spec_errors *errors)
{
    yaml_mark_t mark = parser->problem_mark;
    const char *sentence;

    if (parser->error == YAML_MEMORY_ERROR)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for the YAML parser");
    if (parser->error == YAML_READER_ERROR)
        return complain_about_bytes(parser, source, errors);
    sentence = quoting_sentence(parser, source, &mark);
    if (sentence == NULL)
        sentence = other_sentence(parser, &mark);
    if (sentence == NULL)
        return spec_complain(errors, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1,
                             "this is not YAML: %s%s%s", parser->context ? parser->context : "",
                             parser->context ? ", " : "", parser->problem);
    return spec_complain(errors, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1, "%s",
                         sentence);
}
