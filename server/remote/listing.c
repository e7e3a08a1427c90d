/* listing.c - see listing.h. */
#include "remote/listing.h"

#include <errno.h>
#include <expat.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "remote/url.h"

/* A key of 1024 bytes, each as %XX, or a token. */
enum { TEXT_BYTES_MAX = 8192, DEPTH_MAX = 8 };

struct page_reader {
    struct listing_page page;
    XML_Parser parser;
    const char *problem;
    int depth;
    bool is_in_contents, is_list, is_truncated, is_encoded;
    struct listed_object object;
    size_t used;
    char text[TEXT_BYTES_MAX + 1]; /* of the innermost element */
};

static void
stop_reading(struct page_reader *reader, const char *problem)
{
    reader->problem = problem;
    XML_StopParser(reader->parser, XML_FALSE);
}

static void
begin_element(void *context, const XML_Char *name, const XML_Char **attributes)
{
    struct page_reader *reader = context;

    (void)attributes;
    reader->used = 0;
    reader->text[0] = '\0';
    if (reader->depth++ == 0)
        reader->is_list = strcmp(name, "ListBucketResult") == 0;
    if (reader->depth > DEPTH_MAX)
        stop_reading(reader, "its elements are nested too deeply");
    if (reader->depth == 2 && strcmp(name, "Contents") == 0)
        reader->is_in_contents = true;
}

/* Stores send none; it could hold entities without end. */
static void
refuse_type(void *context, const XML_Char *name, const XML_Char *system, const XML_Char *public,
            int has_subset)
{
    (void)name;
    (void)system;
    (void)public;
    (void)has_subset;
    stop_reading(context, "it has a document type");
}

static void
take_text(void *context, const XML_Char *text, int bytes)
{
    struct page_reader *reader = context;

    if (reader->used + (size_t)bytes > TEXT_BYTES_MAX) {
        stop_reading(reader, "one of its texts is too long");
        return;
    }
    memcpy(reader->text + reader->used, text, (size_t)bytes);
    reader->used += (size_t)bytes;
    reader->text[reader->used] = '\0';
}

static void
end_object(struct page_reader *reader)
{
    struct listing_page *page = &reader->page;

    reader->is_in_contents = false;
    if (reader->object.key == NULL) {
        stop_reading(reader, "an object has no key");
        return;
    }
    page->objects = tnd_grow(page->objects, page->count, sizeof *page->objects);
    page->objects[page->count++] = reader->object;
    reader->object = (struct listed_object){ 0 };
}

static bool
read_size(const char *text, uint64_t *ret_bytes)
{
    char *end;

    errno = 0;
    *ret_bytes = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *ret_bytes <= INT64_MAX;
}

static void
take_member(struct page_reader *reader, const char *name)
{
    if (strcmp(name, "Key") == 0) {
        free(reader->object.key);
        reader->object.key = tnd_strdup(reader->text);
    } else if (strcmp(name, "ETag") == 0 && reader->used < sizeof reader->object.tag) {
        memcpy(reader->object.tag, reader->text, reader->used + 1);
    } else if (strcmp(name, "Size") == 0) {
        if (!read_size(reader->text, &reader->object.bytes))
            stop_reading(reader, "a size is not a number of bytes");
    }
}

static void
end_element(void *context, const XML_Char *name)
{
    struct page_reader *reader = context;

    if (reader->depth == 3 && reader->is_in_contents) {
        take_member(reader, name);
    } else if (reader->depth == 2) {
        if (reader->is_in_contents)
            end_object(reader);
        else if (strcmp(name, "IsTruncated") == 0)
            reader->is_truncated = strcmp(reader->text, "true") == 0;
        else if (strcmp(name, "EncodingType") == 0)
            reader->is_encoded = strcmp(reader->text, "url") == 0;
        else if (strcmp(name, "NextContinuationToken") == 0 && reader->page.next == NULL)
            reader->page.next = tnd_strdup(reader->text);
    }
    reader->depth--;
    reader->used = 0;
    reader->text[0] = '\0';
}

static void
parse(struct page_reader *reader, const char *xml, size_t bytes)
{
    XML_SetUserData(reader->parser, reader);
    XML_SetElementHandler(reader->parser, begin_element, end_element);
    XML_SetCharacterDataHandler(reader->parser, take_text);
    XML_SetStartDoctypeDeclHandler(reader->parser, refuse_type);
    if (XML_Parse(reader->parser, xml, (int)bytes, 1) != XML_STATUS_OK && reader->problem == NULL)
        reader->problem = XML_ErrorString(XML_GetErrorCode(reader->parser));
    if (reader->problem == NULL && !reader->is_list)
        reader->problem = "it is not a list of keys";
    /* Without a token the rest of the keys would be missing, and nobody would notice. */
    if (reader->problem == NULL && reader->is_truncated && reader->page.next == NULL)
        reader->problem = "it has no token to go on with";
}

/* Whether keys are encoded is said once, perhaps after them. */
static void
decode_keys(struct page_reader *reader)
{
    for (size_t i = 0; reader->is_encoded && i < reader->page.count; i++)
        remote_url_decode(reader->page.objects[i].key);
    if (!reader->is_truncated) {
        free(reader->page.next);
        reader->page.next = NULL;
    }
}

tundish_status
listing_page_open(const char *xml, size_t bytes, struct listing_page *ret_page)
{
    struct page_reader *reader = tnd_zalloc(1, sizeof *reader);
    tundish_status status = TUNDISH_OK;

    reader->parser = XML_ParserCreate(NULL);
    tnd_must_have(reader->parser != NULL);
    parse(reader, xml, bytes);
    decode_keys(reader);
    if (reader->problem != NULL)
        status = tnd_fail(TUNDISH_E_DATA, "the list of keys that the store sent cannot be read: %s",
                          reader->problem);
    free(reader->object.key);
    if (status == TUNDISH_OK)
        *ret_page = reader->page;
    else
        listing_page_close(&reader->page);
    XML_ParserFree(reader->parser);
    free(reader);
    return status;
}

void
listing_page_close(struct listing_page *page)
{
    for (size_t i = 0; i < page->count; i++)
        free(page->objects[i].key);
    free(page->objects);
    free(page->next);
    *page = (struct listing_page){ 0 };
}
