/* jpeg_parts.c - is the library that the process runs with the one that the parts know? */
#include "content/images/turbo2/jpeg_parts.h"

#include <dlfcn.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool fits;

/* libjpeg-turbo 3 has the soname of 2 and other private structs. It reads 12-bit samples by
 * functions that 2 does not have. */
static void
look_for_version_3(void)
{
    fits = dlsym(RTLD_DEFAULT, "jpeg12_read_scanlines") == NULL;
}

bool
jpeg_parts_fit(void)
{
    pthread_once(&once, look_for_version_3);
    return fits;
}
