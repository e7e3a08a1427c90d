/* driver.c - libcuda.so.1, loaded when it is wanted. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "core/status.h"

enum { CU_OUT_OF_MEMORY = 2, CU_STUB_LIBRARY = 34, CU_NO_DEVICE = 100 };
enum { OLDEST_DRIVER = 11000 }; /* CUDA 11.0: the first with all calls of the table */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct cuda_driver loaded;
static const char *missing; /* why there is no driver; NULL: there is one */
static char reason[256];

/* Kept, since dlerror's text is gone after the next call of any thread. */
static const char *
reason_of(const char *what, const char *why)
{
    strncpy(reason, what, sizeof reason - 1);
    strncat(reason, why, sizeof reason - 1 - strlen(reason));
    return reason;
}

/* A function's address from an object's, as POSIX wants it of dlsym. */
static int
find_call(void *library, const char *symbol, void *ret_call)
{
    void *address = dlsym(library, symbol);

    memcpy(ret_call, &address, sizeof address);
    return address != NULL;
}

/* The name with the version: libcuda.so alone is the toolkit's, for linking, and may be a stub. It
 * is never closed, because the driver's threads go on. */
static void
load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        missing = reason_of("there is no NVIDIA driver: ", dlerror());
        return;
    }
#define FIND_CUDA_CALL(symbol, member, parameters)                                                 \
    if (missing == NULL && !find_call(library, #symbol, &loaded.member))                           \
        missing = reason_of("the NVIDIA driver is too old: it lacks ", #symbol);
    CUDA_CALLS(FIND_CUDA_CALL)
#undef FIND_CUDA_CALL
}

tundish_status
cuda_check(const struct cuda_driver *driver, cu_result result, const char *what)
{
    const char *name = NULL, *text = NULL;

    if (result == CU_SUCCESS)
        return TUNDISH_OK;
    if (driver->error_name(result, &name) != CU_SUCCESS || name == NULL)
        name = "an error of the driver";
    if (driver->error_text(result, &text) != CU_SUCCESS || text == NULL)
        text = "no text";
    return tnd_fail(result == CU_OUT_OF_MEMORY ? TUNDISH_E_MEMORY : TUNDISH_E_SYSTEM,
                    "cannot %s: %s (%s)", what, name, text);
}

tundish_status
cuda_driver_open(const struct cuda_driver **ret_driver)
{
    cu_result result;
    int version = 0;

    pthread_once(&once, load);
    if (missing != NULL)
        return tnd_fail(TUNDISH_E_SYSTEM, "%s", missing);
    result = loaded.init(0);
    if (result == CU_STUB_LIBRARY)
        return tnd_fail(TUNDISH_E_SYSTEM, "libcuda.so.1 is the toolkit's stub, not a driver: take "
                                          "its folder out of LD_LIBRARY_PATH");
    if (result == CU_NO_DEVICE)
        return tnd_fail(TUNDISH_E_SYSTEM, "there is no GPU (CUDA_VISIBLE_DEVICES may hide it)");
    if (result != CU_SUCCESS)
        return cuda_check(&loaded, result, "start the NVIDIA driver");
    if (loaded.driver_version(&version) != CU_SUCCESS || version < OLDEST_DRIVER)
        return tnd_fail(TUNDISH_E_SYSTEM,
                        "the NVIDIA driver is too old: it supports CUDA %d.%d, "
                        "and 11.0 is needed",
                        version / 1000, version % 1000 / 10);
    *ret_driver = &loaded;
    return TUNDISH_OK;
}
