/* check_gpu.c - what trainers with device="cuda" will find.
 *
 * The driver is asked in a child: one that hangs or crashes shall not take the doctor with it.
 */
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/doctor.h"

#include "core/read_write.h"

enum { PATIENCE_MS = 5000, DRIVER_OLDEST = 11000 };
enum answer_kind { ANSWER_NO_LIBRARY, ANSWER_NO_CALLS, ANSWER_FAILED, ANSWER_WORKS };

struct answer {
    enum answer_kind kind;
    int code, version, devices;
};

typedef int call_init(unsigned flags);
typedef int call_number(int *ret_number);

static void
ask_driver(struct answer *answer)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    call_init *init;
    call_number *version, *count;

    if (library == NULL)
        return;
    answer->kind = ANSWER_NO_CALLS;
    *(void **)&init = dlsym(library, "cuInit");
    *(void **)&version = dlsym(library, "cuDriverGetVersion");
    *(void **)&count = dlsym(library, "cuDeviceGetCount");
    if (init == NULL || version == NULL || count == NULL)
        return;
    answer->kind = ANSWER_FAILED;
    answer->code = init(0);
    if (answer->code == 0)
        answer->code = version(&answer->version);
    if (answer->code == 0)
        answer->code = count(&answer->devices);
    if (answer->code == 0)
        answer->kind = ANSWER_WORKS;
}

/* False: it hung or crashed. */
static bool
ask_in_child(struct answer *ret_answer)
{
    struct pollfd readable = { .events = POLLIN };
    int ends[2];
    size_t bytes = 0;
    pid_t child;

    if (pipe2(ends, 0) != 0)
        return false;
    child = fork();
    if (child == 0) {
        struct answer answer = { 0 };

        ask_driver(&answer);
        _exit(tnd_write(ends[1], &answer, sizeof answer) == 0 ? 0 : 1);
    }
    close(ends[1]);
    readable.fd = ends[0];
    if (child > 0 && poll(&readable, 1, PATIENCE_MS) == 1)
        (void)tnd_read(ends[0], ret_answer, sizeof *ret_answer, &bytes);
    close(ends[0]);
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return bytes == sizeof *ret_answer;
}

static bool
has_device_file(void)
{
    return access("/dev/nvidiactl", F_OK) == 0;
}

void
doctor_check_gpu(struct doctor *doctor)
{
    struct answer answer;

    if (!ask_in_child(&answer))
        doctor_say(doctor, DOCTOR_WARNING, "GPU",
                   "look at dmesg for the driver's messages; until it answers, leave out device=",
                   "the driver (libcuda.so.1) does not answer");
    else if (answer.kind == ANSWER_NO_LIBRARY && has_device_file())
        doctor_say(doctor, DOCTOR_WARNING, "GPU",
                   "install the driver's library, or start the container with the GPUs (docker run "
                   "--gpus all)",
                   "there is a GPU (/dev/nvidiactl), and no libcuda.so.1 to use it by");
    else if (answer.kind == ANSWER_NO_LIBRARY)
        doctor_say(doctor, DOCTOR_OK, "GPU", NULL, "none; batches are for the CPU's memory");
    else if (answer.kind == ANSWER_NO_CALLS)
        doctor_say(doctor, DOCTOR_WARNING, "GPU", "take the toolkit's stubs out of LD_LIBRARY_PATH",
                   "libcuda.so.1 is not a driver");
    else if (answer.kind == ANSWER_FAILED)
        doctor_say(doctor, DOCTOR_WARNING, "GPU",
                   "run nvidia-smi; trainers with device=\"cuda\" are refused until it works",
                   "the driver refuses to start with error %d", answer.code);
    else if (answer.version < DRIVER_OLDEST)
        doctor_say(doctor, DOCTOR_WARNING, "GPU", "install a newer driver",
                   "the driver is of CUDA %d.%d, which is too old for libtundish_cuda",
                   answer.version / 1000, answer.version % 1000 / 10);
    else
        doctor_say(doctor, answer.devices > 0 ? DOCTOR_OK : DOCTOR_NOTE, "GPU", NULL,
                   "%d, with a driver of CUDA %d.%d", answer.devices, answer.version / 1000,
                   answer.version % 1000 / 10);
}
