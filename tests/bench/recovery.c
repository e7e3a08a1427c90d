/* recovery.c - how soon a killed trainer is known, and followed.
 *
 *     recovery TUNDISH [--kills N] [--seed N] [--megabytes N]
 *
 * Two replicas read a stream. One is killed (SIGKILL) at a random moment, N times; a process that
 * has been started before takes its place as soon as the other replica has heard of the death
 * (E_PEER_LOST). From each kill on it is timed until then, until the successor is let in, and until
 * it has its first batch, which must be the one whose turn it was. With --megabytes each trainer
 * has touched so much memory of its own, which the kernel takes back before it closes the dead
 * one's socket; the time until the dead one is reaped shows how long that takes. Prints median,
 * 99th percentile and maximum, in milliseconds.
 */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tundish/tundish.h"

enum { KILLS_DEFAULT = 100, PAUSE_US_MAX = 20000 };

static const char pipeline[] = "streams:\n"
                               "  train:\n"
                               "    dataset:\n"
                               "      - range: 100000000\n"
                               "      - batch: 64\n"
                               "    distribute: {replicas: 2}\n"
                               "    deliver: {slots: 4, rejoin: 60s}\n";

static _Noreturn void
give_up(const char *what)
{
    fprintf(stderr, "recovery: %s: %s\n", what, tundish_last_error());
    _exit(1);
}

static double
now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void
pause_us(long us)
{
    nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

static tundish_reader *
open_replica(int32_t replica)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader;

    options.replica = replica;
    if (tundish_open(&options, &reader) != TUNDISH_OK)
        give_up("open");
    return reader;
}

static void
say(const void *bytes, size_t byte_count)
{
    if (write(STDOUT_FILENO, bytes, byte_count) != (ssize_t)byte_count)
        _exit(1);
}

static void
touch(size_t megabytes)
{
    volatile char *bytes = malloc(megabytes << 20);

    for (size_t i = 0; bytes != NULL && i < megabytes << 20; i += 4096)
        bytes[i] = 1;
}

/* Says 'r' when it is there, waits for a word, says 'o' when it has been let in and then the step
 * of its first batch; after that the step of each batch that it is about to give back. */
static void
train(size_t megabytes)
{
    tundish_reader *reader;
    char word;

    touch(megabytes);
    say("r", 1);
    if (read(STDIN_FILENO, &word, 1) != 1)
        _exit(1);
    reader = open_replica(1);
    say("o", 1);
    for (;;) {
        const tundish_batch *batch;

        if (tundish_next(reader, TUNDISH_FOREVER, &batch) != TUNDISH_OK)
            give_up("a trainer's batch");
        say(&batch->step, sizeof batch->step);
        tundish_release(reader, batch);
        pause_us(500);
    }
}

static sem_t told;
static double told_ms;

static void *
read_beside(void *argument)
{
    tundish_reader *reader = open_replica(0);

    (void)argument;
    for (;;) {
        const tundish_batch *batch;
        tundish_status status = tundish_next(reader, TUNDISH_FOREVER, &batch);

        if (status == TUNDISH_OK) {
            tundish_release(reader, batch);
            continue;
        }
        if (status == TUNDISH_E_SERVER_GONE)
            return NULL; /* that was all */
        if (status != TUNDISH_E_PEER_LOST)
            give_up("the other replica's batch");
        told_ms = now_ms();
        sem_post(&told);
    }
}

struct trainer {
    pid_t pid;
    int in, out;
};

