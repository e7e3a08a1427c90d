/* dlpack.c - capsules. Their deleters call nothing of Python: a consumer may delete a tensor in any
 * thread, and after the interpreter has ended.
 *
 * A capsule of a batch's memory holds the lease itself, not the Array: the Array is Python's. */
#include "dlpack.h"

#include <stdlib.h>
#include <string.h>

#include "raise.h"
#include "spare.h"

/* DLPack's structs, as its ABI 1.x and the legacy one before it have them. */
struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    uint8_t type_code, type_bits;
    uint16_t type_lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

struct dl_legacy {
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_legacy *self);
};

struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    struct dl_tensor tensor;
};

/* About what is copied in QUICK_NS. */
#define QUICK_BYTES ((size_t)1 << 18)

enum { DL_CPU = 1, DL_CUDA = 2, DL_READ_ONLY = 1, DL_IS_COPIED = 2 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };

static const uint8_t type_codes[] = {
    [TUNDISH_BOOL] = DL_BOOL,     [TUNDISH_UINT8] = DL_UINT,      [TUNDISH_INT8] = DL_INT,
    [TUNDISH_UINT16] = DL_UINT,   [TUNDISH_INT16] = DL_INT,       [TUNDISH_UINT32] = DL_UINT,
    [TUNDISH_INT32] = DL_INT,     [TUNDISH_UINT64] = DL_UINT,     [TUNDISH_INT64] = DL_INT,
    [TUNDISH_FLOAT16] = DL_FLOAT, [TUNDISH_BFLOAT16] = DL_BFLOAT, [TUNDISH_FLOAT32] = DL_FLOAT,
    [TUNDISH_FLOAT64] = DL_FLOAT,
};

/* The request of a consumer. */
struct request {
    tundish_cuda_stream stream; /* of the host's memory, none */
    uint64_t flags;
    bool is_versioned, is_copy;
};

/* The memory behind a capsule, in one piece. `lease` or `copy` must be given back. */
struct managed {
    union {
        struct dl_legacy legacy;
        struct dl_versioned versioned;
    } as;
    struct lease *lease;
    tundish_cuda_stream stream; /* of a device's array: where the consumer uses it */
    void *copy;
    int64_t dims[TUNDISH_RANK_MAX], strides[TUNDISH_RANK_MAX];
};

static void
managed_free(struct managed *managed)
{
    if (managed->lease != NULL && managed->stream != TUNDISH_CUDA_NO_STREAM)
        lease_used(managed->lease, managed->stream);
    lease_drop(managed->lease);
    spare_give(managed->copy);
    free(managed);
}

static void
delete_legacy(struct dl_legacy *self)
{
    managed_free(self->context);
}

static void
delete_versioned(struct dl_versioned *self)
{
    managed_free(self->context);
}

/* A consumer renames the capsule and calls the deleter itself; otherwise this does. */
static void
free_capsule(PyObject *capsule)
{
    static const char *const names[] = { "dltensor", "dltensor_versioned" };

    for (size_t i = 0; i < 2; i++)
        if (PyCapsule_IsValid(capsule, names[i]))
            managed_free(PyCapsule_GetContext(capsule));
}

/* Strides are written out, though they are those of row-major order: from DLPack 1.2 on NULL is no
 * longer allowed. */
static void
fill_tensor(struct dl_tensor *tensor, struct managed *managed, const struct array_view *view)
{
    int device = source_device(lease_source(view->lease));
    int64_t stride = 1;

    for (uint32_t i = view->shape.rank; i-- > 0;) {
        managed->dims[i] = view->shape.dims[i];
        managed->strides[i] = stride;
        stride *= view->shape.dims[i];
    }
    *tensor = (struct dl_tensor){
        .data = managed->copy != NULL ? managed->copy : (void *)(uintptr_t)view->data,
        .device_type = device < 0 ? DL_CPU : DL_CUDA,
        .device_id = device < 0 ? 0 : device,
        .rank = (int32_t)view->shape.rank,
        .type_code = type_codes[view->shape.dtype],
        .type_bits = (uint8_t)(8 * tundish_dtype_bytes(view->shape.dtype)),
        .type_lanes = 1,
        .shape = managed->dims,
        .strides = managed->strides,
    };
}

/* Other threads run meanwhile only if it takes long: see QUICK_NS in batch.c. */
static void
copy_bytes(void *copy, const struct array_view *view)
{
    if (view->byte_count <= QUICK_BYTES) {
        memcpy(copy, view->data, view->byte_count);
        return;
    }
    Py_BEGIN_ALLOW_THREADS;
    memcpy(copy, view->data, view->byte_count);
    Py_END_ALLOW_THREADS;
}

