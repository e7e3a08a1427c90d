/* run.c - batches of references. */
#include "order/run.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"

/* The counter of a test that checks for leaked runs, or NULL. */
static _Atomic(_Atomic int64_t *) living;

void
run_count_living(_Atomic int64_t *count)
{
    atomic_store_explicit(&living, count, memory_order_release);
}

/* Acquire pairs with the store in run_count_living: the counter is initialized. */
static void
note_living(int64_t change)
{
    _Atomic int64_t *total = atomic_load_explicit(&living, memory_order_acquire);

    if (__builtin_expect(total != NULL, 0))
        atomic_fetch_add_explicit(total, change, memory_order_relaxed);
}

static size_t
bytes_of(uint32_t width, uint64_t room)
{
    uint64_t word_count;

    must(!__builtin_mul_overflow(room, width, &word_count));
    must(word_count < (UINT64_MAX - sizeof(struct run)) / sizeof(uint64_t));
    return sizeof(struct run) + word_count * sizeof(uint64_t);
}

/* jemalloc gives the pages of blocks of 8 MiB back at once. */
enum { LARGE_BYTES = 4 << 20, SPARES_MAX = 2 };
static const size_t SPARE_BYTES_MAX = 256 << 20;

/* All streams share it: a stream takes and gives one for each batch. */
static struct {
    pthread_mutex_t lock;
    struct run *runs[SPARES_MAX];
    size_t bytes[SPARES_MAX]; /* 0: there is none */
} spares = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct run *
take_spare(size_t bytes)
{
    struct run *run = NULL;

    pthread_mutex_lock(&spares.lock);
    for (size_t i = 0; i < SPARES_MAX && run == NULL; i++)
        if (spares.bytes[i] == bytes) {
            run = spares.runs[i];
            spares.bytes[i] = 0;
        }
    pthread_mutex_unlock(&spares.lock);
    return run;
}

/* Keep it in place of the oldest, which is freed. */
static void
put_spare(struct run *run, size_t bytes)
{
    struct run *oldest = NULL;

    pthread_mutex_lock(&spares.lock);
    if (spares.bytes[SPARES_MAX - 1] != 0)
        oldest = spares.runs[SPARES_MAX - 1];
    for (size_t i = SPARES_MAX - 1; i > 0; i--) {
        spares.runs[i] = spares.runs[i - 1];
        spares.bytes[i] = spares.bytes[i - 1];
    }
    spares.runs[0] = run;
    spares.bytes[0] = bytes;
    pthread_mutex_unlock(&spares.lock);
    free(oldest);
}

void
run_drop_spares(void)
{
    for (size_t i = 0; i < SPARES_MAX; i++)
        put_spare(NULL, 0);
}

static void
free_run(struct run *run)
{
    size_t bytes = run->is_large ? bytes_of(run->width, run->element_count) : 0;

    if (bytes == 0 || bytes > SPARE_BYTES_MAX / SPARES_MAX)
        free(run);
    else
        put_spare(run, bytes);
}

static struct run *
begin(uint32_t width, uint64_t run_words, size_t bytes)
{
    struct run *run = bytes >= LARGE_BYTES ? take_spare(bytes) : NULL;

    if (run == NULL)
        run = tnd_alloc(bytes);
    note_living(1);
    *run = (struct run){
        .count_of_owners = 1,
        .width = width,
        .run_words = run_words,
        .words = run->storage,
    };
    return run;
}

struct run *
run_begin(uint32_t width, uint64_t run_words, uint64_t room)
{
    return begin(width, run_words, bytes_of(width, room));
}

struct run *
run_grow(struct run *run, uint64_t room)
{
    run = tnd_realloc(run, bytes_of(run->width, room), 1);
    run->words = run->storage;
    return run;
}

struct run *
run_finish(struct run *run, uint64_t room)
{
    if (run->element_count < room)
        run = run_grow(run, run->element_count); /* it may be kept for long */
    run->row_count = run->element_count;
    run->is_large = run->element_count * run->width >= LARGE_BYTES / sizeof *run->storage;
    return run;
}

/* Relaxed is enough: the caller already owns a count, so the run cannot be freed meanwhile. */
static struct run *
run_retain(struct run *run)
{
    atomic_fetch_add_explicit(&run->count_of_owners, 1, memory_order_relaxed);
    return run;
}

struct run *
run_new(const uint64_t *words, uint64_t element_count, uint32_t width, uint64_t run_words)
{
    struct run *run = run_begin(width, run_words, element_count);

    if (element_count > 0)
        memcpy(run->storage, words, element_count * width * sizeof *words);
    run->element_count = element_count;
    return run_finish(run, element_count);
}

