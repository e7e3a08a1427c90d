/* fuzz_stats.c - a file of figures that says anything at all: read, added up, judged, reported. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/must.h"
#include "stats/stats_writer.h"
#include "watch/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

static unsigned char *sound; /* a file as a server makes it */
static size_t sound_bytes;

static void
make_sound(void)
{
    char folder[] = "/tmp/fuzz_stats.XXXXXX", socket[64], path[80];
    struct tnd_stats_file file = TND_STATS_FILE_NONE;
    struct stats *stats;

    must(mkdtemp(folder) != NULL);
    snprintf(socket, sizeof socket, "%s/s", folder);
    snprintf(path, sizeof path, "%s.stats", socket);
    must(stats_open(socket, 0, &stats) == TUNDISH_OK);
    stats_add(stats, TND_STATS_KIND_stream, "stream=\"train\"");
    stats_add(stats, TND_STATS_KIND_stage, "stream=\"train\",stage=\"map\",node=\"1\"");
    stats_add(stats, TND_STATS_KIND_reader, "stream=\"train\",group=\"default\",replica=\"0\"");
    stats_add(stats, TND_STATS_KIND_thread, "stream=\"train\",thread=\"content 0\"");
    stats_add_text(stats, "plan", "train", "{}");
    must(tnd_stats_open_file(path, &file) == TUNDISH_OK && tnd_stats_read(&file) == TUNDISH_OK);
    sound_bytes = file.byte_count;
    sound = malloc(sound_bytes);
    must(sound != NULL);
    memcpy(sound, file.header, sound_bytes);
    tnd_stats_close(&file);
    stats_close(stats);
    rmdir(folder);
}

/* The input is a list of changes: where (three bytes, in units of four), how many bytes, bytes. */
static void
change(int memory, const uint8_t *data, size_t data_bytes)
{
    must(pwrite(memory, sound, sound_bytes, 0) == (ssize_t)sound_bytes);
    for (size_t at = 0; at + 4 <= data_bytes;) {
        size_t where = ((size_t)data[at] << 16 | (size_t)data[at + 1] << 8 | data[at + 2]) * 4;
        size_t bytes = data[at + 3];

        at += 4;
        if (bytes > data_bytes - at)
            bytes = data_bytes - at;
        if (where + bytes <= sound_bytes)
            must(pwrite(memory, data + at, bytes, (off_t)where) == (ssize_t)bytes);
        at += bytes;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    static FILE *nowhere;
    struct tnd_stats_file file = { .descriptor = memfd_create("figures", MFD_CLOEXEC) };
    struct tnd_stats_track_entry *tracks;
    struct watch_snapshot snapshot;
    struct json json;
    uint32_t count;

    if (sound == NULL) {
        make_sound();
        nowhere = fopen("/dev/null", "w");
        must(nowhere != NULL);
    }
    must(file.descriptor >= 0);
    change(file.descriptor, data, data_bytes);
    if (tnd_stats_read(&file) == TUNDISH_OK &&
        tnd_stats_read_tracks(&file, &tracks, &count) == TUNDISH_OK)
        free(tracks);
    if (watch_snapshot_open(&file, &snapshot) == TUNDISH_OK) {
        struct watch_diagnosis verdict;

        watch_diagnose(&snapshot, &snapshot, &verdict);
        json_start(&json, nowhere);
        watch_report(&snapshot, &snapshot, &verdict, &json);
        watch_snapshot_close(&snapshot);
    }
    tnd_stats_close(&file);
    return 0;
}
