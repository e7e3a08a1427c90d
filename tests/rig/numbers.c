/* numbers.c - a server of numbers. */
#include "rig/numbers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"

enum { REPLICAS_MAX = 8, TEXT_MAX = 24, BAG_MAX = 3 };

/* Whoever comes may be kept from its processor for long. */
static const int64_t PATIENCE_NS = 600000000000;

/* Where a lane's next slot is. */
struct cursor {
    uint64_t position, epoch, step;
    bool is_over;
};

struct numbers {
    struct numbers_options options;
    char folder[64], path[108];
    struct wakeup *wakeup;
    struct hub *hub;
    struct feed *feed;
    struct slot slots[REPLICAS_MAX];
    pthread_t thread;
    bool is_running;
    _Atomic bool stop, drain;

    pthread_mutex_t lock;
    struct cursor cursors[REPLICAS_MAX];
    struct numbers_told told;
    uint64_t short_epoch, short_steps; /* an epoch ended early: its steps */
    bool has_short;
};

static uint64_t
mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xbf58476d1ce4e5b9u + c * 0x94d049bb133111ebu + d;

    x ^= x >> 31;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

uint64_t
numbers_rows(uint64_t epoch, uint64_t step, uint32_t rows, uint32_t wide_step)
{
    if (wide_step != 0 && step % wide_step == 0)
        return (uint64_t)rows * 40;
    return mix(epoch, step, 7, 7) % (rows + 1);
}

static unsigned
text_of(uint64_t word, char text[TEXT_MAX])
{
    return (unsigned)snprintf(text, TEXT_MAX, "%llu", (unsigned long long)(word % 100000));
}

static const double halves_and_quarters[] = { 0.5, 0.25 };
static const double one = 1;

static const tundish_column_spec columns[] = {
    { .name = "word", .dtype = TUNDISH_UINT64, .kind = TUNDISH_DENSE, .rank = 1, .shape = { -1 } },
    { .name = "text", .dtype = TUNDISH_STRING, .kind = TUNDISH_DENSE, .rank = 1, .shape = { -1 } },
    { .name = "bag",
      .dtype = TUNDISH_INT32,
      .kind = TUNDISH_RAGGED,
      .rank = 3,
      .ragged_rank = 1,
      .shape = { -1, -1, 2 },
      .splits_dtype = TUNDISH_INT64,
      .widen_dtype = TUNDISH_FLOAT32,
      .widen_scale_count = 2,
      .widen_scale = halves_and_quarters,
      .widen_offset_count = 1,
      .widen_offset = &one },
    { .name = "rare",
      .dtype = TUNDISH_FLOAT32,
      .kind = TUNDISH_SPARSE,
      .rank = 2,
      .shape = { -1, 1000 } },
};

static const tundish_spec spec = { .column_count = 4,
                                   .column_bytes = sizeof columns[0],
                                   .columns = columns };

/* Sizes, from the rows alone. */
static void
size_up(const struct numbers *numbers, struct slot *slot, uint32_t replica)
{
    uint64_t rows =
        numbers_rows(slot->epoch, slot->step, numbers->options.rows, numbers->options.wide_step);
    uint64_t text_bytes = 0, bags = 0;
    char text[TEXT_MAX];

    for (uint64_t i = 0; i < rows; i++) {
        uint64_t word = mix(slot->epoch, slot->step, replica, i);

        text_bytes += text_of(word, text);
        bags += word % (BAG_MAX + 1);
    }
    for (uint32_t i = 0; i < 4; i++)
        slot->columns[i].shape[0] = (int64_t)rows;
    slot->columns[0].buffers[0].stored_bytes = rows * 8;
    slot->columns[1].buffers[0].stored_bytes = (rows + 1) * 8;
    slot->columns[1].buffers[1].stored_bytes = text_bytes;
    slot->columns[2].buffers[0].stored_bytes = (rows + 1) * 8;
    slot->columns[2].buffers[1].stored_bytes = bags * 2 * 4;
    slot->columns[3].buffers[0].stored_bytes = rows * 2 * 8;
    slot->columns[3].buffers[1].stored_bytes = rows * 4;
    for (uint32_t i = 0; i < slot->buffer_count; i++)
        slot->buffers[i].codec = (struct tnd_codec){ .number = TND_CODEC_RAW };
}

