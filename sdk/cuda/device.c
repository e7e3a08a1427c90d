/* device.c - opening a device, and the constants that stay on it. */
#include "cuda/device.h"

#include <math.h>
#include <stdlib.h>

#include "core/status.h"
#include "cuda/image.h"

tundish_status
device_enter(const struct device *device)
{
    return cuda_check(device->driver, device->driver->context_push(device->context),
                      "use the device's context");
}

void
device_leave(const struct device *device)
{
    cu_context left;

    device->driver->context_pop(&left);
}

bool
device_is_capturing(const struct device *device, cu_stream stream)
{
    int capture = 0;
    cu_result result = device->driver->stream_is_capturing(stream, &capture);

    return result == CU_CAPTURE_IMPLICIT || (result == CU_SUCCESS && capture != 0);
}

/* The first image that this driver takes: code for its architectures, else the text that it
 * compiles itself. */
static tundish_status
load_kernel(struct device *device)
{
    const struct cuda_driver *driver = device->driver;
    cu_result result = CU_INVALID_HANDLE;

    for (unsigned i = 0; result != CU_SUCCESS && i < cuda_image_count; i++)
        result = driver->module_load(&device->module, cuda_images[i]);
    if (result == CU_SUCCESS)
        result = driver->module_function(&device->expand, device->module, "tundish_expand");
    return cuda_check(driver, result, "load the kernel");
}

/* Scale and offset may be lists of one and of many; the kernel knows one length. */
static uint32_t
period_of(const tundish_column_spec *spec)
{
    return spec->widen_scale_count > spec->widen_offset_count ? spec->widen_scale_count
                                                              : spec->widen_offset_count;
}

/* All factors, then all addends, each list as long as the longer one. */
static void
write_numbers(const tundish_column_spec *spec, uint8_t *to)
{
    uint32_t period = period_of(spec);

    for (uint32_t i = 0; i < period; i++) {
        double scale = spec->widen_scale[i % spec->widen_scale_count];
        double offset = spec->widen_offset[i % spec->widen_offset_count];

        if (spec->widen_dtype == TUNDISH_FLOAT64) {
            ((double *)(void *)to)[i] = scale;
            ((double *)(void *)to)[period + i] = offset;
        } else {
            ((float *)(void *)to)[i] = (float)scale;
            ((float *)(void *)to)[period + i] = (float)offset;
        }
    }
}

static bool
are_finite(const double *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!isfinite((float)numbers[i]))
            return false;
    return true;
}

/* Offsets of each column's numbers in one piece; returns its bytes. */
static uint64_t
lay_out_numbers(const tundish_spec *spec, struct pack_numbers *numbers)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < spec->column_count; i++) {
        const tundish_column_spec *column = tundish_column_spec_at(spec, i);

        if (column->widen_dtype == 0)
            continue;
        numbers[i] = (struct pack_numbers){
            .address = bytes,
            .period = period_of(column),
            .are_finite = are_finite(column->widen_scale, column->widen_scale_count) &&
                          are_finite(column->widen_offset, column->widen_offset_count),
        };
        bytes +=
            (2 * sizeof(double) * numbers[i].period + PACK_ALIGN - 1) / PACK_ALIGN * PACK_ALIGN;
    }
    return bytes;
}

static tundish_status
copy_constants(struct device *device, const tundish_spec *spec, uint8_t *piece, uint64_t bytes)
{
    const struct cuda_driver *driver = device->driver;
    cu_result result;

    for (uint32_t i = 0; i < spec->column_count; i++)
        if (device->numbers[i].period != 0)
            write_numbers(tundish_column_spec_at(spec, i), piece + device->numbers[i].address);
    result = driver->memory_alloc(&device->constants, bytes);
    if (result == CU_SUCCESS)
        result = driver->copy_to_device(device->constants, piece, bytes, device->stream);
    if (result == CU_SUCCESS)
        result = driver->stream_synchronize(device->stream);
    if (result != CU_SUCCESS)
        driver
            ->context_synchronize(); /* the copy may be under way, and the caller frees the piece */
    for (uint32_t i = 0; i < spec->column_count; i++)
        device->numbers[i].address += device->constants;
    return cuda_check(driver, result, "copy the constants of deliver.widen");
}

/* They are the same for every batch, so they are copied once. */
static tundish_status
make_constants(struct device *device, const tundish_spec *spec)
{
    uint64_t bytes;
    uint8_t *piece;
    tundish_status status;

    device->numbers = calloc(spec->column_count + 1, sizeof *device->numbers);
    if (device->numbers == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for the constants of deliver.widen");
    bytes = lay_out_numbers(spec, device->numbers);
    if (bytes == 0)
        return TUNDISH_OK;
    piece = calloc(1, bytes);
    if (piece == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for the constants of deliver.widen");
    status = copy_constants(device, spec, piece, bytes);
    free(piece);
    return status;
}

/* The primary context, since its memory and streams are also those of the CUDA runtime, and so of
 * PyTorch's and JAX's. */
static tundish_status
open_context(struct device *device, int32_t number)
{
    const struct cuda_driver *driver = device->driver;
    int count = 0;
    tundish_status status = cuda_check(driver, driver->device_count(&count), "count the devices");

    if (status == TUNDISH_OK && (number < 0 || number >= count))
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "there is no device %d: the driver has %d (CUDA_VISIBLE_DEVICES may hide "
                        "some)",
                        number, count);
    if (status == TUNDISH_OK)
        status = cuda_check(driver, driver->device_get(&device->number, number), "find the device");
    if (status == TUNDISH_OK)
        status = cuda_check(driver, driver->context_retain(&device->context, device->number),
                            "make the device's context");
    return status;
}

tundish_status
device_open(const tundish_cuda_options *options, const tundish_spec *spec,
            struct device *ret_device)
{
    struct device *device = ret_device;
    tundish_status status = cuda_driver_open(&device->driver);

    if (status == TUNDISH_OK)
        status = open_context(device, options->device);
    if (status == TUNDISH_OK)
        status = device_enter(device);
    if (status != TUNDISH_OK)
        return status;
    status = cuda_check(device->driver,
                        device->driver->stream_create(&device->stream, CU_STREAM_NON_BLOCKING,
                                                      options->stream_priority),
                        "make a stream");
    if (status == TUNDISH_OK)
        status = load_kernel(device);
    if (status == TUNDISH_OK)
        status = make_constants(device, spec);
    device_leave(device);
    return status;
}

void
device_close(struct device *device)
{
    const struct cuda_driver *driver = device->driver;

    if (device->context != NULL) {
        bool is_entered = device_enter(device) == TUNDISH_OK;

        if (device->constants != 0)
            driver->memory_free(device->constants);
        if (device->module != NULL)
            driver->module_unload(device->module);
        if (device->stream != NULL)
            driver->stream_destroy(device->stream);
        if (is_entered)
            device_leave(device);
        driver->context_release(device->number);
    }
    free(device->numbers);
    *device = (struct device){ 0 };
}