/* A window of a series is a batch of its own. */
static bool
is_slice(const struct run *run)
{
    return run->parent != NULL && !run->parent->is_series;
}

struct run *
run_view(struct run *parent, uint64_t begin, uint64_t count)
{
    struct run *view = tnd_alloc(sizeof *view);

    must(begin + count >= begin && begin + count <= parent->element_count);
    note_living(1);
    *view = (struct run){
        .count_of_owners = 1,
        .width = parent->width,
        .run_words = parent->run_words,
        .element_count = count,
        .row_count = count,
        .repeated = run_repeated(parent, begin, count),
        .words = parent->words + begin * parent->width,
        /* Refer to the whole batch, so that chains of slices stay short. */
        .parent = run_retain(is_slice(parent) ? parent->parent : parent),
    };
    return view;
}

static size_t
bytes_of_series(uint32_t width, uint64_t room, uint64_t views)
{
    size_t bytes = bytes_of(width, room);

    must(views < (SIZE_MAX - bytes) / sizeof(struct run));
    return bytes + (size_t)views * sizeof(struct run);
}

struct run *
run_begin_series(uint32_t width, uint64_t run_words, uint64_t room, uint64_t views)
{
    struct run *series = begin(width, run_words, bytes_of_series(width, room, views));

    series->is_series = true;
    series->room = room;
    series->views_left = views;
    return series;
}

struct run *
run_grow_series(struct run *series, uint64_t room, uint64_t views)
{
    must_in_debug(series->is_series && run_is_unshared(series));
    if (room > series->room) {
        series = tnd_realloc(series, bytes_of_series(series->width, room, views), 1);
        series->words = series->storage;
        series->room = room;
    }
    series->views_left = views;
    return series;
}

struct run *
run_of_series(struct run *series, uint64_t begin, uint64_t count)
{
    bool lies_in_parent = series->views_left > 0;
    struct run *view;

    if (lies_in_parent)
        view = (struct run *)(void *)(series->storage + series->room * series->width) +
               --series->views_left;
    else
        view = tnd_alloc(sizeof *view);
    must(series->is_series && begin + count >= begin && begin + count <= series->element_count);
    note_living(1);
    *view = (struct run){
        .count_of_owners = 1,
        .width = series->width,
        .run_words = series->run_words,
        .element_count = count,
        .lies_in_parent = lies_in_parent,
        .row_count = count,
        .words = series->words + begin * series->width,
        .parent = run_retain(series),
    };
    return view;
}

/* Acquire: what others did with it before they gave it up has been done. */
bool
run_is_unshared(struct run *run)
{
    return atomic_load_explicit(&run->count_of_owners, memory_order_acquire) == 1;
}

struct run *
run_join(const uint64_t *pieces, uint64_t piece_count, uint32_t width, uint64_t run_words,
         uint64_t row_count)
{
    struct run *run = run_new(pieces, piece_count, width, run_words);

    run->in_pieces = true;
    run->row_count = row_count;
    return run;
}

/* The pieces that hold rows [begin, begin + count), cut to them. For no rows this is one empty
 * piece of the first, so that the slice still knows its batch. */
static struct run *
slice_pieces(struct run *run, uint64_t begin, uint64_t count)
{
    uint64_t *pieces = tnd_alloc(run->element_count * run->width * sizeof *pieces);
    uint64_t piece_count = 0;
    uint64_t end = begin + count;
    uint64_t first_row = 0; /* of the piece */
    struct run *slice;

    for (uint64_t i = 0; i < run->element_count && (first_row < end || piece_count == 0); i++) {
        const uint64_t *piece = run->words + i * run->width;
        uint64_t rows, from, to;

        must(run_words_rows(piece, run->width, run->run_words, &rows));
        from = begin > first_row ? begin - first_row : 0;
        to = end - first_row < rows ? end - first_row : rows;
        if (from < to || (count == 0 && piece_count == 0)) {
            from = from < to ? from : to;
            run_words_slice(piece, run->width, run->run_words, from, to - from,
                            pieces + piece_count * run->width);
            piece_count++;
        }
        first_row += rows;
    }
    slice = run_join(pieces, piece_count, run->width, run->run_words, count);
    slice->repeated = run_repeated(run, begin, count);
    slice->parent = run_retain(run->parent != NULL ? run->parent : run);
    free(pieces);
    return slice;
}

