/* check_memory.c - is there room for the batches, and where will they lie? */
#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "core/memory_room.h"
#include "core/status.h"
#include "doctor/doctor.h"
#include "shm/segment.h"

#define SHM_FOLDER "/dev/shm"
#define HUGE_PAGES "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

static double
mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

void
doctor_check_memory(struct doctor *doctor)
{
    struct tnd_memory_room room;

    tnd_memory_room(&room);
    if (doctor->memory_bytes > room.bytes)
        doctor_say(doctor, DOCTOR_FAULT, "memory",
                   "lower deliver.slots or batch_size, or give the server more memory: batches "
                   "count against its control group, not against the trainers'",
                   "batches and shuffles need %.0f MiB, but there is room for %.0f (%s)",
                   mib(doctor->memory_bytes), mib(room.bytes), room.why);
    else if (doctor->table_bytes > room.bytes - doctor->memory_bytes)
        doctor_say(doctor, DOCTOR_WARNING, "memory",
                   "give the server more memory: vocabulary tables are read from the disk again "
                   "and again where they have no room",
                   "batches and shuffles need %.0f MiB and vocabulary tables %.0f, but there is "
                   "room for %.0f (%s)",
                   mib(doctor->memory_bytes), mib(doctor->table_bytes), mib(room.bytes), room.why);
    else if (doctor->memory_bytes + doctor->table_bytes > 0)
        doctor_say(doctor, DOCTOR_OK, "memory", NULL,
                   "room for %.0f MiB (%s); batches and shuffles need %.0f, vocabulary tables %.0f",
                   mib(room.bytes), room.why, mib(doctor->memory_bytes), mib(doctor->table_bytes));
    else
        doctor_say(doctor, DOCTOR_OK, "memory", NULL, "room for %.0f MiB (%s)", mib(room.bytes),
                   room.why);
}

void
doctor_check_shared_memory(struct doctor *doctor)
{
    struct tnd_segment segment = TND_SEGMENT_NONE;
    struct statvfs space;
    uint64_t left;

    if (tnd_segment_create(1, false, false, &segment) != TUNDISH_OK) {
        doctor_say(doctor, DOCTOR_FAULT, "shared memory",
                   "allow shm_open or memfd_create: look for a seccomp, SELinux or AppArmor rule",
                   "%s", tnd_error_text());
        return;
    }
    if (segment.is_memfd) {
        doctor_say(doctor, DOCTOR_WARNING, "shared memory",
                   "mount a tmpfs at " SHM_FOLDER ", or set deliver: {memory: memfd}",
                   "%s: batches lie in memory without a mount (memfd)", segment.note);
    } else if (statvfs(SHM_FOLDER, &space) != 0) {
        doctor_say(doctor, DOCTOR_WARNING, "shared memory", NULL, SHM_FOLDER ": %s",
                   strerror(errno));
    } else {
        left = space.f_blocks == 0 ? UINT64_MAX : (uint64_t)space.f_bavail * space.f_bsize;
        if (doctor->shm_bytes > left)
            doctor_say(doctor, DOCTOR_WARNING, "shared memory",
                       "make it larger (docker run --shm-size, a Kubernetes emptyDir with medium: "
                       "Memory, mount -o remount,size=), or set deliver: {memory: memfd}",
                       SHM_FOLDER " has %.0f MiB free, and batches need %.0f: those without room "
                                  "there lie in memory without a mount (memfd)",
                       mib(left), mib(doctor->shm_bytes));
        else
            doctor_say(doctor, DOCTOR_OK, "shared memory", NULL, SHM_FOLDER " has %.0f MiB free",
                       mib(left));
    }
    tnd_segment_close(&segment);
}

/* The mode of the mount at /dev/shm: `huge=`, or "never". */
static void
mode_of_mount(char *mode, size_t room)
{
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    const struct mntent *mount;

    snprintf(mode, room, "never");
    while (mounts != NULL && (mount = getmntent(mounts)) != NULL) {
        const char *huge = hasmntopt(mount, "huge");

        if (strcmp(mount->mnt_dir, SHM_FOLDER) != 0)
            continue;
        if (huge == NULL)
            snprintf(mode, room, "never");
        else
            snprintf(mode, room, "%.*s", (int)strcspn(huge + strlen("huge="), ","),
                     huge + strlen("huge="));
    }
    if (mounts != NULL)
        endmntent(mounts);
}

/* The mode for memory without a mount, as the kernel puts it: the chosen one in brackets. */
static void
mode_of_kernel(char *mode, size_t room)
{
    char modes[128] = "";
    const char *chosen;
    FILE *file = fopen(HUGE_PAGES, "re");

    if (file != NULL) {
        if (fgets(modes, sizeof modes, file) == NULL)
            modes[0] = '\0';
        fclose(file);
    }
    chosen = strchr(modes, '[');
    chosen = chosen != NULL ? chosen + 1 : "never";
    snprintf(mode, room, "%.*s", (int)strcspn(chosen, "]"), chosen);
}

static void
say_huge_pages(struct doctor *doctor, const char *mode, const char *memory, const char *advice)
{
    if (strcmp(mode, "never") == 0 || strcmp(mode, "deny") == 0)
        doctor_say(doctor, DOCTOR_WARNING, "huge pages", advice,
                   "deliver.huge_pages is asked for, and %s gives none (%s)", memory, mode);
    else
        doctor_say(doctor, DOCTOR_OK, "huge pages", NULL, "%s gives them to batches (%s)", memory,
                   mode);
}

void
doctor_check_huge_pages(struct doctor *doctor)
{
    char kernel[32], mount[32];

    mode_of_kernel(kernel, sizeof kernel);
    mode_of_mount(mount, sizeof mount);
    if (doctor->huge_pages_memfd)
        say_huge_pages(doctor, kernel, "memory without a mount (memfd)",
                       "echo advise > " HUGE_PAGES);
    /* These two overrule every mount. */
    if (doctor->huge_pages && strcmp(kernel, "deny") == 0)
        say_huge_pages(doctor, kernel, "the kernel", "echo advise > " HUGE_PAGES);
    else if (doctor->huge_pages)
        say_huge_pages(doctor, strcmp(kernel, "force") == 0 ? kernel : mount, SHM_FOLDER,
                       "mount -o remount,huge=advise " SHM_FOLDER);
}
