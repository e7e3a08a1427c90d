/* names.c - what numbers are called. */
#include "core/dtype.h"
#include "core/status.h"
#include "tundish/tundish.h"

struct status_row {
    tundish_status status;
    const char *name;
    const char *text;
};

static const struct status_row rows[] = {
    { TUNDISH_OK, "OK", "success" },
    { TUNDISH_END, "END",
      "end of the epoch; batches still held stay valid, and the next tundish_next starts another" },
    { TUNDISH_END_OF_STREAM, "END_OF_STREAM", "all deliver.epochs are over" },
    { TUNDISH_NO_VALUE, "NO_VALUE",
      "this replica's epoch is over; tundish_restart begins another" },
    { TUNDISH_STOPPED, "STOPPED", "the server drained and stopped on request" },
    { TUNDISH_E_TIMEOUT, "E_TIMEOUT", "try again: nothing is broken" },
    { TUNDISH_E_SERVER_GONE, "E_SERVER_GONE", "call again: the server died or restarted" },
    { TUNDISH_E_PEER_LOST, "E_PEER_LOST",
      "call again, and reopen at a saved place if it is said again: another replica of the group "
      "died" },
    { TUNDISH_E_DETACHED, "E_DETACHED",
      "reopen: the server detached this group, which was too slow" },
    { TUNDISH_E_DATA, "E_DATA",
      "fix the input, or the code that made it: this step's data is bad" },
    { TUNDISH_E_ARGUMENT, "E_ARGUMENT", "fix the program" },
    { TUNDISH_E_LAYOUT, "E_LAYOUT", "fix the installation: library and server differ in layout" },
    { TUNDISH_E_PIPELINE, "E_PIPELINE", "fix the pipeline file" },
    { TUNDISH_E_PLACE, "E_PLACE", "the place is of other data, or not of the others' step" },
    { TUNDISH_E_SYSTEM, "E_SYSTEM", "mend what failed, then open again: the system, or a store" },
    { TUNDISH_E_CORRUPT, "E_CORRUPT", "give up: shared memory failed a check" },
    { TUNDISH_E_MEMORY, "E_MEMORY", "give up: out of memory, or over the configured limit" },
};

static const struct status_row *
find_status(tundish_status status)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status)
            return &rows[i];
    return NULL;
}

const char *
tundish_status_name(tundish_status status)
{
    const struct status_row *row = find_status(status);

    return row == NULL ? "?" : row->name;
}

const char *
tundish_status_text(tundish_status status)
{
    const struct status_row *row = find_status(status);

    return row == NULL ? "?" : row->text;
}

const char *
tundish_dtype_name(tundish_dtype dtype)
{
    return tnd_dtype_name(dtype);
}

size_t
tundish_dtype_bytes(tundish_dtype dtype)
{
    return tnd_dtype_bytes(dtype);
}

const char *
tundish_last_error(void)
{
    return tnd_error_text();
}

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *
tundish_version(void)
{
    return VERSION_TEXT(TUNDISH_VERSION_MAJOR, TUNDISH_VERSION_MINOR, TUNDISH_VERSION_PATCH);
}
