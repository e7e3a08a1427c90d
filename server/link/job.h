/* job.h - the job that this process is part of, as the environment describes it. */
#ifndef LINK_JOB_H
#define LINK_JOB_H

#include "core/status.h"
#include "link/node_channel.h"

/* Was this process started as a rank of an MPI job of several? Looks at variables only. */
bool job_is_of_mpi(void);

/* The channel of the module, which is loaded now. E_ARGUMENT: this build has none. */
tundish_status job_load_mpi(void **ret_module, const struct channel_ops **ret_channel);

/* E_ARGUMENT if the job is not as large as it should be: `expected` nodes or, if that is 0, as many
 * as Slurm started tasks. */
tundish_status job_check_size(uint32_t expected, uint32_t size);

#endif
