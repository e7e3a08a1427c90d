/* kernels.cu - the kernel: a thread for every EXPAND_GROUP values of a batch's packed columns. */
#include "cuda/expand.h"

#ifdef __CUDACC__
#define THREAD threadIdx.x
#define BLOCK blockIdx.x
#else /* clang, without the toolkit's headers */
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#define BLOCK __nvvm_read_ptx_sreg_ctaid_x()
#endif

extern "C" __attribute__((global)) void
tundish_expand(const struct expansion *jobs, uint32_t job_count)
{
    expand_group(jobs, job_count, (uint64_t)BLOCK, (unsigned)THREAD);
}
