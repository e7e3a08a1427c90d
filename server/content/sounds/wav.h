/* wav.h - 16-bit PCM out of the bytes of a WAV file, as tf.audio.decode_wav reads it. */
#ifndef CONTENT_SOUNDS_WAV_H
#define CONTENT_SOUNDS_WAV_H

#include <stdbool.h>
#include <stdint.h>

#include "core/bytes.h"

struct wav {
    int64_t samples, channels; /* samples of each channel */
    uint32_t rate;             /* samples a second */
    const uint8_t *data;       /* in the file's bytes */
};

/* Find the sound. False: the bytes are bad, and ret_fault says why. */
bool wav_open(struct byte_view bytes, struct wav *ret_wav, char ret_fault[160]);

/* One value, between -1 and 1. */
float wav_value(const struct wav *wav, int64_t sample, int64_t channel);

#endif
