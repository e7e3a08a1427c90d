/* reader.c - waiting for batches, and the calls around it.
 *
 * tundish.Reader is a class of Python over this one. Here is what must be quick, what waits without
 * the GIL, and what must know which thread and process calls. */
#include "reader.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <structmember.h>
#include <unistd.h>

#include "batch.h"
#include "clock.h"
#include "epoch.h"
#include "hold.h"
#include "raise.h"
#include "schema.h"
#include "source_lease.h"

struct reader {
    PyObject_HEAD struct source *source; /* NULL: closed */
    struct batch_schema *schema;
    PyObject *batch_type;
    atomic_flag is_busy;
    char has_ended;   /* END_OF_STREAM was told */
    char has_failed;  /* the stream's error was told, after which nothing comes */
    bool has_begun;   /* it was opened at a place, or something was returned */
    bool in_epoch;    /* a batch was returned and the end of its epoch was not */
    bool goes_on;     /* the last call lost the server or a peer: the next loop goes on there */
    char has_pending; /* a place was loaded: the next call goes there first */
    char shows_wait;  /* a person sees what the first batch waits for: _show_wait */
    bool is_gone;     /* the server is: the next call waits for its return ... */
    int64_t gone_until_ns; /* ... until then; 0: it has not begun to */
    struct hold hold;
    PyObject *package; /* its folder: lines in it are not the program's */
    uint64_t loop;
    int64_t timeout_ns;
    long process; /* for the message to a child */
};

static struct reader *
from_object(PyObject *self)
{
    return (struct reader *)(void *)self;
}

tundish_reader *
reader_enter(PyObject *self)
{
    struct reader *reader = from_object(self);

    if (reader->source != NULL && !source_is_ours(reader->source)) {
        raise_misuse("the reader was opened in process %ld: open one in this process (%ld)",
                     reader->process, (long)getpid());
        return NULL;
    }
    /* The SDK allows one thread at a time. A lock would hide the mistake: whose batch is the next?
     */
    if (atomic_flag_test_and_set(&reader->is_busy)) {
        raise_misuse("the reader is in use by another thread: open one reader for each thread");
        return NULL;
    }
    if (reader->source != NULL)
        return source_reader(reader->source);
    atomic_flag_clear(&reader->is_busy);
    raise_misuse("the reader is closed: open another with tundish.open()");
    return NULL;
}

void
reader_leave(PyObject *self)
{
    atomic_flag_clear(&from_object(self)->is_busy);
}

static int64_t
ns_of(double seconds)
{
    return seconds < 1e9 ? (int64_t)(seconds * 1e9) : INT64_MAX / 4;
}

/* None: forever. */
static int
parse_timeout(PyObject *timeout, int64_t *ret_timeout_ns)
{
    double seconds = timeout == NULL || timeout == Py_None ? -1 : PyFloat_AsDouble(timeout);

    if (PyErr_Occurred())
        return -1;
    if (timeout != NULL && timeout != Py_None && !(seconds >= 0)) {
        PyErr_SetString(PyExc_ValueError, "timeout is in seconds from 0, or None: no limit");
        return -1;
    }
    *ret_timeout_ns = seconds < 0 ? TUNDISH_FOREVER : ns_of(seconds);
    return 0;
}

/* Nothing came in this slice, and more may come: of a server that is gone its successor. */
static bool
is_to_wait(const struct reader *reader, tundish_status status)
{
    return status == TUNDISH_E_TIMEOUT || (status == TUNDISH_E_SERVER_GONE && reader->is_gone &&
                                           clock_ns() < reader->gone_until_ns);
}

/* In each slice of the first wait, and once after it, whatever ended it. */
static int
show_wait(PyObject *self, bool is_over)
{
    struct reader *reader = from_object(self);
    PyObject *none, *kind, *value, *trace;

    if (!reader->shows_wait)
        return 0;
    reader->shows_wait = !is_over;
    PyErr_Fetch(&kind, &value, &trace);
    none = PyObject_CallMethod(self, "_show_wait", "i", is_over);
    Py_XDECREF(none);
    if (kind == NULL)
        return none == NULL ? -1 : 0;
    PyErr_Restore(kind, value, trace); /* instead of another one */
    return 0;
}

