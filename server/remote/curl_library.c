/* curl_library.c - see curl_library.h. */
#include "remote/curl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* CURLOPT_AWS_SIGV4 came with 7.75, and signed the port with 7.87 only. */
enum { OLDEST_VERSION = 0x075700 };

static struct curl_library library;
static char problem[256];

static void
find_functions(void *object)
{
    void *found;

#define FIND(name)                                                                                 \
    found = dlsym(object, #name);                                                                  \
    memcpy(&library.name, &found, sizeof found);                                                   \
    if (found == NULL)                                                                             \
        strcpy(problem, "this libcurl has no " #name "; install a newer one");
    CURL_LIBRARY_FUNCTIONS(FIND)
#undef FIND
}

static void
load(void)
{
    void *object = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

    if (object == NULL)
        object = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        strcpy(problem, "reading URLs needs libcurl, which is not there; install it (Debian: "
                        "libcurl4)");
        return;
    }
    find_functions(object);
    if (problem[0] != '\0')
        return;
    if (library.curl_version_info(CURLVERSION_NOW)->version_num < OLDEST_VERSION)
        strcpy(problem, "reading URLs needs libcurl 7.87 or newer; install one");
    else if (library.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        strcpy(problem, "libcurl cannot be initialised");
}

tundish_status
curl_library_open(const struct curl_library **ret_library)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    if (problem[0] != '\0')
        return tnd_fail(TUNDISH_E_SYSTEM, "%s", problem);
    *ret_library = &library;
    return TUNDISH_OK;
}