struct run *
run_slice(struct run *run, uint64_t begin, uint64_t count)
{
    must(begin + count >= begin && begin + count <= run->row_count);
    return run->in_pieces ? slice_pieces(run, begin, count) : run_view(run, begin, count);
}

struct run
run_part(const struct run *run, uint64_t begin, uint64_t count)
{
    return (struct run){
        .width = run->width,
        .run_words = run->run_words,
        .element_count = count,
        .row_count = count,
        .repeated = run_repeated(run, begin, count),
        .words = run->words + begin * run->width,
    };
}

uint64_t
run_repeated(const struct run *run, uint64_t begin, uint64_t count)
{
    uint64_t own = run->row_count - run->repeated;

    if (begin + count <= own)
        return 0;
    return begin >= own ? count : begin + count - own;
}

static struct run *
append_elements(struct run *to, const struct run *from)
{
    size_t bytes = (size_t)from->element_count * from->width * sizeof *from->words;

    to = run_grow(to, to->element_count + from->element_count);
    if (bytes > 0)
        memcpy(to->storage + to->element_count * to->width, from->words, bytes);
    run_words_retain(from->words, from->element_count, from->width, from->run_words);
    to->element_count += from->element_count;
    to->row_count += from->row_count;
    return to;
}

struct run *
run_fill(const struct run *run, struct run *from, uint64_t rows)
{
    struct run *filled = append_elements(run_begin(run->width, run->run_words, 0), run);

    must(from->row_count > 0 && from->width == run->width && from->in_pieces == run->in_pieces);
    filled->in_pieces = run->in_pieces;
    filled->repeated = rows;
    while (rows > 0) {
        struct run *part = run_slice(from, 0, rows < from->row_count ? rows : from->row_count);

        filled = append_elements(filled, part);
        rows -= part->row_count;
        run_release(part);
    }
    return filled;
}

bool
run_words_rows(const uint64_t *words, uint32_t width, uint64_t run_words, uint64_t *ret_rows)
{
    const struct run *first = NULL;

    for (uint32_t i = 0; i < width; i++) {
        const struct run *run = run_of_word(words[i]);

        if ((run_words >> i & 1) == 0 || run == NULL)
            continue;
        if (first == NULL)
            first = run;
        if (run->row_count != first->row_count)
            return false;
    }
    if (first == NULL)
        return false;
    *ret_rows = first->row_count;
    return true;
}

void
run_words_slice(const uint64_t *words, uint32_t width, uint64_t run_words, uint64_t begin,
                uint64_t count, uint64_t *ret_words)
{
    for (uint32_t i = 0; i < width; i++) {
        struct run *run = run_of_word(words[i]);

        ret_words[i] = words[i];
        if ((run_words >> i & 1) != 0 && run != NULL)
            ret_words[i] = run_word(run_slice(run, begin, count));
    }
}

/* The last owner need not count down: nobody else can take one more. acquire and acq_rel: the
 * thread that frees sees everything that other owners did with the run. */
static bool
is_given_up(struct run *run)
{
    return atomic_load_explicit(&run->count_of_owners, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(&run->count_of_owners, 1, memory_order_acq_rel) == 1;
}

void
run_release(struct run *run)
{
    struct run *parent;
    bool lies_in_parent;

    if (run == NULL || !is_given_up(run))
        return;
    parent = run->parent;
    lies_in_parent = run->lies_in_parent;
    /* A view does not own its elements: they lie in the parent, which it retains. A slice of pieces
     * owns its pieces. */
    if (parent == NULL || run->in_pieces)
        run_words_release(run->words, run->element_count, run->width, run->run_words);
    if (!lies_in_parent)
        free_run(run);
    run_release(parent);
    note_living(-1);
}

void
run_words_release(const uint64_t *words, uint64_t element_count, uint32_t width, uint64_t run_words)
{
    if (run_words == 0)
        return;
    for (uint64_t i = 0; i < element_count; i++, words += width)
        for (uint64_t left = run_words; left != 0; left &= left - 1)
            run_release(run_of_word(words[__builtin_ctzll(left)]));
}

void
run_words_retain(const uint64_t *words, uint64_t element_count, uint32_t width, uint64_t run_words)
{
    if (run_words == 0)
        return;
    for (uint64_t i = 0; i < element_count; i++, words += width)
        for (uint64_t left = run_words; left != 0; left &= left - 1) {
            struct run *run = run_of_word(words[__builtin_ctzll(left)]);

            if (run != NULL)
                run_retain(run);
        }
}
