/* list.c - asks for a bucket's keys, page after page. */
#include "remote/list.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/memory.h"
#include "remote/object.h"
#include "remote/request.h"

enum { PAGE_BYTES_MAX = 64 << 20 };

struct search {
    struct remote *remote;
    struct remote_url url; /* its key is the pattern */
    char *address;         /* of the bucket */
    char *prefix;          /* of all keys that can match, encoded */
    bool is_flat;          /* ... none of which has a slash after it */
    bool takes_all;        /* below the prefix */
    struct remote_matches matches;
};

/* Up to the first wildcard, without backslashes. */
static char *
prefix_of(const char *pattern)
{
    char *prefix = tnd_zalloc(strlen(pattern) + 1, 1), *to = prefix;

    for (; *pattern != '\0' && strchr("*?[", *pattern) == NULL; pattern++) {
        if (*pattern == '\\' && pattern[1] != '\0')
            pattern++;
        *to++ = *pattern;
    }
    return prefix;
}

static void
add_match(struct search *search, const struct listed_object *object)
{
    struct remote_matches *matches = &search->matches;
    size_t bytes = strlen(object->key);

    /* A key that ends in a slash stands for a folder. */
    if (bytes == 0 || object->key[bytes - 1] == '/' ||
        (!search->takes_all && fnmatch(search->url.key, object->key, FNM_PATHNAME) != 0))
        return;
    matches->list = tnd_grow(matches->list, matches->count, sizeof *matches->list);
    matches->list[matches->count++] = (struct remote_match){
        .name = tnd_sprintf("%.*s%s", (int)(search->url.key - search->url.name), search->url.name,
                            object->key),
        .bytes = object->bytes,
        .hash = tnd_hash_farm(object->tag, strlen(object->tag)),
    };
}

/* Sorted by name, every parameter with its =, and encoded strictly: that is what is signed. */
static char *
page_address(const struct search *search, const char *token)
{
    char *encoded = token != NULL ? remote_url_encode(token, false) : NULL;
    char *address = tnd_sprintf("%s/?%s%s%s%sencoding-type=url&list-type=2&prefix=%s",
                                search->address, encoded != NULL ? "continuation-token=" : "",
                                encoded != NULL ? encoded : "", encoded != NULL ? "&" : "",
                                search->is_flat ? "delimiter=%2F&" : "", search->prefix);

    free(encoded);
    return address;
}

static tundish_status
read_page(struct search *search, const char *token, struct listing_page *ret_page)
{
    char *address = page_address(search, token);
    struct reply *reply = NULL;
    const struct answer *answer;
    const uint8_t *bytes;
    size_t count;
    tundish_status status =
        request_ask_all(search->remote, &search->url, address, PAGE_BYTES_MAX, &reply);

    if (status == TUNDISH_OK)
        status = request_wait(reply, &bytes, &count, &answer);
    if (status == TUNDISH_OK) {
        status = listing_page_open((const char *)bytes, count, ret_page);
        if (status != TUNDISH_OK)
            status = tnd_fail_while(status, "%s", search->url.name);
    }
    request_close(reply);
    free(address);
    return status;
}

/* One of the pages so far, with which later ones are compared: first the first one, then the
 * second, the fourth, the eighth. A list that goes round in a circle of whatever length comes back
 * to it in the end. */
struct milestone {
    uint64_t pages, next;
    char *token, *key;
};

/* Tokens and keys may also be ever new. So many pages may be without keys, as where folders are
 * between them or keys were deleted; after that a page needs some. */
enum { PAGES_SPARE = 4096, PAGE_KEYS_LEAST = 16, KEYS_MAX = 1 << 27 };

struct listed {
    uint64_t pages, keys;
};

static tundish_status
count_page(const struct search *search, const struct listing_page *page, struct listed *listed)
{
    listed->pages++;
    listed->keys += page->count;
    if (listed->keys > KEYS_MAX)
        return tnd_fail(TUNDISH_E_DATA,
                        "%s: the store's list has more than %d keys; give patterns that match "
                        "fewer, or pack the files into larger ones",
                        search->url.name, KEYS_MAX);
    if (listed->pages > PAGES_SPARE + listed->keys / PAGE_KEYS_LEAST)
        return tnd_fail(TUNDISH_E_DATA,
                        "%s: the store's list of keys has no end: %llu pages had %llu keys "
                        "together; check the store, and proxies on the way",
                        search->url.name, (unsigned long long)listed->pages,
                        (unsigned long long)listed->keys);
    return TUNDISH_OK;
}

static char *
copy(const char *text)
{
    return text != NULL ? tnd_strdup(text) : NULL;
}

static void
milestone_close(struct milestone *milestone)
{
    free(milestone->token);
    free(milestone->key);
}