/* The next batch, in slices. */
static int
wait_for_batch(PyObject *self, int64_t deadline_ns, tundish_status *ret_status,
               struct lent *ret_lent)
{
    struct reader *reader = from_object(self);
    int64_t now_ns = clock_ns();
    int64_t left_ns = deadline_ns <= now_ns && !reader->is_gone ? 0 : INT64_MAX;
    /* A batch that is there already is taken without letting other threads run. */
    tundish_status status =
        reader->is_gone ? TUNDISH_E_TIMEOUT : source_next(reader->source, 0, ret_lent);

    if (reader->is_gone && reader->gone_until_ns == 0)
        reader->gone_until_ns = now_ns + reader->timeout_ns;
    while (left_ns > 0 && is_to_wait(reader, status)) {
        left_ns = deadline_ns - clock_ns();
        left_ns = left_ns < 0 ? 0 : left_ns;
        Py_BEGIN_ALLOW_THREADS;
        status = source_next(reader->source, left_ns < SLICE_NS ? left_ns : SLICE_NS, ret_lent);
        Py_END_ALLOW_THREADS;
        reader->is_gone = reader->is_gone && status == TUNDISH_E_SERVER_GONE;
        /* With a batch in hand a signal can wait until the caller has it. Batches that were passed
         * over (after a restart) may have brought the server to a slot that is held. */
        if (is_to_wait(reader, status) &&
            (PyErr_CheckSignals() != 0 ||
             (deadline_ns == INT64_MAX && show_wait(self, false) != 0) ||
             hold_make_room(&reader->hold, reader->source, deadline_ns) < 0))
            return -1;
    }
    if (is_to_wait(reader, status)) {
        *ret_status = TUNDISH_E_TIMEOUT;
        return 0;
    }
    reader->is_gone = status == TUNDISH_E_SERVER_GONE;
    reader->gone_until_ns = 0;
    *ret_status = status;
    return 0;
}

/* Where the program stands decides what the next `for` does: see reader_iterate. */
static void
note(struct reader *reader, tundish_status status)
{
    if (status == TUNDISH_OK)
        reader->in_epoch = true;
    if (status == TUNDISH_OK || status == TUNDISH_END)
        reader->has_begun = true;
    if (status == TUNDISH_END || status == TUNDISH_END_OF_STREAM)
        reader->in_epoch = false;
    if (status == TUNDISH_END_OF_STREAM)
        reader->has_ended = 1;
    if (status == TUNDISH_STOPPED || status == TUNDISH_E_DETACHED || status == TUNDISH_E_DATA ||
        status == TUNDISH_E_SYSTEM || status == TUNDISH_E_MEMORY)
        reader->has_failed = 1;
    if (status != TUNDISH_E_TIMEOUT)
        reader->goes_on = status == TUNDISH_E_SERVER_GONE || status == TUNDISH_E_PEER_LOST;
}

static PyObject *
new_batch(PyObject *self, const struct lent *lent)
{
    struct reader *reader = from_object(self);
    PyObject *holder;
    struct source_line taken;
    struct lease *lease;

    taken_here(PyUnicode_AsUTF8AndSize(reader->package, NULL), &taken, &holder);
    lease = lease_open(reader->source, lent, &taken);
    Py_XDECREF(holder);
    if (lease == NULL)
        return PyErr_NoMemory();
    return batch_new(reader->batch_type, self, reader->schema, lease);
}

/* Before a call that depends on where the reader stands. */
static int
go_to_pending(PyObject *self)
{
    PyObject *none;

    if (!from_object(self)->has_pending)
        return 0;
    none = PyObject_CallMethod(self, "_go_to_pending", NULL);
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}

