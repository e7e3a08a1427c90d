/* kernels.cu - the kernel: threads of blocks, of which each column has as many as its values need.
 */
#include "cuda/expand.h"

#ifdef __CUDACC__
#define THREAD threadIdx.x
#define BLOCK blockIdx.x
#else /* clang, without the toolkit's headers */
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#define BLOCK __nvvm_read_ptx_sreg_ctaid_x()
#endif

/* Five blocks at a time on a multiprocessor: reads of memory need as many that wait for them. */
extern "C" __attribute__((global)) __attribute__((launch_bounds(EXPAND_THREADS, 5))) void
tundish_expand(const struct expansion *jobs, uint32_t job_count)
{
    expand_group(jobs, job_count, (uint64_t)BLOCK, (unsigned)THREAD);
}
