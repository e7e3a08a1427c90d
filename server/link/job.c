/* job.c - detects an MPI job by the variables of MPI and Slurm, and loads the module that uses MPI.
 */
#include "link/job.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/beside.h"
#include "core/plural.h"

static const char *const MODULE = "tundish-mpi.so";

static unsigned long
number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text != NULL ? strtoul(text, NULL, 10) : 0;
}

/* mpirun gives the number of ranks. With srun (PMI, PMIx) there may only be a sign that a job can
 * be joined. */
bool
job_is_of_mpi(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL)
        return number_of("OMPI_COMM_WORLD_SIZE") > 1;
    if (getenv("PMI_SIZE") != NULL)
        return number_of("PMI_SIZE") > 1;
    return getenv("PMIX_RANK") != NULL && getenv("PMIX_NAMESPACE") != NULL;
}

static void *
load_beside_program(void)
{
    char path[PATH_MAX];

    if (!tnd_beside_program(MODULE, path) || access(path, R_OK) != 0)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

/* Open MPI loads plugins that look up its symbols globally, hence RTLD_GLOBAL. */
tundish_status
job_load_mpi(void **ret_module, const struct channel_ops **ret_channel)
{
    void *module = load_beside_program();
    const struct channel_ops *channel;

    if (module == NULL)
        module = dlopen(TUNDISH_MODULE_FOLDER "/tundish-mpi.so", RTLD_NOW | RTLD_GLOBAL);
    if (module == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "this process is a rank of an MPI job, but there is no MPI in this build "
                        "(%s): install the package tundish-mpi, or libopenmpi-dev and build again, "
                        "or start it outside mpirun",
                        dlerror());
    channel = dlsym(module, "link_mpi");
    if (channel == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "%s has an unexpected value: %s", MODULE, dlerror());
    *ret_module = module;
    *ret_channel = channel;
    return TUNDISH_OK;
}

tundish_status
job_check_size(uint32_t expected, uint32_t size)
{
    unsigned long tasks = number_of("SLURM_NTASKS");

    if (expected != 0 && expected != size)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "--expect-nodes %u, but the job has %u node%s: start it through mpirun or "
                        "srun with one rank per node",
                        expected, size, TND_PLURAL(size));
    if (expected == 0 && tasks != 0 && tasks != size)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "Slurm started %lu tasks (SLURM_NTASKS), but the job has %u node%s: use "
                        "one task per node and an MPI that supports Slurm (srun --mpi=list), or "
                        "--expect-nodes %u if this is intended",
                        tasks, size, TND_PLURAL(size), size);
    return TUNDISH_OK;
}
