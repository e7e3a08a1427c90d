/* listing.h - one page of a bucket's list of keys (ListObjectsV2), read from its XML. */
#ifndef REMOTE_LISTING_H
#define REMOTE_LISTING_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "remote/answer.h"

struct listed_object {
    char *key;
    char tag[ANSWER_TAG_BYTES];
    uint64_t bytes;
};

struct listing_page {
    struct listed_object *objects;
    size_t count;
    char *next; /* the token that continues after this page; NULL: it is the last */
};

/* E_DATA: it is not such a page. *ret_page is empty then. */
tundish_status listing_page_open(const char *xml, size_t bytes, struct listing_page *ret_page);
void listing_page_close(struct listing_page *page); /* accepts zeros */

#endif
