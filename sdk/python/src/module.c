/* module.c - tundish._tundish: the SDK for Python, over tundish.h alone. */
#include "array.h"
#include "batch.h"
#include "device_array.h"
#include "epoch.h"
#include "python.h"
#include "reader.h"
#include "schema.h"
#include "tundish/tundish.h"

/* Heap types, made for each module object: static ones are not in the stable interface. */
static int
add_types(PyObject *module)
{
    PyObject *(*const makers[])(PyObject *) = { array_type, batch_type,  device_array_type,
                                                epoch_type, reader_type, schema_type };

    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        PyObject *type = makers[i](module);
        int result = type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)(void *)type);

        Py_XDECREF(type);
        if (result != 0)
            return -1;
    }
    return PyModule_AddStringConstant(module, "version", tundish_version());
}

static PyModuleDef_Slot module_slots[] = {
    SLOT(Py_mod_exec, add_types),
    { 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tundish._tundish",
    .m_doc = "The SDK for Python. Import tundish instead.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__tundish(void);

PyMODINIT_FUNC
PyInit__tundish(void)
{
    return PyModuleDef_Init(&definition);
}