static struct trainer
start_trainer(const char *megabytes)
{
    struct trainer trainer;
    int in[2], out[2];

    if (pipe(in) != 0 || pipe(out) != 0)
        give_up("pipe");
    trainer = (struct trainer){ .pid = fork(), .in = in[1], .out = out[0] };
    if (trainer.pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        for (int i = STDERR_FILENO + 1; i < 64; i++)
            close(i);
        execl("/proc/self/exe", "recovery", "--trainer", "--megabytes", megabytes, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    return trainer;
}

static void
hear(const struct trainer *trainer, void *bytes, size_t byte_count)
{
    for (size_t have = 0; have < byte_count;) {
        ssize_t more = read(trainer->out, (char *)bytes + have, byte_count - have);

        if (more <= 0)
            give_up("a trainer ended");
        have += (size_t)more;
    }
}

static void
expect_word(const struct trainer *trainer, char wanted)
{
    char word;

    hear(trainer, &word, 1);
    if (word != wanted)
        give_up("a trainer said something else");
}

/* The last step that a dead trainer has told. */
static uint64_t
last_step(const struct trainer *trainer, uint64_t step)
{
    uint64_t next;

    while (read(trainer->out, &next, sizeof next) == (ssize_t)sizeof next)
        step = next;
    return step;
}

struct times {
    double *told_ms, *let_in_ms, *batch_ms, *reaped_ms;
};

/* Kill one and let the other follow. `step`: the last one told by the victim. */
static uint64_t
replace(struct trainer *victim, const struct trainer *successor, uint64_t step, unsigned i,
        const struct times *times)
{
    double began_ms = now_ms();
    uint64_t first;

    kill(victim->pid, SIGKILL);
    sem_wait(&told);
    if (write(successor->in, "g", 1) != 1)
        give_up("write");
    expect_word(successor, 'o');
    times->let_in_ms[i] = now_ms() - began_ms;
    hear(successor, &first, sizeof first);
    times->batch_ms[i] = now_ms() - began_ms;
    waitpid(victim->pid, NULL, 0);
    times->reaped_ms[i] = now_ms() - began_ms;
    times->told_ms[i] = told_ms - began_ms;
    step = last_step(victim, step);
    if (first != step && first != step + 1) {
        fprintf(stderr, "recovery: kill %u: step %" PRIu64 " follows %" PRIu64 "\n", i, first,
                step);
        _exit(1);
    }
    close(victim->in);
    close(victim->out);
    return first;
}

static pid_t
serve(const char *program, const char *file)
{
    int ends[2];
    pid_t server;
    char word[8], number[16];

    if (pipe(ends) != 0)
        give_up("pipe");
    snprintf(number, sizeof number, "%d", ends[1]);
    server = fork();
    if (server == 0) {
        if (freopen("/dev/null", "w", stderr) != NULL)
            execl(program, program, "serve", file, "--ready-fd", number, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    if (read(ends[0], word, sizeof word) < 5 || memcmp(word, "ready", 5) != 0)
        give_up("the server did not start");
    close(ends[0]);
    return server;
}

static int
compare(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;

    return (first > second) - (first < second);
}

static void
print(const char *name, double *values, unsigned count, const char *end)
{
    qsort(values, count, sizeof *values, compare);
    printf("\"%s\": {\"median\": %.3f, \"p99\": %.3f, \"max\": %.3f}%s", name, values[count / 2],
           values[(count * 99 + 99) / 100 - 1], values[count - 1], end);
}

static void
measure(const char *program, unsigned kills, unsigned seed, const char *megabytes)
{
    double *room = calloc(kills, 4 * sizeof *room);
    struct times times = { room, room + kills, room + 2 * kills, room + 3 * kills };
    char folder[] = "/tmp/tundish-recovery-XXXXXX", path[64], command[64];
    struct trainer present;
    uint64_t step;
    pthread_t other;
    pid_t server;
    FILE *file;

    if (room == NULL || mkdtemp(folder) == NULL)
        give_up("make room");
    snprintf(path, sizeof path, "%s/server", folder);
    setenv("TUNDISH_SERVER", path, 1);
    setenv("TUNDISH_STREAM", "train", 1);
    setenv("TUNDISH_CACHE", folder, 1);
    snprintf(path, sizeof path, "%s/pipeline.yaml", folder);
    file = fopen(path, "w");
    if (file == NULL || fputs(pipeline, file) < 0 || fclose(file) != 0)
        give_up("write the pipeline file");
    server = serve(program, path);
    sem_init(&told, 0, 0);
    pthread_create(&other, NULL, read_beside, NULL);
    present = start_trainer(megabytes);
    expect_word(&present, 'r');
    if (write(present.in, "g", 1) != 1)
        give_up("write");
    expect_word(&present, 'o');
    hear(&present, &step, sizeof step);
    for (unsigned i = 0; i < kills; i++) {
        struct trainer successor = start_trainer(megabytes);

        expect_word(&successor, 'r');
        pause_us(rand_r(&seed) % PAUSE_US_MAX);
        step = replace(&present, &successor, step, i, &times);
        present = successor;
    }
    kill(present.pid, SIGKILL);
    kill(server, SIGKILL);
    waitpid(present.pid, NULL, 0);
    waitpid(server, NULL, 0);
    pthread_join(other, NULL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        give_up("clean up");
    printf("{\"kills\": %u, \"megabytes\": %s, ", kills, megabytes);
    print("told_ms", times.told_ms, kills, ", ");
    print("let_in_ms", times.let_in_ms, kills, ", ");
    print("first_batch_ms", times.batch_ms, kills, ", ");
    print("reaped_ms", times.reaped_ms, kills, "}\n");
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {
        { "kills", required_argument, NULL, 'k' },
        { "seed", required_argument, NULL, 's' },
        { "megabytes", required_argument, NULL, 'm' },
        { "trainer", no_argument, NULL, 't' },
        { 0 },
    };
    unsigned kills = KILLS_DEFAULT, seed = 1;
    const char *megabytes = "0";
    bool is_trainer = false;

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case 'k':
            kills = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 's':
            seed = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'm':
            megabytes = optarg;
            break;
        case 't':
            is_trainer = true;
            break;
        default:
            return 2;
        }
    if (is_trainer)
        train(strtoul(megabytes, NULL, 10));
    if (optind != argc - 1 || kills == 0) {
        fprintf(stderr, "usage: recovery TUNDISH [--kills N] [--seed N] [--megabytes N]\n");
        return 2;
    }
    measure(argv[optind], kills, seed, megabytes);
    return 0;
}
