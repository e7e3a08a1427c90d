/* supply_no_device.c - for a build without libtundish_cuda. */
#include "supply.h"

tundish_status
supply_device(tundish_reader *reader, int device, const struct supply **ret_supply, void **ret_from,
              const char **ret_text)
{
    (void)reader;
    (void)device;
    (void)ret_supply;
    (void)ret_from;
    *ret_text = "this package was built without its part for GPUs: build it where nvcc or clang is "
                "installed, or read to the CPU's memory, without device=";
    return TUNDISH_E_SYSTEM;
}