int
reader_take(PyObject *self, int64_t timeout_ns, tundish_status *ret_status, PyObject **ret_batch)
{
    struct reader *reader = from_object(self);
    struct lent lent = { 0 };
    int64_t deadline_ns = timeout_ns < 0 ? INT64_MAX : clock_ns() + timeout_ns;
    int result;

    if (go_to_pending(self) != 0 || reader_enter(self) == NULL)
        return -1;
    result = hold_make_room(&reader->hold, reader->source, deadline_ns);
    *ret_status = TUNDISH_E_TIMEOUT;
    if (result > 0)
        result = wait_for_batch(self, deadline_ns, ret_status, &lent);
    if ((result != 0 || *ret_status != TUNDISH_E_TIMEOUT) && show_wait(self, true) != 0)
        result = -1;
    if (result == 0)
        note(reader, *ret_status);
    if (result == 0 && *ret_status == TUNDISH_OK) {
        *ret_batch = new_batch(self, &lent);
        result = *ret_batch == NULL ? -1 : 0;
    }
    reader_leave(self);
    return result;
}

PyObject *
reader_raise(PyObject *self, tundish_status status)
{
    const struct source *source = from_object(self)->source;

    return source == NULL ? raise_status(status)
                          : raise_status_text(status, source_text(source, status));
}

struct source *
reader_source(PyObject *self)
{
    return from_object(self)->source;
}

int
reader_warn_of_nothing(PyObject *self)
{
    struct reader *reader = from_object(self);

    if (reader->has_begun)
        return 0;
    reader->has_begun = true;
    return PyErr_WarnEx(PyExc_RuntimeWarning,
                        "this loop is empty: earlier readers have had all epochs of the stream "
                        "(deliver.epochs); raise that, leave it out for epochs without end, or "
                        "start the server again",
                        1);
}

uint64_t
reader_loop(PyObject *self)
{
    return from_object(self)->loop;
}

static PyObject *
reader_next(PyObject *self, PyObject *arguments, PyObject *names)
{
    static char *keywords[] = { "timeout", NULL };
    PyObject *timeout = NULL, *batch = NULL;
    int64_t timeout_ns;
    tundish_status status;

    if (!PyArg_ParseTupleAndKeywords(arguments, names, "|O", keywords, &timeout) ||
        parse_timeout(timeout, &timeout_ns) != 0 ||
        reader_take(self, timeout_ns, &status, &batch) != 0)
        return NULL;
    return status == TUNDISH_OK ? batch : reader_raise(self, status);
}

static PyObject *
reader_poll(PyObject *self, PyObject *unused)
{
    PyObject *batch = NULL;
    tundish_status status;

    (void)unused;
    if (reader_take(self, 0, &status, &batch) != 0)
        return NULL;
    if (status == TUNDISH_E_TIMEOUT)
        return Py_NewRef(Py_None);
    return status == TUNDISH_OK ? batch : reader_raise(self, status);
}