static void
fill_in(struct slot *slot, uint32_t replica)
{
    uint64_t rows = (uint64_t)slot->columns[0].shape[0];
    uint64_t *words = slot->columns[0].buffers[0].data;
    int64_t *offsets = slot->columns[1].buffers[0].data;
    char *texts = slot->columns[1].buffers[1].data;
    int64_t *splits = slot->columns[2].buffers[0].data;
    int32_t *bags = slot->columns[2].buffers[1].data;
    int64_t *indices = slot->columns[3].buffers[0].data;
    float *rare = slot->columns[3].buffers[1].data;

    offsets[0] = splits[0] = 0;
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t word = mix(slot->epoch, slot->step, replica, i);
        char text[TEXT_MAX];
        unsigned bytes = text_of(word, text);

        words[i] = word;
        memcpy(texts + offsets[i], text, bytes);
        offsets[i + 1] = offsets[i] + bytes;
        splits[i + 1] = splits[i] + (int64_t)(word % (BAG_MAX + 1));
        for (int64_t k = splits[i] * 2; k < splits[i + 1] * 2; k++)
            bags[k] = (int32_t)(word + (uint64_t)k);
        indices[2 * i] = (int64_t)i;
        indices[2 * i + 1] = (int64_t)(word % 1000);
        rare[i] = (float)(word % 4096);
    }
}

/* Store the ragged column's splits in fewer bytes. */
static void
narrow(struct slot *slot)
{
    struct slot_buffer *splits = &slot->columns[2].buffers[0];
    struct tnd_codec codec = tnd_codec_for_range(8, 0, BAG_MAX * 64 * 40);

    splits->codec = codec;
    splits->decoded_bytes = splits->stored_bytes;
    must(tnd_codec_bound(&codec, splits->decoded_bytes, &splits->stored_bytes) == TUNDISH_OK);
}

static void
encode_splits(struct slot *slot, uint32_t replica)
{
    struct slot_buffer *buffer = &slot->columns[2].buffers[0];
    uint64_t rows = (uint64_t)slot->columns[0].shape[0], stored_bytes = 0;
    int64_t *splits = tnd_alloc((rows + 1) * 8);

    splits[0] = 0;
    for (uint64_t i = 0; i < rows; i++)
        splits[i + 1] =
            splits[i] + (int64_t)(mix(slot->epoch, slot->step, replica, i) % (BAG_MAX + 1));
    must(tnd_codec_encode(&buffer->codec, splits, (rows + 1) * 8, buffer->data,
                          buffer->stored_bytes, NULL, &stored_bytes) == TUNDISH_OK);
    buffer->stored_bytes = stored_bytes;
    free(splits);
}

static void
fill_encoded(struct slot *slot, uint32_t replica)
{
    struct slot_buffer *buffer = &slot->columns[2].buffers[0];
    void *place = buffer->data;
    uint64_t rows = (uint64_t)slot->columns[0].shape[0];

    buffer->data = tnd_alloc((rows + 1) * 8);
    fill_in(slot, replica);
    free(buffer->data);
    buffer->data = place;
    encode_splits(slot, replica);
}

static uint64_t
steps_of(const struct numbers *numbers, uint64_t epoch)
{
    if (numbers->has_short && numbers->short_epoch == epoch)
        return numbers->short_steps;
    return numbers->options.steps;
}

static tundish_status
publish_end(struct lane *lane, struct cursor *cursor, enum tnd_slot_kind kind,
            tundish_status status, const char *text)
{
    tundish_status result =
        lane_publish_end(lane, cursor->position, kind, cursor->epoch, cursor->step, status, text);

    if (result != TUNDISH_OK)
        return result;
    cursor->position++;
    if (kind == TND_SLOT_END) {
        cursor->epoch++;
        cursor->step = 0;
    } else {
        cursor->is_over = true;
    }
    return TUNDISH_OK;
}

static tundish_status
publish_batch(struct numbers *numbers, struct lane *lane, struct cursor *cursor, uint32_t replica)
{
    struct slot *slot = &numbers->slots[replica];
    tundish_status status;

    slot->position = cursor->position;
    slot->epoch = cursor->epoch;
    slot->step = cursor->step;
    size_up(numbers, slot, replica);
    if (numbers->options.narrow)
        narrow(slot);
    status = lane_reserve(lane, slot);
    if (status == TUNDISH_E_MEMORY)
        return publish_end(lane, cursor, TND_SLOT_ERROR, status, tnd_error_text());
    if (status != TUNDISH_OK)
        return status;
    if (numbers->options.narrow)
        fill_encoded(slot, replica);
    else
        fill_in(slot, replica);
    lane_seal(lane, slot);
    lane_publish(lane, slot);
    cursor->position++;
    cursor->step++;
    return TUNDISH_OK;
}

