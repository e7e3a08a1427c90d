/* processors.c - whether the process gets the processors it needs: numbers of the kernel's
 * scheduler. */
#include "stats/processors.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/cgroups.h"
#include "core/clock.h"
#include "core/memory.h"
#include "core/read_write.h"

enum { CGROUPS = 16, PROCESSES = 4096 };

/* Look for rivals only if threads waited for a processor for at least this share of the time. */
static const double SHORT_SHARE = 0.2;

/* And at most this often, because it reads a file for each process: in this share of the time. */
static const int64_t RIVALS_NS = 1000000000, RIVALS_SHARE = 1000;

struct process {
    int64_t pid;
    uint64_t ns;
    char command[16];
};

struct processors {
    struct processors_use use;
    uint64_t delay_before_ns; /* sum over the threads at the last look */
    int64_t looked_ns;
    char *cgroups[CGROUPS];       /* paths of cpu.stat */
    uint64_t throttled_before_ns; /* when this process began */
    uint32_t cgroup_count;
    struct process *processes; /* at the last look, sorted by pid; NULL: there was none */
    uint32_t process_count;
    int64_t processes_ns, pause_ns; /* when that was, and how long there is none then */
};

/* The beginning of a small file, without the room and the calls that a FILE takes. */
static bool
read_text(const char *path, char *text, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t bytes = 0;

    if (file < 0)
        return false;
    (void)tnd_read_at(file, text, room - 1, 0, &bytes);
    close(file);
    text[bytes] = '\0';
    return bytes > 0;
}

/* The number of the line "KEY NUMBER" in a small file; 0 if there is no such line. */
static uint64_t
number_of(const char *path, const char *key)
{
    char name[64];
    uint64_t number, found = 0;
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return 0;
    while (fscanf(file, "%63s %" SCNu64, name, &number) == 2)
        if (strcmp(name, key) == 0)
            found = number;
    fclose(file);
    return found;
}

/* Note a cgroup's cpu.stat. The process is in several nested ones, and the quota of each can stop
 * it. */
static void
add_cgroup(void *context, const char *folder)
{
    struct processors *processors = context;
    char *path = tnd_sprintf("%s/cpu.stat", folder);

    if (processors->cgroup_count < CGROUPS && access(path, R_OK) == 0)
        processors->cgroups[processors->cgroup_count++] = path;
    else
        free(path);
}

static uint64_t
throttled_longest_ns(const struct processors *processors)
{
    uint64_t longest_ns = 0;

    for (uint32_t i = 0; i < processors->cgroup_count; i++) {
        uint64_t throttled_ns = number_of(processors->cgroups[i], "throttled_usec") * 1000;

        /* cgroup v2 counts microseconds, v1 nanoseconds under another key. */
        if (throttled_ns == 0)
            throttled_ns = number_of(processors->cgroups[i], "throttled_time");
        longest_ns = throttled_ns > longest_ns ? throttled_ns : longest_ns;
    }
    return longest_ns;
}

struct processors *
processors_open(void)
{
    struct processors *processors = tnd_zalloc(1, sizeof *processors);

    tnd_cgroups_visit("cpu", add_cgroup, processors);
    processors->throttled_before_ns = throttled_longest_ns(processors);
    return processors;
}

void
processors_close(struct processors *processors)
{
    if (processors == NULL)
        return;
    for (uint32_t i = 0; i < processors->cgroup_count; i++)
        free(processors->cgroups[i]);
    free(processors->processes);
    free(processors);
}

/* Nanoseconds that a thread was ready to run and had no processor: the second number of its
 * schedstat. */
static uint64_t
delay_of_thread(const char *tid)
{
    char path[64], text[128];
    uint64_t delay_ns = 0;

    snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", tid);
    if (!read_text(path, text, sizeof text) || sscanf(text, "%*u %" SCNu64, &delay_ns) != 1)
        return 0;
    return delay_ns;
}

static void
observe_threads(struct processors *processors)
{
    DIR *folder = opendir("/proc/self/task");
    uint64_t delay_ns = 0;

    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.')
            delay_ns += delay_of_thread(entry->d_name);
    closedir(folder);
    /* A thread that ends takes its count with it, so the sum may fall. */
    if (delay_ns > processors->delay_before_ns)
        processors->use.run_delay_ns += delay_ns - processors->delay_before_ns;
    processors->delay_before_ns = delay_ns;
}