/* The lease, or with `is_copy` memory of its own, aligned as a batch's is. */
static struct managed *
managed_new(const struct array_view *view, bool is_copy)
{
    struct managed *managed = malloc(sizeof *managed);

    if (managed == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    managed->lease = NULL;
    managed->copy = NULL;
    if (is_copy) {
        managed->copy = spare_take(view->byte_count);
        if (managed->copy == NULL) {
            free(managed);
            PyErr_NoMemory();
            return NULL;
        }
        copy_bytes(managed->copy, view);
    } else {
        lease_lend_on(view->lease);
        managed->lease = view->lease;
    }
    return managed;
}

static PyObject *
make_capsule(const struct array_view *view, const struct request *request)
{
    bool is_copy = request->is_copy;
    struct managed *managed = managed_new(view, is_copy);
    PyObject *capsule;

    if (managed == NULL)
        return NULL;
    managed->stream = request->stream;
    if (request->is_versioned) {
        managed->as.versioned = (struct dl_versioned){
            .major = 1,
            .minor = 0,
            .context = managed,
            .deleter = delete_versioned,
            .flags = is_copy ? DL_IS_COPIED : request->flags,
        };
        fill_tensor(&managed->as.versioned.tensor, managed, view);
    } else {
        managed->as.legacy.context = managed;
        managed->as.legacy.deleter = delete_legacy;
        fill_tensor(&managed->as.legacy.tensor, managed, view);
    }
    capsule = PyCapsule_New(&managed->as, request->is_versioned ? "dltensor_versioned" : "dltensor",
                            free_capsule);
    if (capsule == NULL || PyCapsule_SetContext(capsule, managed) != 0) {
        /* Without its context the capsule's destructor would free nothing. */
        if (capsule != NULL)
            PyCapsule_SetName(capsule, "used");
        Py_XDECREF(capsule);
        managed_free(managed);
        return NULL;
    }
    return capsule;
}

static PyObject *
refuse(const char *sentence)
{
    PyErr_SetString(PyExc_BufferError, sentence);
    return NULL;
}

/* The device that a consumer wants it on, if it says so, is the one that it is on. */
static bool
is_there(PyObject *wanted, int device)
{
    int type, number;

    if (wanted == Py_None)
        return true;
    if (!PyArg_ParseTuple(wanted, "ii;dl_device is (type, number)", &type, &number))
        return false;
    if (device < 0 ? type == DL_CPU && number == 0 : type == DL_CUDA && number == device)
        return true;
    if (device < 0)
        refuse("the array is in the CPU's memory: copy it to the device");
    else
        PyErr_Format(PyExc_BufferError,
                     "the array is in the memory of cuda:%d: take it there, then copy it", device);
    return false;
}

/* The consumer's stream, as the array API numbers them, waits for the batch. In the request is what
 * uses the array from then on. */
static bool
let_wait(PyObject *number, const struct array_view *view, struct request *request)
{
    long long stream = number == Py_None ? 1 : PyLong_AsLongLong(number);
    tundish_cuda_stream handle = stream == 1 ? NULL : (tundish_cuda_stream)(intptr_t)stream;
    tundish_status status;

    if (PyErr_Occurred())
        return false;
    if (stream == 0 || stream < -1) {
        refuse("stream is None or 1 (the default), 2 (the thread's), a handle, or -1 (none)");
        return false;
    }
    /* The thread that lets go of the array may have another stream 2. */
    request->stream = stream == -1 || stream == 2 ? TUNDISH_CUDA_ANY_STREAM : handle;
    status = stream == -1 ? TUNDISH_OK : lease_wait(view->lease, handle);
    if (status != TUNDISH_OK)
        raise_status_text(status, source_text(lease_source(view->lease), status));
    return status == TUNDISH_OK;
}

static bool
check_stream(PyObject *stream, const struct array_view *view, struct request *request)
{
    if (source_device(lease_source(view->lease)) >= 0) {
        if (request->is_copy) {
            refuse("an array on a device is not copied by this: take it, then copy it");
            return false;
        }
        return let_wait(stream, view, request);
    }
    request->stream = TUNDISH_CUDA_NO_STREAM;
    request->flags = DL_READ_ONLY;
    if (stream != Py_None)
        refuse("the array is in the CPU's memory: stream must be None");
    return stream == Py_None;
}

PyObject *
dlpack_capsule(PyObject *array, PyObject *arguments, PyObject *names)
{
    static char *keywords[] = { "stream", "max_version", "dl_device", "copy", NULL };
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    struct request request = { 0 };
    struct array_view view;
    int major = 0, minor = 0;

    if (!PyArg_ParseTupleAndKeywords(arguments, names, "|$OOOO", keywords, &stream, &version,
                                     &device, &copy))
        return NULL;
    if (version != Py_None &&
        !PyArg_ParseTuple(version, "ii;max_version is (major, minor)", &major, &minor))
        return NULL;
    array_look(array, &view);
    request.is_versioned = major >= 1;
    request.is_copy = copy == Py_True;
    /* The older kind of capsule cannot say read-only: its consumer may write. */
    if (copy == Py_None && !request.is_versioned && source_device(lease_source(view.lease)) < 0)
        request.is_copy = true;
    if (!is_there(device, source_device(lease_source(view.lease))) ||
        !check_stream(stream, &view, &request))
        return NULL;
    return make_capsule(&view, &request);
}

PyObject *
dlpack_copy(const struct array_view *view)
{
    const struct request request = { .stream = TUNDISH_CUDA_NO_STREAM, .is_copy = true };

    return make_capsule(view, &request);
}

PyObject *
dlpack_device(PyObject *array, PyObject *unused)
{
    struct array_view view;
    int device;

    (void)unused;
    array_look(array, &view);
    device = source_device(lease_source(view.lease));
    return Py_BuildValue("(ii)", device < 0 ? DL_CPU : DL_CUDA, device < 0 ? 0 : device);
}