static PyObject *
reader_restart(PyObject *self, PyObject *unused)
{
    struct reader *reader = from_object(self);
    tundish_status status;

    (void)unused;
    if (go_to_pending(self) != 0 || reader_enter(self) == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = source_restart(reader->source);
    Py_END_ALLOW_THREADS;
    if (status == TUNDISH_OK)
        reader->in_epoch = reader->goes_on = false;
    reader_leave(self);
    return status == TUNDISH_OK ? Py_NewRef(Py_None) : reader_raise(self, status);
}

/* A type of this module: a new reference. */
static PyObject *
own_type(const char *name)
{
    PyObject *module = PyImport_ImportModule("tundish._tundish");
    PyObject *type = module == NULL ? NULL : PyObject_GetAttrString(module, name);

    Py_XDECREF(module);
    return type;
}

/* A new loop: the next epoch, unless this one was cut short by the server or a peer. */
static PyObject *
reader_iterate(PyObject *self)
{
    struct reader *reader = from_object(self);
    PyObject *type, *loop;

    if (go_to_pending(self) != 0)
        return NULL;
    if (reader->in_epoch && !reader->goes_on) {
        PyObject *none = reader_restart(self, NULL);

        if (none == NULL)
            return NULL;
        Py_DECREF(none);
        source_note_left(reader->source);
    }
    type = own_type("Epoch");
    if (type == NULL)
        return NULL;
    loop = epoch_new(type, self, ++reader->loop);
    Py_DECREF(type);
    return loop;
}

static PyObject *
reader_fileno(PyObject *self, PyObject *unused)
{
    tundish_reader *from = go_to_pending(self) != 0 ? NULL : reader_enter(self);
    tundish_status status;
    int descriptor = -1;

    (void)unused;
    if (from == NULL)
        return NULL;
    if (source_device(from_object(self)->source) >= 0) {
        reader_leave(self);
        return raise_misuse("batches for a device are read by a thread of their own, which leaves "
                            "no descriptor to wait for: use poll() or next(timeout=)");
    }
    status = tundish_descriptor(from, &descriptor);
    reader_leave(self);
    return status == TUNDISH_OK ? PyLong_FromLong(descriptor) : raise_status(status);
}

static PyObject *
reader_detach(PyObject *self, PyObject *unused)
{
    struct reader *reader = from_object(self);
    struct source *source = reader->source;
    tundish_status status = TUNDISH_OK;

    (void)unused;
    if (source == NULL)
        return Py_NewRef(Py_None);
    /* In a child nothing is to be done: the reader is the parent's. */
    if (source_is_ours(source)) {
        if (reader_enter(self) == NULL)
            return NULL;
        Py_BEGIN_ALLOW_THREADS;
        status = source_shut(source);
        Py_END_ALLOW_THREADS;
        reader_leave(self);
    }
    if (status != TUNDISH_OK)
        return raise_status(status);
    reader->source = NULL;
    source_drop(source);
    return Py_NewRef(Py_None);
}

/* Take over what was opened. */
static int
begin(PyObject *self, tundish_reader *opened, int device)
{
    struct reader *reader = from_object(self);
    PyObject *schema_class = own_type("Schema");
    PyObject *array_class = own_type(device < 0 ? "Array" : "DeviceArray");
    const tundish_spec *spec;
    const char *text;
    struct batch_schema *schema = NULL;
    struct source *source = NULL;
    tundish_status status;

    if (schema_class != NULL && array_class != NULL &&
        tundish_element_spec(opened, &spec) == TUNDISH_OK)
        schema = schema_new(schema_class, array_class, spec);
    Py_XDECREF(schema_class);
    Py_XDECREF(array_class);
    if (schema == NULL)
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    status = source_open(opened, device, &source, &text);
    Py_END_ALLOW_THREADS;
    if (status != TUNDISH_OK) {
        Py_DECREF((PyObject *)schema);
        raise_status_text(status, text);
        return -1;
    }
    Py_XDECREF((PyObject *)reader->schema);
    reader->schema = schema;
    reader->source = source;
    reader->process = getpid();
    reader->has_ended = reader->has_failed = 0;
    reader->in_epoch = reader->goes_on = reader->is_gone = false;
    return 0;
}

static PyObject *
reader_attach(PyObject *self, PyObject *arguments, PyObject *names)
{
    static char *keywords[] = { "server", "stream",    "session", "group",   "replica",
                                "place",  "check",     "timeout", "on_hold", "package",
                                "batch",  "is_custom", "device",  NULL };
    struct reader *reader = from_object(self);
    tundish_options options = TUNDISH_OPTIONS_INIT;
    PyObject *package, *batch_class;
    tundish_reader *opened;
    const char *on_hold;
    int is_custom, device, policy;
    double timeout;

    if (!PyArg_ParseTupleAndKeywords(
            arguments, names, "zzzzizpdsUOpi", keywords, &options.server, &options.stream,
            &options.session, &options.group, &options.replica, &options.place_token,
            &options.check, &timeout, &on_hold, &package, &batch_class, &is_custom, &device))
        return NULL;
    if (reader->source != NULL)
        return raise_misuse("the reader is open already");
    policy = hold_parse(on_hold);
    if (policy < 0)
        return raise_argument("on_hold is \"%s\", not \"copy\", \"error\" or \"wait\"", on_hold);
    if (!(timeout > 0))
        return raise_argument("timeout is in seconds, and more than 0");
    options.server_timeout_ns = reader->timeout_ns = ns_of(timeout);
    opened = opening_wait(&options);
    if (opened == NULL)
        return NULL;
    if (begin(self, opened, device) != 0) {
        tundish_close(opened);
        return NULL;
    }
    reader->has_begun = options.place_token != NULL;
    reader->schema->is_custom = is_custom != 0;
    reader->hold.policy = (enum on_hold)policy;
    Py_XDECREF(reader->package);
    reader->package = Py_NewRef(package);
    Py_XDECREF(reader->batch_type);
    reader->batch_type = Py_NewRef(batch_class);
    return Py_NewRef(Py_None);
}

static PyObject *
reader_get_closed(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(from_object(self)->source == NULL);
}

static void
reader_dealloc(PyObject *self)
{
    struct reader *reader = from_object(self);

    if (reader->source != NULL && source_is_ours(reader->source)) {
        /* If a batch cannot be kept, its lease keeps the reader open. */
        Py_BEGIN_ALLOW_THREADS;
        source_shut(reader->source);
        Py_END_ALLOW_THREADS;
        source_drop(reader->source);
    }
    Py_XDECREF(reader->package);
    Py_XDECREF((PyObject *)reader->schema);
    Py_XDECREF(reader->batch_type);
    object_free(self);
}

static PyMethodDef methods[] = {
    METHOD(
        "next", reader_next, METH_VARARGS | METH_KEYWORDS,
        "next(timeout=None) -> the next Batch, waiting for it at most so many seconds.\n\n"
        "Raises EndOfEpoch once at the end of an epoch, EndOfStream after the last, Timeout, and "
        "what tundish.Error has below it."),
    METHOD("poll", reader_poll, METH_NOARGS,
           "poll() -> the next Batch if it is there, else None. Raises as next() does."),
    METHOD("restart", reader_restart, METH_NOARGS,
           "Skip the rest of this epoch: the next batch begins another. Batches stay valid."),
    METHOD("fileno", reader_fileno, METH_NOARGS,
           "A descriptor for select: readable when poll() may return something else than None. The "
           "reader owns it."),
    METHOD("_columns", facts_columns, METH_NOARGS, "The columns as dict of tuples."),
    METHOD("_standing", facts_standing, METH_O, "What tundish_get_standing says."),
    METHOD("_attach", reader_attach, METH_VARARGS | METH_KEYWORDS, "Open the SDK's reader."),
    METHOD("_detach", reader_detach, METH_NOARGS, "Close the SDK's reader."),
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef attributes[] = {
    { "_place", facts_place, NULL, "The place as a token.", NULL },
    { "_info", facts_info, NULL, "What tundish_get_info says.", NULL },
    { "closed", reader_get_closed, NULL, "Whether close() was called.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMemberDef members[] = {
    { "ended", T_BOOL, offsetof(struct reader, has_ended), READONLY,
      "Whether all deliver.epochs are over: every further loop is empty." },
    { "_has_failed", T_BOOL, offsetof(struct reader, has_failed), READONLY,
      "Whether the stream's error was told: every further call raises it again." },
    { "_shows_wait", T_BOOL, offsetof(struct reader, shows_wait), 0,
      "Is _show_wait called while the first batch is waited for?" },
    { "_has_pending", T_BOOL, offsetof(struct reader, has_pending), 0,
      "Whether the next call goes to a place that was loaded first." },
    { NULL, 0, 0, 0, NULL },
};

PyObject *
reader_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        SLOT(Py_tp_dealloc, reader_dealloc), SLOT(Py_tp_iter, reader_iterate),
        { Py_tp_methods, methods },          { Py_tp_getset, attributes },
        { Py_tp_members, members },          { 0, NULL },
    };
    static PyType_Spec spec = {
        .name = "tundish._tundish.Reader",
        .basicsize = sizeof(struct reader),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
        .slots = slots,
    };

    return PyType_FromModuleAndSpec(module, &spec, NULL);
}
