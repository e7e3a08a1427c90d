/* far.c - opening, closing, and who gets which letter. */
#include <stdlib.h>

#include "core/memory.h"
#include "source/files/files.h"
#include "source/peer/far_private.h"

static void
hear(void *user, const struct link_mail *mail)
{
    struct far *far = user;

    if (mail->key.epoch == FAR_ASK_ROWS)
        far_hand_to_clerk(far, FAR_HALL_ROWS, mail);
    else if (mail->key.epoch == FAR_ASK_RECORDS)
        far_hand_to_clerk(far, FAR_HALL_RECORDS, mail);
    else if (mail->key.epoch == FAR_ANSWER)
        far_take_answer(far, mail);
    else if (mail->key.epoch == FAR_RATES)
        far_take_rates(far, mail);
    else
        free(mail->bytes);
}

tundish_status
far_open(const struct far_options *options, struct far **ret_far)
{
    struct source_files_options files_options = { .root = options->root,
                                                  .cache_folder = options->cache_folder,
                                                  .reader_count = 1 };
    struct far *far = tnd_zalloc(1, sizeof *far);
    tundish_status status;

    far->options = *options;
    far->told = tnd_zalloc(link_size(options->link), sizeof *far->told);
    far->asked_at = tnd_zalloc(link_size(options->link), sizeof *far->asked_at);
    pthread_mutex_init(&far->lock, NULL);
    for (int i = 0; i < FAR_HALLS; i++)
        pthread_cond_init(&far->clerks[i].has_task, NULL);
    status = source_files_open(&files_options, &far->files);
    if (status == TUNDISH_OK)
        status = far_start_clerks(far);
    if (status != TUNDISH_OK) {
        far_close(far);
        return status;
    }
    link_open_box(options->link, LINK_ROWS, hear, far);
    *ret_far = far;
    return TUNDISH_OK;
}

void
far_close(struct far *far)
{
    if (far == NULL)
        return;
    link_open_box(far->options.link, LINK_ROWS, NULL, NULL);
    far_stop_clerks(far);
    source_files_close(far->files);
    for (int i = 0; i < FAR_HALLS; i++)
        pthread_cond_destroy(&far->clerks[i].has_task);
    pthread_mutex_destroy(&far->lock);
    free(far->asked_at);
    free(far->told);
    free(far);
}

const struct catalogue *
far_catalogue(const struct far *far)
{
    return far->options.catalogue;
}
