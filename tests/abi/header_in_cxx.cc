/* header_in_cxx.cc - the public header is C++ as well. Compiled as C++11, without any warning. */
#include <tundish/tundish.h>

int
main()
{
    tundish_options options = tundish_options();
    tundish_reader *reader = nullptr;
    const tundish_batch *batch = nullptr;
    const tundish_tensor *tensor = nullptr;
    tundish_spec spec = tundish_spec();

    options.size = sizeof options;
    options.replica = -1;
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
