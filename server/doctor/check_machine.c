/* check_machine.c - processors, limits, the clock, and the kernel's calls. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "core/cpu_room.h"
#include "core/numa.h"
#include "doctor/doctor.h"

/* A trainer takes a few descriptors, a file that is read one. */
enum { FILES_ENOUGH = 1024 };
/* MPI's fast networks and a GPU's driver lock what they transfer. Without them none is locked. */
#define LOCKED_ENOUGH (UINT64_C(8) << 20)
#define BUILT_AFTER INT64_C(1735689600) /* 2025-01-01: a clock before that is not set */

void
doctor_check_processors(struct doctor *doctor)
{
    struct tnd_cpu_room room;

    tnd_cpu_room(&room);
    if (room.count < room.online)
        doctor_say(doctor, DOCTOR_NOTE, "processors", NULL,
                   "%" PRIu32 " of the %" PRIu32 " online can be used (%s); a server takes as "
                   "many threads, unless --threads says otherwise",
                   room.count, room.online, room.why);
    else
        doctor_say(doctor, DOCTOR_OK, "processors", NULL, "%" PRIu32 ", all can be used",
                   room.count);
}

void
doctor_check_memory_nodes(struct doctor *doctor)
{
    struct tnd_numa numa;
    char text[TND_NUMA_TEXT_BYTES];

    tnd_numa_read(TND_NUMA_FOLDER, &numa);
    tnd_numa_text(&numa, text);
    if (numa.count < 2)
        doctor_say(doctor, DOCTOR_OK, "memory nodes", NULL, "all processors share one");
    else
        doctor_say(doctor, DOCTOR_NOTE, "memory nodes", NULL,
                   "%s; a lane lies on the node to which its trainer is bound (numactl, taskset, a "
                   "batch system), and serve --pin binds a server's threads",
                   text);
}

void
doctor_check_limits(struct doctor *doctor)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < FILES_ENOUGH)
        doctor_say(doctor, DOCTOR_WARNING, "open files",
                   "raise it: ulimit -n 65536, or LimitNOFILE=65536 in a unit",
                   "a process may open %llu files at once, which many files or trainers exceed",
                   (unsigned long long)limit.rlim_cur);
    else
        doctor_say(doctor, DOCTOR_OK, "open files", NULL, "a process may open %llu at once",
                   (unsigned long long)limit.rlim_cur);
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY)
        doctor_say(doctor, DOCTOR_OK, "locked memory", NULL, "no limit");
    else if (limit.rlim_cur < LOCKED_ENOUGH)
        doctor_say(doctor, DOCTOR_WARNING, "locked memory",
                   "raise it: ulimit -l unlimited, or LimitMEMLOCK=infinity in a unit",
                   "a process may lock %llu KiB: too little for MPI over InfiniBand or RoCE, and "
                   "for copies to a GPU from pinned memory",
                   (unsigned long long)limit.rlim_cur / 1024);
    else
        doctor_say(doctor, DOCTOR_OK, "locked memory", NULL, "a process may lock %llu KiB",
                   (unsigned long long)limit.rlim_cur / 1024);
}

void
doctor_check_clock(struct doctor *doctor)
{
    struct timex about = { 0 };
    int state = adjtimex(&about);

    if (time(NULL) < BUILT_AFTER)
        doctor_say(doctor, DOCTOR_WARNING, "clock",
                   "set it (timedatectl set-ntp true): object stores refuse requests of another "
                   "time, and logs of several nodes cannot be compared",
                   "it is wrong: it shows a time before this program was written");
    else if (state == TIME_ERROR || (about.status & STA_UNSYNC) != 0)
        doctor_say(doctor, DOCTOR_NOTE, "clock", NULL,
                   "nothing keeps it at the right time, as far as the kernel knows (NTP); order "
                   "and content of batches do not depend on it");
    else
        doctor_say(doctor, DOCTOR_OK, "clock", NULL, "kept by NTP");
}

/* Says so if a call that gives a descriptor has just been refused. */
static bool
is_allowed(struct doctor *doctor, const char *name, int descriptor)
{
    if (descriptor >= 0) {
        close(descriptor);
        return true;
    }
    doctor_say(doctor, DOCTOR_FAULT, "system calls",
               "allow it in the container's or unit's filter (seccomp, SystemCallFilter=); the "
               "kernel must be 5.4 or newer",
               "%s is refused: %s", name, strerror(errno));
    return false;
}

/* Calls that a filter (seccomp) may forbid. Their loss shows only when something dies or waits. */
void
doctor_check_calls(struct doctor *doctor)
{
    bool all = is_allowed(doctor, "pidfd_open", (int)syscall(SYS_pidfd_open, getpid(), 0));

    all &= is_allowed(doctor, "epoll_create1", epoll_create1(EPOLL_CLOEXEC));
    all &= is_allowed(doctor, "eventfd", eventfd(0, EFD_CLOEXEC));
    all &= is_allowed(doctor, "timerfd_create", timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    if (all)
        doctor_say(doctor, DOCTOR_OK, "system calls", NULL, "a server's are allowed");
}
