/* hold.c - copy the oldest batch out of its slot, raise, or wait.
 *
 * It is the oldest because the server fills slots in their order: while the oldest is held, giving
 * back any other one lets nothing go on. */
#include "hold.h"

#include <string.h>

#include "clock.h"
#include "raise.h"

#define SLICE_NS INT64_C(100000000)
#define PATIENCE_NS INT64_C(1000000000)

int
hold_parse(const char *name)
{
    static const char *const names[] = { "copy", "error", "wait" };

    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* Once for each reader, for a loop that keeps all batches would say it for each. The stack's level
 * is that of the program's call; the line that matters is the one in the text. */
static int
warn(const struct source *source, uint32_t count, const struct source_line *taken)
{
    if (source_device(source) >= 0)
        return PyErr_WarnFormat(
            PyExc_RuntimeWarning, 1,
            "tundish: %u batch%s in use on cuda:%d and the next one needs memory: took memory "
            "for one more, for as long as the oldest, taken at %s:%d, is in use. Drop batches and "
            "arrays that are done with",
            (unsigned)count, count == 1 ? " is" : "es are", source_device(source), taken->file,
            taken->number);
    return PyErr_WarnFormat(
        PyExc_RuntimeWarning, 1,
        "tundish: %u batch%s in use and the next one needs a slot: copied the oldest, taken at "
        "%s:%d, out of its slot, which takes time and memory. Its arrays stay valid. Drop batches "
        "and arrays that are done with, or raise deliver.slots",
        (unsigned)count, count == 1 ? " is" : "es are", taken->file, taken->number);
}

/* Another library may give a batch back in a moment, from a thread of its own: JAX drops what a
 * computation has read a little after its result is there. Waits before the one warning only, in
 * slices, since a batch may be given back just before the wait. */
static int
wait_for_library(struct hold *hold, struct source *source)
{
    int64_t until_ns = clock_ns() + PATIENCE_NS;

    while (!source_has_room(source) && clock_ns() < until_ns) {
        Py_BEGIN_ALLOW_THREADS;
        source_wait_release(source, SLICE_NS);
        Py_END_ALLOW_THREADS;
        if (PyErr_CheckSignals() != 0)
            return -1;
    }
    hold->has_waited = !source_has_room(source);
    return 0;
}

static int
copy_oldest(struct hold *hold, struct source *source)
{
    tundish_status status;
    struct source_line taken;
    uint32_t count;
    bool warns;

    if (!source_oldest(source, &taken, &count))
        return 1;
    /* With warnings as errors the copy is made nevertheless: the next call finds its slot free. */
    warns = !hold->has_warned && !taken.was_left;
    if (warns && !hold->has_waited && source_is_lent_on(source))
        return wait_for_library(hold, source);
    Py_BEGIN_ALLOW_THREADS;
    status = source_keep_oldest(source);
    Py_END_ALLOW_THREADS;
    if (status != TUNDISH_OK) {
        raise_status_text(status, source_text(source, status));
        return -1;
    }
    hold->has_warned = hold->has_warned || warns;
    return warns && warn(source, count, &taken) != 0 ? -1 : 0;
}

static int
raise_held(struct source *source)
{
    struct source_line taken;
    uint32_t count;

    if (!source_oldest(source, &taken, &count))
        return 1;
    raise_argument(
        "the next batch needs a slot of those in use (%u), and on_hold is \"error\": drop "
        "the oldest, taken at %s:%d, and its arrays%s",
        (unsigned)count, taken.file, taken.number,
        source_device(source) < 0 ? ", or raise deliver.slots" : "");
    return -1;
}

/* Has the interpreter no thread but this one? True also if it cannot tell: then an exception is
 * set. */
static bool
is_alone(void)
{
    PyObject *frames, *current = PySys_GetObject("_current_frames");
    Py_ssize_t count;

    frames = current == NULL ? NULL : PyObject_CallNoArgs(current);
    count = frames == NULL ? 0 : PyObject_Length(frames);
    Py_XDECREF(frames);
    return count <= 1;
}

/* In slices, as in reader.c, since a signal does not end a wait for a condition. A thread of a
 * library that is to drop the batch has had one when this looks whether there is anybody. */
static int
wait_for_release(struct source *source, int64_t deadline_ns, bool has_waited)
{
    int64_t left_ns = deadline_ns - clock_ns();
    struct source_line taken;
    uint32_t count;

    if (!source_oldest(source, &taken, &count))
        return 1;
    if (has_waited && !source_is_lent_on(source) && is_alone()) {
        if (!PyErr_Occurred())
            raise_argument("the next batch needs a slot of those in use (%u), on_hold is \"wait\", "
                           "and this program has no other thread that could drop the oldest, taken "
                           "at %s:%d: drop it before, or use on_hold=\"copy\"",
                           (unsigned)count, taken.file, taken.number);
        return -1;
    }
    if (left_ns > 0) {
        Py_BEGIN_ALLOW_THREADS;
        source_wait_release(source, left_ns < SLICE_NS ? left_ns : SLICE_NS);
        Py_END_ALLOW_THREADS;
    }
    return PyErr_CheckSignals();
}

int
hold_make_room(struct hold *hold, struct source *source, int64_t deadline_ns)
{
    bool has_waited = false;
    int result = 0;

    while (!source_has_room(source) && result == 0) {
        if (hold->policy == ON_HOLD_WAIT && deadline_ns <= clock_ns())
            return 0;
        result = hold->policy == ON_HOLD_COPY ? copy_oldest(hold, source)
                 : hold->policy == ON_HOLD_ERROR
                     ? raise_held(source)
                     : wait_for_release(source, deadline_ns, has_waited);
        has_waited = true;
    }
    return result == 0 ? 1 : result;
}
