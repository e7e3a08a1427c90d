/* url.c - see url.h. */
#include "remote/url.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/redact.h"

/* S3's longest key is 1024 bytes; addresses of http may hold long queries. */
enum { NAME_BYTES_MAX = 8192, KEY_BYTES_MAX = 1024, BUCKET_BYTES_MAX = 222 };

static const char *const prefixes[] = { "http://", "https://", "s3://", "gs://" };

static bool
is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static tundish_status
refuse(const char *name, const char *why)
{
    char shown[201];

    snprintf(shown, sizeof shown, "%s", name);
    tnd_redact_address(shown);
    return tnd_fail(TUNDISH_E_PIPELINE, "%s: %s", shown, why);
}

/* An address goes to the server as it is, so that it must be one already. */
static tundish_status
check_address(const struct remote_url *url)
{
    const char *host = url->name + strlen(prefixes[url->scheme]);
    size_t host_bytes = strcspn(host, "/?");

    for (const char *at = url->name; *at != '\0'; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7F || strchr("\"<>\\^`{|}", *at))
            return refuse(url->name, "write this byte of the address as %XX: blanks, quotes, "
                                     "brackets and bytes that are not ASCII");
    if (host_bytes == 0)
        return refuse(url->name, "the address names no host");
    if (strchr(url->name, '#') != NULL)
        return refuse(url->name, "an address of a file has no #part");
    return TUNDISH_OK;
}

static tundish_status
take_bucket(struct remote_url *url)
{
    const char *bucket = url->name + strlen(prefixes[url->scheme]);
    size_t bytes = strcspn(bucket, "/");

    if (bytes == 0 || bytes > BUCKET_BYTES_MAX)
        return refuse(url->name, "it names no bucket; write s3://BUCKET/KEY");
    for (size_t i = 0; i < bytes; i++)
        if (!is_unreserved(bucket[i]) || bucket[i] == '~' || (i == 0 && bucket[i] == '.'))
            return refuse(url->name, "a bucket's name has letters, digits, - . and _ only");
    if (bucket[bytes] == '\0' || bucket[bytes + 1] == '\0')
        return refuse(url->name, "it names a bucket and no key; write s3://BUCKET/KEY");
    url->key = bucket + bytes + 1;
    if (strlen(url->key) > KEY_BYTES_MAX)
        return refuse(url->name, "a key has at most 1024 bytes");
    url->bucket = tnd_strndup(bucket, bytes);
    return TUNDISH_OK;
}

tundish_status
remote_url_open(const char *name, size_t bytes, struct remote_url *ret_url)
{
    struct remote_url url = { 0 };
    size_t scheme = 0;
    tundish_status status;

    if (bytes > NAME_BYTES_MAX || memchr(name, '\0', bytes) != NULL)
        return tnd_fail(TUNDISH_E_PIPELINE, "a URL has at most %d bytes, and no NUL among them",
                        NAME_BYTES_MAX);
    url.name = tnd_strndup(name, bytes);
    url.key = url.name;
    while (scheme < 4 && strncmp(url.name, prefixes[scheme], strlen(prefixes[scheme])) != 0)
        scheme++;
    url.scheme = (enum remote_scheme)scheme;
    if (scheme == 4)
        status = refuse(url.name, "a URL begins with s3://, gs://, http:// or https://");
    else
        status = remote_url_is_of_store(&url) ? take_bucket(&url) : check_address(&url);
    if (status == TUNDISH_OK)
        *ret_url = url;
    else
        remote_url_close(&url);
    return status;
}

void
remote_url_close(struct remote_url *url)
{
    free(url->name);
    free(url->bucket);
    *url = (struct remote_url){ 0 };
}

/* Takes at most three bytes for each, and a NUL. */
static void
encode(char *to, const char *text, bool keep_slashes)
{
    static const char digits[] = "0123456789ABCDEF";

    for (; *text != '\0'; text++) {
        uint8_t byte = (uint8_t)*text;

        if (is_unreserved(*text) || (keep_slashes && *text == '/')) {
            *to++ = *text;
            continue;
        }
        *to++ = '%';
        *to++ = digits[byte >> 4];
        *to++ = digits[byte & 15];
    }
    *to = '\0';
}

char *
remote_url_encode(const char *text, bool keep_slashes)
{
    char *encoded = tnd_alloc(3 * strlen(text) + 1);

    encode(encoded, text, keep_slashes);
    return encoded;
}

static int
digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void
remote_url_decode(char *text)
{
    char *to = text;

    for (; *text != '\0'; text++) {
        bool is_code = *text == '%' && digit_of(text[1]) >= 0 && digit_of(text[2]) >= 0;

        /* A NUL would end the name before its end. */
        if (is_code && memcmp(text, "%00", 3) != 0) {
            *to++ = (char)(digit_of(text[1]) * 16 + digit_of(text[2]));
            text += 2;
        } else {
            *to++ = *text == '+' ? ' ' : *text;
        }
    }
    *to = '\0';
}

/* A store of one's own is asked by path, since its name may have no domain below it. So is a bucket
 * with a dot, for which Amazon's certificate does not stand. */
char *
remote_url_bucket_address(const struct remote_url *url, const struct remote_site *site)
{
    if (site->endpoint != NULL) {
        size_t bytes = strlen(site->endpoint), bucket_bytes = strlen(url->bucket);
        char *address = tnd_alloc(bytes + 1 + bucket_bytes + 1);

        while (bytes > 0 && site->endpoint[bytes - 1] == '/')
            bytes--;
        memcpy(address, site->endpoint, bytes);
        address[bytes] = '/';
        memcpy(address + bytes + 1, url->bucket, bucket_bytes + 1);
        return address;
    }
    if (url->scheme == REMOTE_GS)
        return tnd_sprintf("https://storage.googleapis.com/%s", url->bucket);
    if (strchr(url->bucket, '.') != NULL)
        return tnd_sprintf("https://s3.%s.amazonaws.com/%s", site->region, url->bucket);
    return tnd_sprintf("https://%s.s3.%s.amazonaws.com", url->bucket, site->region);
}

char *
remote_url_address(const struct remote_url *url, const struct remote_site *site)
{
    char *address;
    size_t bytes;

    if (!remote_url_is_of_store(url))
        return tnd_strdup(url->name);
    address = remote_url_bucket_address(url, site);
    bytes = strlen(address);
    address = tnd_realloc(address, bytes + 1 + 3 * strlen(url->key) + 1, 1);
    address[bytes] = '/';
    encode(address + bytes + 1, url->key, true);
    return address;
}
