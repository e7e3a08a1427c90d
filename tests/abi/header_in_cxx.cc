/* header_in_cxx.cc - the public headers are C++ as well. Compiled as C++11 and C++20, without any
 * warning. */
#include <tundish/tundish.h>
#include <tundish/tundish_cuda.h>
#include <tundish/tundish_transform.h>

int
main()
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_cuda_options device = TUNDISH_CUDA_OPTIONS_INIT;
    tundish_transform_options transform = TUNDISH_TRANSFORM_OPTIONS_INIT;
    tundish_reader *reader = nullptr;
    const tundish_batch *batch = nullptr;
    const tundish_tensor *tensor = nullptr;
    tundish_spec spec = tundish_spec();

    if (options.size != sizeof options || options.replica != -1 || options.stream != nullptr ||
        device.size != sizeof device || device.depth != 0 || transform.size != sizeof transform ||
        transform.root != nullptr)
        return 3;
    options.server = "/nonexistent/tundish";
    options.server_timeout_ns = 1;
    if (tundish_open(&options, &reader) != TUNDISH_E_SERVER_GONE)
        return 1;
    if (tundish_next(reader, TUNDISH_FOREVER, &batch) != TUNDISH_E_ARGUMENT ||
        tundish_tensor_at(batch, 0, &tensor) != TUNDISH_E_ARGUMENT ||
        tundish_column_spec_at(&spec, 0) != nullptr)
        return 2;
    tundish_release(reader, batch);
    tundish_close(reader);
    return 0;
}
