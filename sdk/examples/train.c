/* train.c - a data-parallel trainer: logistic regression over a click log.
 *
 * Each integer column is one input; each categorical column is a row of weights, one for each id
 * (hashed into a table of fixed size, so no vocabulary size is needed). Replicas add their
 * gradients up in memory that they share, as a job on GPUs would with all-reduce, so all take equal
 * steps.
 *
 *     tundish-launch FILE --replicas 2 -- ./train [STEPS BETWEEN LINES [MILLISECONDS]]
 *
 * Prints loss, rows per second and the share of time spent waiting for batches, which is large,
 * because a step takes next to no time. With MILLISECONDS each step rests so long, as a process
 * does while a GPU works for it. At the end it prints how many rows there were.
 */
#define _GNU_SOURCE 1 /* memfd_create */

#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <tundish/tundish.h>

enum { TABLE = 1 << 16, INPUTS_MAX = 64, WEIGHTS = TABLE + INPUTS_MAX, REPLICAS_MAX = 64 };

static const float LEARNING_RATE = 0.02f;

/* all-reduce:
 * One file in shared memory, mapped by every replica of the job: a barrier and one array of
 * gradients for each. */

struct job {
    _Atomic uint32_t arrived, round;
    float gradients[];
};

struct replicas {
    struct job *job;
    uint32_t count, own;
};

static double
seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint32_t
number_from(const char *variable, uint32_t otherwise)
{
    const char *text = getenv(variable);

    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

static void barrier(const struct replicas *replicas);

/* Map the job's memory: a file beside the server's socket, gone as soon as all have it. */
static int
join(struct replicas *replicas)
{
    const char *server = getenv("TUNDISH_SERVER");
    char path[4096];
    size_t bytes = sizeof(struct job) + (size_t)REPLICAS_MAX * WEIGHTS * sizeof(float);
    int descriptor;

    replicas->count = number_from("WORLD_SIZE", 1);
    replicas->own = number_from("RANK", 0);
    if (replicas->count > REPLICAS_MAX || replicas->own >= replicas->count)
        return -1;
    if (replicas->count > 1 && server == NULL) {
        fputs("train: several replicas find each other by TUNDISH_SERVER, which is not set\n",
              stderr);
        return -1;
    }
    snprintf(path, sizeof path, "%s.train", server != NULL ? server : "");
    descriptor = replicas->count == 1 ? memfd_create("train", MFD_CLOEXEC)
                                      : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0 || ftruncate(descriptor, (off_t)bytes) != 0) {
        perror("train: shared memory");
        return -1;
    }
    replicas->job = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (replicas->job == MAP_FAILED)
        return -1;
    barrier(replicas);
    if (replicas->count > 1 && replicas->own == 0)
        unlink(path);
    return 0;
}

/* Wait until every replica is here. */
static void
barrier(const struct replicas *replicas)
{
    static const struct timespec pause = { .tv_nsec = 20000 };
    struct job *job = replicas->job;
    uint32_t round = atomic_load(&job->round);

    if (atomic_fetch_add(&job->arrived, 1) + 1 == replicas->count) {
        atomic_store(&job->arrived, 0);
        atomic_fetch_add(&job->round, 1);
        return;
    }
    while (atomic_load(&job->round) == round)
        nanosleep(&pause, NULL);
}

static float *
gradients_of(const struct replicas *replicas, uint32_t replica)
{
    return replicas->job->gradients + (size_t)replica * WEIGHTS;
}

struct model {
    float *weights; /* TABLE for ids, then one an input */
    float
        *squares; /* of all gradients so far: AdaGrad's step sizes, since ids differ so in number */
};

struct columns {
    const tundish_tensor *label;
    const tundish_tensor *inputs[INPUTS_MAX];
    const tundish_tensor *ids[INPUTS_MAX];
    uint32_t input_count, id_count;
};

