/* fuzz_segment.c - the SDK against a server that sends anything at all.
 *
 * A sound segment with three batches is altered as the input says, sent over a real socket with a
 * WELCOME that is altered as well, and read to the end, every tensor of every batch. The input is a
 * list of changes: where (two bytes, in units of four), how many bytes, the bytes.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/must.h"
#include "deliver/lane_private.h"
#include "tundish/tundish.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

enum { SLOTS = 4, BATCHES = 3, ROWS = 5 };

static const tundish_column_spec columns[] = {
    { .name = "dense",
      .dtype = TUNDISH_INT32,
      .kind = TUNDISH_DENSE,
      .rank = 2,
      .shape = { -1, 3 } },
    { .name = "text", .dtype = TUNDISH_STRING, .kind = TUNDISH_DENSE, .rank = 1, .shape = { -1 } },
    { .name = "bags",
      .dtype = TUNDISH_STRING,
      .kind = TUNDISH_RAGGED,
      .rank = 3,
      .ragged_rank = 2,
      .shape = { -1, -1, -1 } },
    { .name = "rare",
      .dtype = TUNDISH_FLOAT32,
      .kind = TUNDISH_SPARSE,
      .rank = 2,
      .shape = { -1, 9 } },
};
static const tundish_spec spec = { .column_count = 4,
                                   .column_bytes = sizeof columns[0],
                                   .columns = columns };

static uint8_t *sound; /* the segment as a server would have made it */
static uint64_t segment_bytes;
static int segment = -1; /* what is sent: the sound one, changed */
static int returns = -1;
static int listener = -1, accepted = -1;
static char path[64];
static struct tnd_welcome welcome;

/* Offsets 0, 1, 2 ... and as many values as there are rows. */
static void
fill(struct slot *slot)
{
    for (uint32_t i = 0; i < slot->column_count; i++)
        slot->columns[i].shape[0] = ROWS;
    slot->columns[0].buffers[0].stored_bytes = ROWS * 3 * 4;
    for (uint32_t i = 1; i < slot->buffer_count; i++)
        slot->buffers[i].stored_bytes = (ROWS + 1) * 8;
    slot_values(slot, 1)->stored_bytes = slot_values(slot, 2)->stored_bytes = ROWS;
    slot->columns[3].buffers[0].stored_bytes = ROWS * 2 * 8;
    slot_values(slot, 3)->stored_bytes = ROWS * 4;
}

static void
write_values(struct slot *slot)
{
    for (uint32_t i = 0; i < slot->buffer_count; i++) {
        int64_t *numbers = slot->buffers[i].data;

        memset(numbers, 0, slot->buffers[i].stored_bytes);
        if (slot->buffers[i].role == TND_ROLE_OFFSETS || slot->buffers[i].role == TND_ROLE_SPLITS)
            for (int64_t k = 0; k <= ROWS; k++)
                numbers[k] = k;
    }
}

/* The last batch has two encoded columns. */
static void
encode(struct slot_buffer *buffer, struct tnd_codec codec)
{
    static uint8_t stored[4096];
    struct tnd_codec_context *context = NULL;
    uint64_t stored_bytes = 0;

    must(tnd_codec_context_open(1, &context) == TUNDISH_OK);
    must(tnd_codec_encode(&codec, buffer->data, buffer->stored_bytes, stored, sizeof stored,
                          context, &stored_bytes) == TUNDISH_OK);
    tnd_codec_context_close(context);
    if (stored_bytes > buffer->stored_bytes)
        return;
    buffer->codec = codec;
    buffer->decoded_bytes = buffer->stored_bytes;
    buffer->stored_bytes = stored_bytes;
    memcpy(buffer->data, stored, stored_bytes);
}

static void
make_sound_segment(void)
{
    struct lane_config config = { .name = "sound",
                                  .slots = SLOTS,
                                  .arena_bytes = 4096,
                                  .memory = LANE_MEMFD,
                                  .checksums = true,
                                  .spec = &spec };
    struct lane *lane;
    struct slot slot;

    must(lane_open(&config, &lane) == TUNDISH_OK);
    lane_slot_init(lane, &slot);
    for (uint64_t i = 0; i < BATCHES; i++) {
        slot.position = slot.step = i;
        fill(&slot);
        must(lane_reserve(lane, &slot) == TUNDISH_OK);
        write_values(&slot);
        if (i == BATCHES - 1) {
            encode(&slot.columns[2].buffers[0], tnd_codec_for_range(8, 0, ROWS));
            encode(&slot.columns[0].buffers[0],
                   (struct tnd_codec){ .number = TND_CODEC_ZSTD, .width = 16, .level = 1 });
        }
        lane_seal(lane, &slot);
        lane_publish(lane, &slot);
    }
    must(lane_publish_end(lane, BATCHES, TND_SLOT_ERROR, 0, BATCHES, TUNDISH_E_DATA, "bad") ==
         TUNDISH_OK);
    segment_bytes = lane->segment.segment_bytes;
    sound = malloc(segment_bytes);
    must(sound != NULL);
    memcpy(sound, lane->segment.bytes, segment_bytes);
    lane_slot_fini(&slot);
    lane_close(lane);
}

