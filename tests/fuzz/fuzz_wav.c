/* fuzz_wav.c - any bytes as a WAV file. */
#include "content/sounds/wav.h"
#include "core/must.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct wav wav;
    char fault[160];

    if (!wav_open((struct byte_view){ data, bytes }, &wav, fault))
        return 0;
    must(wav.channels > 0 && wav.samples >= 0);
    for (int64_t s = 0; s < wav.samples; s++)
        for (int64_t c = 0; c < wav.channels; c++)
            must(wav_value(&wav, s, c) >= -1.0F && wav_value(&wav, s, c) < 1.0F);
    return 0;
}
