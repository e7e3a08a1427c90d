/* driven_curl.c - see driven_curl.h. */
#include "driven_curl.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/memory.h"

static struct curl_library library, real;
static _Atomic int64_t now_ns = 1000000000;
static _Atomic bool is_held;

/* Of the thread of the transfers alone. */
static int active;
static CURL *last; /* added */
static int64_t held_since_ns;
static long slow_s; /* as was set */
static CURLMsg cut;

static int64_t
read_clock(void *context)
{
    (void)context;
    return atomic_load(&now_ns);
}

static int64_t
read_wall(void *context)
{
    (void)context;
    return DRIVEN_WALL_S * 1000000000 + atomic_load(&now_ns);
}

void
driven_curl_pass(int64_t ns)
{
    atomic_fetch_add(&now_ns, ns);
}

void
driven_curl_hold(void)
{
    atomic_store(&is_held, true);
}

static CURLMcode
add_handle(CURLM *multi, CURL *easy)
{
    active++;
    last = easy;
    held_since_ns = 0;
    return real.curl_multi_add_handle(multi, easy);
}

static CURLMcode
remove_handle(CURLM *multi, CURL *easy)
{
    active--;
    atomic_store(&is_held, false);
    return real.curl_multi_remove_handle(multi, easy);
}

/* Asleep until a pause is over: let it be over. Held: so is the time until somebody looks. */
static CURLMcode
poll_driven(CURLM *multi, struct curl_waitfd *more, unsigned count, int timeout_ms, int *ret_count)
{
    static const int idle_ms = 1000;
    bool passes = active == 0 ? timeout_ms < idle_ms : atomic_load(&is_held);
    int ready = 0;
    CURLMcode code = real.curl_multi_poll(multi, more, count, passes ? 0 : timeout_ms, &ready);

    if (passes && ready == 0) {
        driven_curl_pass(INT64_C(1000000) * timeout_ms);
        if (active > 0 && held_since_ns == 0)
            held_since_ns = tnd_clock_ns();
    }
    if (ret_count != NULL)
        *ret_count = ready;
    return code;
}

/* What libcurl says of a connection that was slow for as long as was set. */
static CURLMsg *
read_info(CURLM *multi, int *ret_left)
{
    if (active > 0 && held_since_ns != 0 &&
        tnd_clock_ns() - held_since_ns >= slow_s * INT64_C(1000000000)) {
        held_since_ns = 0;
        cut = (CURLMsg){ .msg = CURLMSG_DONE,
                         .easy_handle = last,
                         .data.result = CURLE_OPERATION_TIMEDOUT };
        *ret_left = 0;
        return &cut;
    }
    return real.curl_multi_info_read(multi, ret_left);
}

static CURLcode
set_option(CURL *easy, CURLoption option, ...)
{
    CURLcode code;
    va_list values;

    va_start(values, option);
    if (option < CURLOPTTYPE_OBJECTPOINT) {
        long value = va_arg(values, long);

        if (option == CURLOPT_LOW_SPEED_TIME)
            slow_s = value;
        code = real.curl_easy_setopt(easy, option, value);
    } else {
        code = real.curl_easy_setopt(easy, option, va_arg(values, void *));
    }
    va_end(values);
    return code;
}

const struct curl_library *
driven_curl_open(void)
{
    static const struct tnd_clock clock = { .now_ns = read_clock, .wall_ns = read_wall };
    const struct curl_library *found = NULL;

    tnd_must_have(curl_library_open(&found) == TUNDISH_OK);
    real = library = *found;
    library.curl_multi_add_handle = add_handle;
    library.curl_multi_remove_handle = remove_handle;
    library.curl_multi_poll = poll_driven;
    library.curl_multi_info_read = read_info;
    library.curl_easy_setopt = set_option;
    tnd_clock_install(&clock);
    return &library;
}

void
driven_curl_close(void)
{
    tnd_clock_install(NULL);
}
