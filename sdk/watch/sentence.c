/* sentence.c - name readers, round shares to percent, and fill in a diagnosis. */
#include "watch/sentence.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
watch_percent(double of_one)
{
    return (int)(of_one * 100 + 0.5) > 100 ? 100 : (int)(of_one * 100 + 0.5);
}

const char *
watch_node(const struct watch_snapshot *snapshot)
{
    return snapshot->copy.header->node;
}

/* "replica 2 on node b". */
void
watch_name_reader(const struct watch_observation *observation, const struct watch_set *reader,
                  char text[WATCH_NAME_BYTES])
{
    char replica[16], group[64], process[16];
    bool is_default;

    watch_label(reader, "replica", replica, sizeof replica);
    watch_label(reader, "group", group, sizeof group);
    watch_label(reader, "process", process, sizeof process); /* of a queue */
    is_default = group[0] == '\0' || strcmp(group, "default") == 0;
    snprintf(text, WATCH_NAME_BYTES, "%s %s%s%s on node %.63s",
             process[0] != '\0' ? "reader" : "replica", process[0] != '\0' ? process : replica,
             is_default ? "" : " of group ", is_default ? "" : group, watch_node(observation->now));
}

/* "replica 2 on node b waits 38% of its time": the beginning of every sentence about waiting. */
void
watch_name_waiting(const struct watch_observation *observation, char text[WATCH_WAITING_BYTES])
{
    char who[WATCH_NAME_BYTES];

    watch_name_reader(observation, observation->waits_most, who);
    snprintf(text, WATCH_WAITING_BYTES, "%s waits %d%% of its time", who,
             watch_percent(observation->wait_share));
}

void
watch_say(struct watch_diagnosis *diagnosis, enum watch_level level, enum watch_cause cause,
          const char *advice, const char *format, ...)
{
    va_list arguments;

    diagnosis->level = level;
    diagnosis->cause = cause;
    va_start(arguments, format);
    vsnprintf(diagnosis->sentence, sizeof diagnosis->sentence, format, arguments);
    va_end(arguments);
    snprintf(diagnosis->advice, sizeof diagnosis->advice, "%s", advice);
}

/* Name the cause of the waiting, and the share of time in which it is busy. */
void
watch_name_culprit(struct watch_diagnosis *diagnosis, const char *culprit, double share_of_time)
{
    snprintf(diagnosis->culprit, sizeof diagnosis->culprit, "%s", culprit);
    diagnosis->share = share_of_time < 1 ? share_of_time : 1; /* runs are counted when they end */
}

void
watch_name_culprit_replica(struct watch_diagnosis *diagnosis, const struct watch_set *reader,
                           double share_of_time)
{
    char replica[16];

    watch_label(reader, "replica", replica, sizeof replica);
    watch_name_culprit(diagnosis, replica, share_of_time);
}
