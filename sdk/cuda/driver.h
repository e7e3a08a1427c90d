/* driver.h - the calls of libcuda.so.1 that this library makes, found when it is opened.
 *
 * No header and no library of CUDA is needed to build or to link: the types are written out here as
 * the driver's ABI has them, and every call is looked up by its versioned name.
 */
#ifndef TND_CUDA_DRIVER_H
#define TND_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "tundish/tundish_cuda.h"

typedef int cu_result; /* CUresult: 0 is success */
enum { CU_SUCCESS = 0, CU_NOT_READY = 600, CU_INVALID_CONTEXT = 201, CU_INVALID_HANDLE = 400 };
enum {
    CU_CAPTURE_IMPLICIT = 906
}; /* the default stream, while one that it waits for is captured */
enum {
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_STREAM_NON_BLOCKING = 1,
    CU_CAPTURE_RELAXED = 2
};
enum { CU_HOST_ALLOC_PORTABLE = 1 };

typedef int cu_device;
typedef struct CUctx_st *cu_context;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;
typedef struct CUevent_st *cu_event;
typedef tundish_cuda_stream cu_stream;
typedef tundish_cuda_address cu_address;

/* result, symbol, member, parameters */
#define CUDA_CALLS(CALL)                                                                           \
    CALL(cuInit, init, (unsigned))                                                                 \
    CALL(cuDriverGetVersion, driver_version, (int *))                                              \
    CALL(cuDeviceGetCount, device_count, (int *))                                                  \
    CALL(cuDeviceGet, device_get, (cu_device *, int))                                              \
    CALL(cuDeviceGetAttribute, device_attribute, (int *, int, cu_device))                          \
    CALL(cuDevicePrimaryCtxRetain, context_retain, (cu_context *, cu_device))                      \
    CALL(cuDevicePrimaryCtxRelease_v2, context_release, (cu_device))                               \
    CALL(cuCtxPushCurrent_v2, context_push, (cu_context))                                          \
    CALL(cuCtxPopCurrent_v2, context_pop, (cu_context *))                                          \
    CALL(cuMemAlloc_v2, memory_alloc, (cu_address *, size_t))                                      \
    CALL(cuMemFree_v2, memory_free, (cu_address))                                                  \
    CALL(cuMemHostAlloc, host_alloc, (void **, size_t, unsigned))                                  \
    CALL(cuMemFreeHost, host_free, (void *))                                                       \
    CALL(cuMemHostRegister_v2, host_register, (void *, size_t, unsigned))                          \
    CALL(cuMemHostUnregister, host_unregister, (void *))                                           \
    CALL(cuMemcpyHtoDAsync_v2, copy_to_device, (cu_address, const void *, size_t, cu_stream))      \
    CALL(cuMemcpyDtoDAsync_v2, copy_on_device, (cu_address, cu_address, size_t, cu_stream))        \
    CALL(cuStreamCreateWithPriority, stream_create, (cu_stream *, unsigned, int))                  \
    CALL(cuStreamDestroy_v2, stream_destroy, (cu_stream))                                          \
    CALL(cuStreamWaitEvent, stream_wait_event, (cu_stream, cu_event, unsigned))                    \
    CALL(cuStreamSynchronize, stream_synchronize, (cu_stream))                                     \
    CALL(cuStreamGetCtx, stream_context, (cu_stream, cu_context *))                                \
    CALL(cuStreamIsCapturing, stream_is_capturing, (cu_stream, int *))                             \
    CALL(cuCtxSynchronize, context_synchronize, (void))                                            \
    CALL(cuEventCreate, event_create, (cu_event *, unsigned))                                      \
    CALL(cuEventDestroy_v2, event_destroy, (cu_event))                                             \
    CALL(cuEventRecord, event_record, (cu_event, cu_stream))                                       \
    CALL(cuEventSynchronize, event_synchronize, (cu_event))                                        \
    CALL(cuEventElapsedTime, event_elapsed, (float *, cu_event, cu_event))                         \
    CALL(cuModuleLoadData, module_load, (cu_module *, const void *))                               \
    CALL(cuModuleUnload, module_unload, (cu_module))                                               \
    CALL(cuModuleGetFunction, module_function, (cu_function *, cu_module, const char *))           \
    CALL(cuLaunchKernel, launch,                                                                   \
         (cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
          cu_stream, void **, void **))                                                            \
    CALL(cuThreadExchangeStreamCaptureMode, exchange_capture_mode, (int *))                        \
    CALL(cuGetErrorName, error_name, (cu_result, const char **))                                   \
    CALL(cuGetErrorString, error_text, (cu_result, const char **))

#define DECLARE_CUDA_CALL(symbol, member, parameters) cu_result(*member) parameters;
struct cuda_driver {
    CUDA_CALLS(DECLARE_CUDA_CALL)
};
#undef DECLARE_CUDA_CALL

/* Load the driver, once for the process; it stays loaded. E_SYSTEM: there is none, or it is too
 * old, or a stub. */
tundish_status cuda_driver_open(const struct cuda_driver **ret_driver);

/* OK, or E_SYSTEM (E_MEMORY where the device has none left) with a sentence: "cannot WHAT: ...". */
tundish_status cuda_check(const struct cuda_driver *driver, cu_result result, const char *what);

#endif