static void
set_place(struct numbers *numbers, uint64_t epoch)
{
    char text[64];
    int bytes = snprintf(text, sizeof text, "numbers, epoch %llu", (unsigned long long)epoch);

    must(feed_set_place(numbers->feed, epoch, text, (uint64_t)bytes) == TUNDISH_OK);
}

/* Lanes differ by as many steps as they have slots, no more. */
static bool
is_far_ahead(const struct numbers *numbers, const struct cursor *cursor)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t i = 0; i < numbers->options.replicas; i++)
        if (numbers->cursors[i].position < lowest)
            lowest = numbers->cursors[i].position;
    return cursor->position >= lowest + numbers->options.slots;
}

/* The next slot of one lane. */
static tundish_status
publish_next(struct numbers *numbers, uint32_t replica)
{
    struct lane *lane = feed_lane(numbers->feed, replica);
    struct cursor *cursor = &numbers->cursors[replica];

    if (cursor->is_over || is_far_ahead(numbers, cursor))
        return TUNDISH_E_TIMEOUT;
    if (atomic_load(&numbers->drain))
        return publish_end(lane, cursor, TND_SLOT_STOPPED, TUNDISH_OK, NULL);
    if (numbers->options.epochs != 0 && cursor->epoch >= numbers->options.epochs)
        return publish_end(lane, cursor, TND_SLOT_END_OF_STREAM, TUNDISH_OK, NULL);
    if (cursor->step >= steps_of(numbers, cursor->epoch))
        return publish_end(lane, cursor, TND_SLOT_END, TUNDISH_OK, NULL);
    if (numbers->options.bad_step != 0 && cursor->epoch == 0 &&
        cursor->step == numbers->options.bad_step)
        return publish_end(lane, cursor, TND_SLOT_ERROR, TUNDISH_E_DATA,
                           "numbers.txt: line 3 is bad");
    if (cursor->step == 0 && replica == 0)
        set_place(numbers, cursor->epoch);
    return publish_batch(numbers, lane, cursor, replica);
}

static void *
run(void *argument)
{
    struct numbers *numbers = argument;

    while (!atomic_load(&numbers->stop)) {
        bool progress = false;

        pthread_mutex_lock(&numbers->lock);
        for (uint32_t i = 0; i < numbers->options.replicas; i++)
            progress |= publish_next(numbers, i) == TUNDISH_OK;
        pthread_mutex_unlock(&numbers->lock);
        if (!progress)
            wakeup_wait(numbers->wakeup, 0, -1);
    }
    return NULL;
}

/* The steps that a start would pass over are lost to those who are here already. */
static bool
passes_over(const struct numbers *numbers, uint64_t epoch, uint64_t step)
{
    const struct cursor *cursor = &numbers->cursors[0];

    return epoch > cursor->epoch || (epoch == cursor->epoch && step > cursor->step);
}

/* Whoever brings a place starts there, if nobody reads yet; others may only lower it. */
static tundish_status
on_admit(void *user, struct feed *feed, const char *group, uint32_t replica,
         const struct feed_start *start)
{
    struct numbers *numbers = user;
    tundish_status status = TUNDISH_OK;
    uint64_t epoch = start->epoch, step = start->step;

    (void)group, (void)replica;
    pthread_mutex_lock(&numbers->lock);
    numbers->told.admitted++;
    if (start->has_place && start->place_bytes > 0 &&
        (start->place_bytes < 7 || memcmp(start->place, "numbers", 7) != 0))
        status = tnd_fail(TUNDISH_E_PLACE, "this place is not one of numbers");
    if (status == TUNDISH_OK && (start->has_place || start->survivor) &&
        (feed_is_unused(feed) || !passes_over(numbers, epoch, step)) &&
        feed_rewind(feed) == TUNDISH_OK) {
        for (uint32_t i = 0; i < numbers->options.replicas; i++)
            numbers->cursors[i] = (struct cursor){ .epoch = epoch, .step = step };
        set_place(numbers, epoch);
        wakeup_signal(numbers->wakeup);
    }
    pthread_mutex_unlock(&numbers->lock);
    return status;
}

static void
on_joined(void *user, struct feed *feed, const char *group, uint32_t replica, uint32_t present,
          uint32_t full_group_count)
{
    struct numbers *numbers = user;

    (void)feed, (void)group, (void)replica, (void)present;
    pthread_mutex_lock(&numbers->lock);
    numbers->told.joined++;
    numbers->told.full_groups = full_group_count;
    pthread_mutex_unlock(&numbers->lock);
}

