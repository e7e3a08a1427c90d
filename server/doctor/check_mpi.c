/* check_mpi.c - can servers of several nodes find each other? */
#include "core/status.h"
#include "doctor/doctor.h"
#include "link/job.h"

void
doctor_check_mpi(struct doctor *doctor)
{
    const struct channel_ops *channel;
    void *module;

    /* The module stays loaded, as in a server. MPI itself is not started. */
    if (job_load_mpi(&module, &channel) == TUNDISH_OK)
        doctor_say(doctor, DOCTOR_OK, "MPI", NULL, "%s",
                   job_is_of_mpi() ? "this is a rank of a job" : "can be loaded");
    else if (job_is_of_mpi())
        doctor_say(doctor, DOCTOR_FAULT, "MPI", NULL, "%s", tnd_error_text());
    else
        doctor_say(doctor, DOCTOR_NOTE, "MPI", NULL,
                   "it cannot be loaded, so this server is for one node");
}