/* Float columns are inputs, integer columns but the label are ids. */
static tundish_status
find_columns(const tundish_batch *batch, struct columns *columns)
{
    tundish_status status = tundish_tensor_named(batch, "label", &columns->label);

    columns->input_count = columns->id_count = 0;
    for (uint32_t i = 0; status == TUNDISH_OK && i < batch->tensor_count; i++) {
        const tundish_tensor *tensor;

        status = tundish_tensor_at(batch, i, &tensor);
        if (status != TUNDISH_OK || tensor == columns->label)
            continue;
        if (tensor->dtype == TUNDISH_FLOAT32 && columns->input_count < INPUTS_MAX)
            columns->inputs[columns->input_count++] = tensor;
        else if (tensor->dtype == TUNDISH_INT64 && columns->id_count < INPUTS_MAX)
            columns->ids[columns->id_count++] = tensor;
    }
    return status;
}

/* Each column has its own corner of the table. */
static uint32_t
slot_of(uint32_t column, int64_t id)
{
    uint64_t mixed =
        ((uint64_t)id + 1) * UINT64_C(0x9e3779b97f4a7c15) + column * UINT64_C(0xff51afd7);

    return (uint32_t)(mixed >> 40) & (TABLE - 1);
}

static float
predict(const struct model *model, const struct columns *columns, uint64_t row)
{
    float sum = 0;

    for (uint32_t i = 0; i < columns->input_count; i++)
        sum += model->weights[TABLE + i] * ((const float *)columns->inputs[i]->data)[row];
    for (uint32_t i = 0; i < columns->id_count; i++)
        sum += model->weights[slot_of(i, ((const int64_t *)columns->ids[i]->data)[row])];
    return 1.0f / (1.0f + expf(-sum));
}

/* Gradients of one replica's batch; returns the sum of its losses. */
static double
backward(const struct model *model, const struct columns *columns, float *gradients)
{
    const int64_t *labels = columns->label->data;
    double loss = 0;

    memset(gradients, 0, WEIGHTS * sizeof *gradients);
    for (uint64_t row = 0; row < columns->label->element_count; row++) {
        float chance = predict(model, columns, row);
        float error = chance - (float)labels[row];

        loss -= log((double)(labels[row] ? chance : 1 - chance) + 1e-7);
        for (uint32_t i = 0; i < columns->input_count; i++)
            gradients[TABLE + i] += error * ((const float *)columns->inputs[i]->data)[row];
        for (uint32_t i = 0; i < columns->id_count; i++)
            gradients[slot_of(i, ((const int64_t *)columns->ids[i]->data)[row])] += error;
    }
    return loss;
}

/* Every replica applies the same mean, so the weights stay equal. */
static void
step(struct model *model, const struct replicas *replicas, uint64_t rows)
{
    float mean = 1.0f / (float)((rows > 0 ? rows : 1) * replicas->count);

    for (size_t i = 0; i < WEIGHTS; i++) {
        float gradient = 0;

        for (uint32_t replica = 0; replica < replicas->count; replica++)
            gradient += gradients_of(replicas, replica)[i];
        if (gradient == 0)
            continue;
        gradient *= mean;
        model->squares[i] += gradient * gradient;
        model->weights[i] -= LEARNING_RATE * gradient / (sqrtf(model->squares[i]) + 1e-8f);
    }
}

struct progress {
    double loss; /* since the last line */
    uint64_t loss_rows;
    double first_loss, last_loss; /* of the first step, and smoothed */
    uint64_t rows;                /* since the start */
    double began, waited;
};

static void
say(const struct replicas *replicas, struct progress *progress, const tundish_batch *batch)
{
    double passed = seconds() - progress->began;
    double loss = progress->loss_rows > 0 ? progress->loss / (double)progress->loss_rows : 0.0;

    printf("replica %u epoch %llu step %llu: loss %.4f, %.0f rows/s, waited %.0f%%\n",
           replicas->own, (unsigned long long)batch->epoch, (unsigned long long)batch->step, loss,
           (double)progress->rows / passed, 100 * progress->waited / passed);
    fflush(stdout);
    progress->loss = 0;
    progress->loss_rows = 0;
}

static void
say_all(const struct replicas *replicas, const struct progress *progress)
{
    printf("replica %u: %llu rows in all, loss %.4f to %.4f\n", replicas->own,
           (unsigned long long)progress->rows, progress->first_loss, progress->last_loss);
    fflush(stdout);
}