static void
on_left(void *user, struct feed *feed, const char *group, uint32_t replica,
        const struct departure *departure)
{
    struct numbers *numbers = user;

    (void)feed, (void)group, (void)replica;
    pthread_mutex_lock(&numbers->lock);
    numbers->told.left++;
    numbers->told.died += !departure->in_order;
    pthread_mutex_unlock(&numbers->lock);
}

static void
on_refused(void *user, struct feed *feed)
{
    (void)user, (void)feed;
}

static void
on_group_ended(void *user, struct feed *feed, const char *group, bool lost)
{
    struct numbers *numbers = user;

    (void)feed, (void)group, (void)lost;
    pthread_mutex_lock(&numbers->lock);
    numbers->told.ended++;
    pthread_mutex_unlock(&numbers->lock);
}

/* The epoch ends with the last step that some lane has. */
static void
on_restart(void *user, struct feed *feed, uint64_t epoch)
{
    struct numbers *numbers = user;
    uint64_t steps = 0;
    bool is_open = true;

    (void)feed;
    pthread_mutex_lock(&numbers->lock);
    numbers->told.restarts++;
    for (uint32_t i = 0; i < numbers->options.replicas; i++) {
        is_open &= numbers->cursors[i].epoch <= epoch;
        if (numbers->cursors[i].epoch == epoch && numbers->cursors[i].step > steps)
            steps = numbers->cursors[i].step;
    }
    if (is_open && steps < numbers->options.steps) {
        numbers->has_short = true;
        numbers->short_epoch = epoch;
        numbers->short_steps = steps;
    }
    pthread_mutex_unlock(&numbers->lock);
    wakeup_signal(numbers->wakeup);
}

static int64_t
on_tick(void *user, struct feed *feed, int64_t now_ns)
{
    (void)user, (void)feed, (void)now_ns;
    return TND_CLOCK_NEVER;
}

static bool
on_find_standing(void *user, struct feed *feed, const char *group, uint64_t *number,
                 struct feed_standing *ret_standing)
{
    (void)user, (void)number;
    feed_find_standing(feed, group, ret_standing);
    return true;
}

static const struct feed_ops ops = {
    .admit = on_admit,
    .joined = on_joined,
    .left = on_left,
    .refused = on_refused,
    .group_ended = on_group_ended,
    .restart = on_restart,
    .tick = on_tick,
    .find_standing = on_find_standing,
};

static void
take_options(struct numbers *numbers, const struct numbers_options *options)
{
    numbers->options = *options;
    if (numbers->options.replicas == 0)
        numbers->options.replicas = 1;
    if (numbers->options.slots == 0)
        numbers->options.slots = 4;
    if (numbers->options.rows == 0)
        numbers->options.rows = 64;
    if (numbers->options.arena_bytes == 0)
        numbers->options.arena_bytes = 1 << 20;
    if (numbers->options.steps == 0)
        numbers->options.steps = 10;
    if (numbers->options.rejoin_ns == 0)
        numbers->options.rejoin_ns = PATIENCE_NS;
    if (options->path != NULL) {
        snprintf(numbers->path, sizeof numbers->path, "%s", options->path);
        return;
    }
    snprintf(numbers->folder, sizeof numbers->folder, "/tmp/tundish-test-XXXXXX");
    must(mkdtemp(numbers->folder) != NULL);
    snprintf(numbers->path, sizeof numbers->path, "%s/server", numbers->folder);
}

void
numbers_open(const struct numbers_options *options, struct numbers **ret_numbers)
{
    struct numbers *numbers = tnd_zalloc(1, sizeof *numbers);
    struct feed_config config = {
        .stream = "numbers",
        .session = "numbers",
        .ops = &ops,
        .user = numbers,
    };
    struct hub_config hub = {
        .socket_path = numbers->path,
        .hello_ns = options->hello_ns > 0 ? options->hello_ns : PATIENCE_NS,
    };

    pthread_mutex_init(&numbers->lock, NULL);
    take_options(numbers, options);
    options = &numbers->options;
    must(wakeup_open(&numbers->wakeup) == TUNDISH_OK);
    config.replica_count = config.total_replica_count = options->replicas;
    config.rejoin_ns = options->rejoin_ns;
    config.detach = options->detach_ns > 0;
    config.detach_ns = options->detach_ns;
    config.broadcast = options->broadcast;
    config.lane = (struct lane_config){
        .slots = options->slots,
        .arena_bytes = options->arena_bytes,
        .max_batch_bytes = options->max_batch_bytes,
        .memory = options->memfd ? LANE_MEMFD : LANE_SHM,
        .checksums = options->checksums,
        .queue = options->queue,
        .server_generation = (uint64_t)getpid(),
        .spec = &spec,
        .wakeup = numbers->wakeup,
    };
    if (feed_open(&config, &numbers->feed) != TUNDISH_OK ||
        hub_open(&hub, &numbers->hub) != TUNDISH_OK ||
        hub_add(numbers->hub, numbers->feed) != TUNDISH_OK ||
        hub_start(numbers->hub) != TUNDISH_OK) {
        fprintf(stderr, "numbers: %s\n", tnd_error_text());
        abort();
    }
    for (uint32_t i = 0; i < options->replicas; i++)
        lane_slot_init(feed_lane(numbers->feed, i), &numbers->slots[i]);
    if (!options->idle)
        numbers_run(numbers);
    *ret_numbers = numbers;
}

