/* fake_cuda.h - what a test may ask of the stand-in for libcuda.so.1, beside the driver's own
 * calls.
 *
 * Device memory is host memory that is filled with noise. Every stream is a thread that does what
 * it is told in order, but late, by a random time: whoever forgets to wait reads noise or
 * yesterday's batch. Environment: FAKE_CUDA_SEED (of the delays), FAKE_CUDA_FAIL=SYMBOL:N (the Nth
 * call of SYMBOL, or of any call for "any", fails; "any:N:lost" makes all later ones fail too, as
 * after a lost device), FAKE_CUDA_INIT=N (what cuInit returns), FAKE_CUDA_VERSION=N,
 * FAKE_CUDA_REGISTER=N (enum fake_cuda_register). "SYMBOL:N:memory" fails as if the device had no
 * memory left.
 *
 * A stream that is captured does nothing, and its graph is empty. The capture breaks, which its end
 * tells, where a driver's does: by a wait across its border, by waiting for the stream, for an
 * event in it or for the whole device, by use of the default stream if the captured one waits for
 * that, and, in global mode, by a call that may take long of any thread that is not in relaxed
 * mode.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "cuda/driver.h"

/* Allocations, streams, events, modules and retained contexts that are not given back. */
#define FAKE_CUDA_ALIVE "fake_cuda_alive"
typedef int fake_cuda_alive_call(void);

/* All calls so far. */
#define FAKE_CUDA_CALLS "fake_cuda_calls"
typedef int fake_cuda_calls_call(void);

/* Fail the Nth call of this symbol from now on ("any": of all); 0: none. */
#define FAKE_CUDA_FAIL_AT "fake_cuda_fail_at"
typedef void fake_cuda_fail_at_call(const char *symbol, int n, int is_lost);

/* The longest delay before a stream does what comes next; 0: as at first. */
#define FAKE_CUDA_LATE "fake_cuda_late"
typedef void fake_cuda_late_call(unsigned latest_us);

/* What becomes of registrations of host memory, from now on. Like a driver's, memory that may not
 * be written to needs a flag, which not every device knows. */
enum fake_cuda_register {
    FAKE_CUDA_NEEDS_WRITING, /* as at first: the device does not know read-only memory */
    FAKE_CUDA_READS_ONLY,
    FAKE_CUDA_REFUSES,
    FAKE_CUDA_HANGS /* until this is called again */
};
#define FAKE_CUDA_REGISTER "fake_cuda_register"
typedef void fake_cuda_register_call(enum fake_cuda_register what);

/* Bytes of host memory that are registered now, and that were copied out of it so far. */
#define FAKE_CUDA_REGISTERED "fake_cuda_registered"
typedef void fake_cuda_registered_call(size_t *ret_bytes, size_t *ret_copied);

/* How many waits for events a stream was given (or records of events). */
#define FAKE_CUDA_USES "fake_cuda_uses"
typedef int fake_cuda_uses_call(cu_stream stream, int of_waits);

/* A stream of another context. */
#define FAKE_CUDA_STRANGER "fake_cuda_stranger"
typedef cu_stream fake_cuda_stranger_call(void);

#endif