static void
note_loss(struct progress *progress, double loss)
{
    if (progress->rows == 0)
        progress->first_loss = progress->last_loss = loss;
    progress->last_loss += 0.05 * (loss - progress->last_loss);
}

static tundish_status
train_on(struct model *model, const struct replicas *replicas, const tundish_batch *batch,
         struct progress *progress)
{
    struct columns columns;
    tundish_status status = find_columns(batch, &columns);
    double loss;

    if (status != TUNDISH_OK)
        return status;
    loss = backward(model, &columns, gradients_of(replicas, replicas->own));
    progress->loss += loss;
    if (columns.label->element_count > 0)
        note_loss(progress, loss / (double)columns.label->element_count);
    progress->loss_rows += columns.label->element_count;
    progress->rows += columns.label->element_count;
    barrier(replicas); /* all gradients are there */
    step(model, replicas, columns.label->element_count);
    barrier(replicas); /* all have read them */
    return TUNDISH_OK;
}

struct habits {
    uint64_t say_every;
    uint64_t rest_ms;
};

static void
rest(uint64_t milliseconds)
{
    struct timespec time = { .tv_sec = (time_t)(milliseconds / 1000),
                             .tv_nsec = (long)(milliseconds % 1000) * 1000000 };

    nanosleep(&time, NULL);
}

static tundish_status
train(tundish_reader *reader, struct model *model, const struct replicas *replicas,
      const struct habits *habits)
{
    struct progress progress = { .began = seconds() };

    for (;;) {
        const tundish_batch *batch;
        double asked = seconds();
        tundish_status status = tundish_next(reader, TUNDISH_FOREVER, &batch);

        progress.waited += seconds() - asked;
        if (status == TUNDISH_END)
            continue;
        if (status == TUNDISH_END_OF_STREAM)
            say_all(replicas, &progress);
        if (status != TUNDISH_OK)
            return status;
        status = train_on(model, replicas, batch, &progress);
        rest(habits->rest_ms);
        if (status == TUNDISH_OK && batch->step % habits->say_every == habits->say_every - 1)
            say(replicas, &progress, batch);
        tundish_release(reader, batch);
        if (status != TUNDISH_OK)
            return status;
    }
}

/* Open the stream that the environment names. Tell the user of a server that is not there soon. */
static tundish_status
open_reader(tundish_reader **ret_reader)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_status status;

    options.server_timeout_ns = INT64_C(2000000000);
    status = tundish_open(&options, ret_reader);
    if (status != TUNDISH_E_SERVER_GONE)
        return status;
    fprintf(stderr, "train: %s; waiting\n", tundish_last_error());
    options.server_timeout_ns = 0; /* the default */
    return tundish_open(&options, ret_reader);
}

int
main(int argc, char **argv)
{
    struct replicas replicas = { 0 };
    struct model model = {
        .weights = calloc(WEIGHTS, sizeof(float)),
        .squares = calloc(WEIGHTS, sizeof(float)),
    };
    struct habits habits = {
        .say_every = argc > 1 ? strtoull(argv[1], NULL, 10) : 50,
        .rest_ms = argc > 2 ? strtoull(argv[2], NULL, 10) : 0,
    };
    tundish_reader *reader;
    tundish_status status;

    if (argc > 3 || habits.say_every == 0) {
        fprintf(stderr, "usage: %s [STEPS BETWEEN LINES [MILLISECONDS]]\n", argv[0]);
        return 2;
    }
    if (model.weights == NULL || model.squares == NULL || join(&replicas) != 0)
        return 1;
    status = open_reader(&reader);
    if (status == TUNDISH_OK) {
        status = train(reader, &model, &replicas, &habits);
        tundish_close(reader);
    }
    free(model.squares);
    free(model.weights);
    if (status == TUNDISH_END_OF_STREAM || status == TUNDISH_STOPPED)
        return 0;
    fprintf(stderr, "train: %s: %s\n", tundish_status_name(status), tundish_last_error());
    return 1;
}