void
numbers_run(struct numbers *numbers)
{
    must(pthread_create(&numbers->thread, NULL, run, numbers) == 0);
    numbers->is_running = true;
}

void
numbers_drain(struct numbers *numbers)
{
    atomic_store(&numbers->drain, true);
    wakeup_signal(numbers->wakeup);
}

void
numbers_close(struct numbers *numbers)
{
    if (numbers == NULL)
        return;
    if (numbers->is_running) {
        atomic_store(&numbers->stop, true);
        wakeup_signal(numbers->wakeup);
        pthread_join(numbers->thread, NULL);
    }
    hub_remove(numbers->hub, numbers->feed);
    hub_close(numbers->hub);
    feed_close(numbers->feed);
    wakeup_close(numbers->wakeup);
    for (uint32_t i = 0; i < REPLICAS_MAX; i++)
        lane_slot_fini(&numbers->slots[i]);
    if (numbers->folder[0] != '\0')
        rmdir(numbers->folder);
    pthread_mutex_destroy(&numbers->lock);
    free(numbers);
}

const char *
numbers_path(const struct numbers *numbers)
{
    return numbers->path;
}

struct feed *
numbers_feed(struct numbers *numbers)
{
    return numbers->feed;
}

struct hub *
numbers_hub(struct numbers *numbers)
{
    return numbers->hub;
}

struct numbers_told
numbers_told(struct numbers *numbers)
{
    struct numbers_told told;

    pthread_mutex_lock(&numbers->lock);
    told = numbers->told;
    pthread_mutex_unlock(&numbers->lock);
    return told;
}

static bool
wrong(const tundish_batch *batch, const char *what)
{
    fprintf(stderr, "epoch %llu, step %llu: wrong %s (%s)\n", (unsigned long long)batch->epoch,
            (unsigned long long)batch->step, what, tundish_last_error());
    return false;
}

static bool
check_row(const tundish_batch *batch, const tundish_tensor *const t[4], uint64_t row, uint64_t word)
{
    const int64_t *offsets = t[1]->string_offsets, *splits = t[2]->row_splits[0];
    char text[TEXT_MAX];
    unsigned bytes = text_of(word, text);

    if (((const uint64_t *)t[0]->data)[row] != word)
        return wrong(batch, "word");
    if (offsets[row + 1] - offsets[row] != (int64_t)bytes ||
        memcmp((const char *)t[1]->data + offsets[row], text, bytes) != 0)
        return wrong(batch, "text");
    if (splits[row + 1] - splits[row] != (int64_t)(word % (BAG_MAX + 1)))
        return wrong(batch, "bag's splits");
    for (int64_t k = splits[row] * 2; k < splits[row + 1] * 2; k++)
        if (((const int32_t *)t[2]->data)[k] != (int32_t)(word + (uint64_t)k))
            return wrong(batch, "bag");
    if (t[3]->indices[2 * row] != (int64_t)row ||
        t[3]->indices[2 * row + 1] != (int64_t)(word % 1000) ||
        ((const float *)t[3]->data)[row] != (float)(word % 4096))
        return wrong(batch, "rare");
    return true;
}

bool
numbers_check(const tundish_batch *batch, uint32_t replica, uint32_t rows, uint32_t wide_step)
{
    uint64_t row_count = numbers_rows(batch->epoch, batch->step, rows, wide_step);
    const tundish_tensor *tensors[4];

    for (uint32_t i = 0; i < 4; i++) {
        if (tundish_tensor_at(batch, i, &tensors[i]) != TUNDISH_OK)
            return wrong(batch, columns[i].name);
        if (tensors[i]->shape[0] != (int64_t)row_count)
            return wrong(batch, "number of rows");
    }
    for (uint64_t i = 0; i < row_count; i++)
        if (!check_row(batch, tensors, i, mix(batch->epoch, batch->step, replica, i)))
            return false;
    return true;
}