/* Is this page of a list the milestone once more? */
static bool
is_back(struct milestone *milestone, const struct listing_page *page)
{
    const char *key = page->count > 0 ? page->objects[0].key : NULL;

    if (milestone->token != NULL && page->next != NULL && strcmp(milestone->token, page->next) == 0)
        return true;
    if (milestone->key != NULL && key != NULL && strcmp(milestone->key, key) == 0)
        return true;
    if (milestone->pages++ == milestone->next) {
        milestone_close(milestone);
        milestone->token = copy(page->next);
        milestone->key = copy(key);
        milestone->next = 2 * milestone->next + 1;
    }
    return false;
}

static tundish_status
read_pages(struct search *search)
{
    struct milestone milestone = { 0 };
    struct listed listed = { 0 };
    char *token = NULL;
    tundish_status status = TUNDISH_OK;

    do {
        struct listing_page page = { 0 };

        status = read_page(search, token, &page);
        for (size_t i = 0; i < page.count; i++)
            add_match(search, &page.objects[i]);
        if (status == TUNDISH_OK && is_back(&milestone, &page))
            status = tnd_fail(TUNDISH_E_DATA,
                              "%s: the store's list of keys has no end, since it comes back to "
                              "where it was; check the store, and proxies on the way",
                              search->url.name);
        if (status == TUNDISH_OK)
            status = count_page(search, &page, &listed);
        free(token);
        token = page.next;
        page.next = NULL;
        listing_page_close(&page);
    } while (status == TUNDISH_OK && token != NULL);
    milestone_close(&milestone);
    free(token);
    return status;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(((const struct remote_match *)a)->name, ((const struct remote_match *)b)->name);
}

static tundish_status
list_store(struct search *search)
{
    struct remote_site site = remote_site_of(search->remote);
    char *prefix = search->takes_all ? tnd_strdup(search->url.key) : prefix_of(search->url.key);
    tundish_status status;

    search->address = remote_url_bucket_address(&search->url, &site);
    search->is_flat = !search->takes_all && strchr(search->url.key + strlen(prefix), '/') == NULL &&
                      strlen(prefix) <= strlen(search->url.key);
    search->prefix = remote_url_encode(prefix, false);
    free(prefix);
    status = read_pages(search);
    free(search->address);
    free(search->prefix);
    if (search->matches.count > 0)
        qsort(search->matches.list, search->matches.count, sizeof *search->matches.list,
              compare_names);
    return status;
}

static tundish_status
look_at_one(struct search *search)
{
    struct object_identity identity;
    tundish_status status;

    if (strchr(search->url.name, '*') != NULL)
        return tnd_fail(TUNDISH_E_PIPELINE,
                        "%s: http has no lists of files, so there is nothing for a pattern to "
                        "match; name the files",
                        search->url.name);
    status = remote_identify(search->remote, search->url.name, &identity);
    if (status != TUNDISH_OK)
        return status;
    search->matches.list = tnd_zalloc(1, sizeof *search->matches.list);
    search->matches.list[0] = (struct remote_match){ .name = tnd_strdup(search->url.name),
                                                     .bytes = identity.bytes,
                                                     .hash = object_identity_hash(&identity) };
    search->matches.count = 1;
    return TUNDISH_OK;
}

tundish_status
remote_list(struct remote *remote, const char *pattern, struct remote_matches *ret_matches)
{
    struct search search = { .remote = remote };
    tundish_status status = remote_url_open(pattern, strlen(pattern), &search.url);

    if (status == TUNDISH_OK)
        status = remote_url_is_of_store(&search.url) ? list_store(&search) : look_at_one(&search);
    remote_url_close(&search.url);
    if (status == TUNDISH_OK)
        *ret_matches = search.matches;
    else
        remote_matches_close(&search.matches);
    return status;
}

tundish_status
remote_list_below(struct remote *remote, const char *folder, struct remote_matches *ret_matches)
{
    struct search search = { .remote = remote, .takes_all = true };
    tundish_status status = remote_url_open(folder, strlen(folder), &search.url);

    if (status == TUNDISH_OK && !remote_url_is_of_store(&search.url))
        status = tnd_fail(TUNDISH_E_PIPELINE, "%s: http has no lists of files", folder);
    if (status == TUNDISH_OK)
        status = list_store(&search);
    remote_url_close(&search.url);
    if (status == TUNDISH_OK)
        *ret_matches = search.matches;
    else
        remote_matches_close(&search.matches);
    return status;
}

void
remote_matches_close(struct remote_matches *matches)
{
    for (size_t i = 0; i < matches->count; i++)
        free(matches->list[i].name);
    free(matches->list);
    *matches = (struct remote_matches){ 0 };
}
