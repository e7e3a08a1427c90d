/* curl_library.h - libcurl, loaded when the first URL is read: it brings two dozen libraries with
 * it that a server of local files, and a program that preprocesses without one, need not have.
 */
#ifndef REMOTE_CURL_LIBRARY_H
#define REMOTE_CURL_LIBRARY_H

/* Options are passed through pointers to functions, which its macros do not know. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "core/status.h"

#define CURL_LIBRARY_FUNCTIONS(X)                                                                  \
    X(curl_global_init)                                                                            \
    X(curl_version_info)                                                                           \
    X(curl_easy_init)                                                                              \
    X(curl_easy_setopt)                                                                            \
    X(curl_easy_perform)                                                                           \
    X(curl_easy_getinfo)                                                                           \
    X(curl_easy_reset)                                                                             \
    X(curl_easy_cleanup)                                                                           \
    X(curl_easy_strerror)                                                                          \
    X(curl_slist_append)                                                                           \
    X(curl_slist_free_all)                                                                         \
    X(curl_multi_init)                                                                             \
    X(curl_multi_setopt)                                                                           \
    X(curl_multi_add_handle)                                                                       \
    X(curl_multi_remove_handle)                                                                    \
    X(curl_multi_perform)                                                                          \
    X(curl_multi_poll)                                                                             \
    X(curl_multi_wakeup)                                                                           \
    X(curl_multi_info_read)                                                                        \
    X(curl_multi_cleanup)

/* Its functions under their own names. */
struct curl_library {
#define MEMBER(name) __typeof__(name) *name;
    CURL_LIBRARY_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* Any thread. E_SYSTEM: it is not there, or too old; says what to install. */
tundish_status curl_library_open(const struct curl_library **ret_library);

#endif