static void
make_returns(void)
{
    struct tnd_returns page = { .magic = TND_RETURNS_MAGIC,
                                .layout_major = TND_LAYOUT_MAJOR,
                                .slot_count = SLOTS };

    must(ftruncate(returns, 0) == 0 && ftruncate(returns, (off_t)welcome.returns_bytes) == 0);
    must(pwrite(returns, &page, sizeof page, 0) == (ssize_t)sizeof page);
}

/* Answers one HELLO, then hangs up: what was published is drained, and then the server is gone. */
static void *
serve(void *argument)
{
    struct tnd_message message;
    int wakeup = eventfd(0, EFD_CLOEXEC), event = eventfd(0, EFD_CLOEXEC);
    int descriptors[] = { segment, returns, wakeup, event };
    struct tnd_message_head head = { .type = TND_WELCOME, .bytes = sizeof welcome };

    (void)argument;
    accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    must(accepted >= 0);
    if (tnd_channel_wait(accepted, -1) == TUNDISH_OK &&
        tnd_channel_receive(accepted, &message, NULL) == TUNDISH_OK)
        tnd_channel_send(accepted, head, &welcome, descriptors, 4);
    close(accepted);
    close(wakeup);
    close(event);
    return NULL;
}

static void
set_up(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    make_sound_segment();
    segment = memfd_create("fuzz", MFD_CLOEXEC);
    returns = memfd_create("fuzz", MFD_CLOEXEC);
    must(segment >= 0 && returns >= 0 && ftruncate(segment, (off_t)segment_bytes) == 0);
    snprintf(path, sizeof path, "/tmp/tundish-fuzz-%ld", (long)getpid());
    unlink(path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    must(bind(listener, (const struct sockaddr *)&address, sizeof address) == 0);
    must(listen(listener, 8) == 0);
}

static void
apply(uint8_t *bytes, uint64_t byte_count, const uint8_t *data, size_t data_bytes)
{
    while (data_bytes >= 3) {
        uint64_t at = ((uint64_t)data[0] << 8 | data[1]) * 4;
        size_t count = data[2] % 32;

        data += 3;
        data_bytes -= 3;
        if (count > data_bytes)
            count = data_bytes;
        if (at < byte_count && count <= byte_count - at)
            memcpy(bytes + at, data, count);
        data += count;
        data_bytes -= count;
    }
}

static void
touch(const tundish_tensor *tensor)
{
    const volatile uint8_t *data = tensor->data;
    uint64_t sum = 0;

    for (uint64_t i = 0; i < tensor->data_bytes; i++)
        sum += data[i];
    for (uint64_t i = 0; tensor->string_offsets != NULL && i < tensor->element_count; i++)
        must(tensor->string_offsets[i] <= tensor->string_offsets[i + 1] &&
             (uint64_t)tensor->string_offsets[i + 1] <= tensor->data_bytes);
    for (uint32_t k = 0; k < tensor->ragged_rank; k++)
        for (uint64_t i = 0; i + 1 < tensor->row_split_counts[k]; i++)
            must(tensor->row_splits[k][i] <= tensor->row_splits[k][i + 1]);
    (void)sum;
}

static unsigned
read_to_the_end(tundish_reader *reader)
{
    const tundish_batch *batch;
    const tundish_tensor *tensor;
    unsigned whole = 0;

    for (int i = 0; i < 3 * SLOTS; i++) {
        if (tundish_next(reader, 0, &batch) != TUNDISH_OK)
            break;
        for (uint32_t k = 0; k < batch->tensor_count; k++)
            if (tundish_tensor_at(batch, k, &tensor) == TUNDISH_OK) {
                touch(tensor);
                whole++;
            }
        tundish_release(reader, batch);
    }
    return whole;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    static uint8_t changed[1 << 18];
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader = NULL;
    size_t welcome_part;
    unsigned whole = 0;
    pthread_t thread;

    if (sound == NULL)
        set_up();
    if (data_bytes < 1 || segment_bytes > sizeof changed)
        return 0;
    welcome_part = data[0] < 16 ? data_bytes * data[0] / 16 : 0;
    data++;
    data_bytes--;
    if (welcome_part > data_bytes)
        welcome_part = data_bytes;
    welcome = (struct tnd_welcome){ .protocol = TND_PROTOCOL_MAX,
                                    .line = 1,
                                    .batches_bytes = segment_bytes,
                                    .returns_bytes = tnd_returns_bytes(SLOTS),
                                    .replica_count = 1,
                                    .total_replica_count = 1 };
    make_returns();
    apply((uint8_t *)&welcome, sizeof welcome, data, welcome_part);
    memcpy(changed, sound, segment_bytes);
    apply(changed, segment_bytes, data + welcome_part, data_bytes - welcome_part);
    must(pwrite(segment, changed, segment_bytes, 0) == (ssize_t)segment_bytes);
    must(pthread_create(&thread, NULL, serve, NULL) == 0);
    options.server = path;
    options.check = data_bytes % 2;
    options.spin_ns = -1;
    options.server_timeout_ns = 1;
    if (tundish_open(&options, &reader) == TUNDISH_OK)
        whole = read_to_the_end(reader);
    must(data_bytes > 0 || whole == BATCHES * spec.column_count);
    pthread_join(thread, NULL);
    tundish_close(reader);
    return 0;
}