static void
look_at_cgroups(struct processors *processors)
{
    uint64_t throttled_ns = throttled_longest_ns(processors);

    if (throttled_ns > processors->throttled_before_ns + processors->use.throttled_ns)
        processors->use.throttled_ns = throttled_ns - processors->throttled_before_ns;
}

/* Processor time of a process, user and kernel: fields 14 and 15 of its stat. Fields are counted
 * from the last ')', because the name before it may hold spaces and parentheses. */
static bool
read_process(const char *pid, struct process *ret_process)
{
    char path[64], text[1024];
    const char *after, *name;
    uint64_t user, kernel;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    if (!read_text(path, text, sizeof text))
        return false;
    name = strchr(text, '(');
    after = strrchr(text, ')');
    if (name == NULL || after == NULL ||
        sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
               &user, &kernel) != 2)
        return false;
    *ret_process = (struct process){
        .pid = strtoll(pid, NULL, 10),
        .ns = (user + kernel) * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK)),
    };
    snprintf(ret_process->command, sizeof ret_process->command, "%.*s", (int)(after - name - 1),
             name + 1);
    return true;
}

static int
by_pid(const void *a, const void *b)
{
    const struct process *one = a, *other = b;

    return (one->pid > other->pid) - (one->pid < other->pid);
}

static uint32_t
read_processes(struct process *processes)
{
    DIR *folder = opendir("/proc");
    uint32_t count = 0;

    if (folder == NULL)
        return 0;
    for (struct dirent *entry; count < PROCESSES && (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            read_process(entry->d_name, &processes[count]) && processes[count].pid != getpid())
            count++;
    closedir(folder);
    qsort(processes, count, sizeof *processes, by_pid);
    return count;
}

/* The process that used most processor time since the last look; a new one has no figure to compare
 * with. */
static void
find_rival(struct processors *processors, const struct process *now, uint32_t count,
           double passed_ns)
{
    const struct process *most = NULL;
    uint64_t most_ns = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct process *before = bsearch(&now[i], processors->processes,
                                               processors->process_count, sizeof now[i], by_pid);

        if (before != NULL && now[i].ns > before->ns && now[i].ns - before->ns > most_ns) {
            most_ns = now[i].ns - before->ns;
            most = &now[i];
        }
    }
    if (most == NULL)
        return;
    processors->use.rival = most->pid;
    processors->use.rival_ns = (uint64_t)((double)most_ns / passed_ns * 1e9);
    memcpy(processors->use.rival_command, most->command, sizeof most->command);
}

static int64_t
thread_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

int64_t
processors_pause_ns(int64_t cost_ns)
{
    return cost_ns > RIVALS_NS / RIVALS_SHARE ? cost_ns * RIVALS_SHARE : RIVALS_NS;
}

static void
look_at_processes(struct processors *processors, int64_t now_ns)
{
    int64_t passed_ns = now_ns - processors->processes_ns, began_ns = thread_ns();
    struct process *now;
    uint32_t count;

    if (processors->processes_ns > 0 && passed_ns < processors->pause_ns)
        return;
    now = tnd_alloc(PROCESSES * sizeof *now);
    count = read_processes(now);
    processors->processes_ns = now_ns;
    if (processors->processes != NULL)
        find_rival(processors, now, count, (double)passed_ns);
    free(processors->processes);
    processors->processes = now;
    processors->process_count = count;
    processors->pause_ns = processors_pause_ns(thread_ns() - began_ns);
}

void
processors_look(struct processors *processors, struct processors_use *ret_use)
{
    struct processors_use before = processors->use;
    int64_t now_ns = tnd_clock_ns();
    double passed_ns = (double)(now_ns - processors->looked_ns), lacked_ns;

    observe_threads(processors);
    look_at_cgroups(processors);
    lacked_ns = (double)(processors->use.run_delay_ns - before.run_delay_ns) +
                (double)(processors->use.throttled_ns - before.throttled_ns);
    if (processors->looked_ns > 0 && lacked_ns > SHORT_SHARE * passed_ns) {
        look_at_processes(processors, now_ns);
    } else {
        /* The next shortage begins with a look of its own. */
        processors->use.rival = 0;
        free(processors->processes);
        processors->processes = NULL;
    }
    processors->looked_ns = now_ns;
    *ret_use = processors->use;
}
