/* transform_module.c - the module tundish._transform.
 *
 * It is apart from _tundish because it loads the server's content stages: a trainer that only reads
 * batches starts without them. */
#include "transform.h"

#include "raise.h"

PyObject *
transform_fail(tundish_status status)
{
    return raise_status_text(status, tundish_transform_last_error());
}

const char *
transform_kind_name(tundish_kind kind)
{
    return kind == TUNDISH_RAGGED ? "ragged" : kind == TUNDISH_SPARSE ? "sparse" : "dense";
}

static int
fill(PyObject *module)
{
    struct transform_types *types = PyModule_GetState(module);

    types->transform = transform_type(module);
    types->result = transform_result_type(module);
    types->part = transform_part_type(module);
    if (types->transform == NULL || types->result == NULL || types->part == NULL)
        return -1;
    return PyModule_AddType(module, (PyTypeObject *)(void *)types->transform);
}

static int
visit_types(PyObject *module, visitproc visit, void *arg)
{
    struct transform_types *types = PyModule_GetState(module);

    Py_VISIT(types->transform);
    Py_VISIT(types->result);
    Py_VISIT(types->part);
    return 0;
}

static int
clear_types(PyObject *module)
{
    struct transform_types *types = PyModule_GetState(module);

    Py_CLEAR(types->transform);
    Py_CLEAR(types->result);
    Py_CLEAR(types->part);
    return 0;
}

static void
free_types(void *module)
{
    clear_types(module);
}

PyMODINIT_FUNC PyInit__transform(void);

PyMODINIT_FUNC
PyInit__transform(void)
{
    static PyModuleDef_Slot slots[] = {
        SLOT(Py_mod_exec, fill),
        { 0, NULL },
    };
    static PyModuleDef definition = {
        .m_base = PyModuleDef_HEAD_INIT,
        .m_name = "tundish._transform",
        .m_doc = "libtundish_transform for tundish.Transform.",
        .m_size = sizeof(struct transform_types),
        .m_slots = slots,
        .m_traverse = visit_types,
        .m_clear = clear_types,
        .m_free = free_types,
    };

    return PyModuleDef_Init(&definition);
}
