/* expression_context.c - replace variables by their values in the text. Blanks fill the rest of a
 * variable's length, so that positions in messages stay right. */
#include "content/expression/expression_context.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

static const char VARIABLE[] = "$per_replica_batch_size";

/* The number of replicas; 0: it is not known. */
static int64_t
replicas_in_sync(const struct expression_config *config)
{
    for (uint32_t i = 0; i < config->literal_count; i++)
        if (strcmp(config->literals[i].name, EXPRESSION_REPLICAS_IN_SYNC) == 0)
            return config->literals[i].value;
    return 0;
}

/* The length of "(G)"; 0: something else, of which the parser will complain. */
static size_t
read_argument(const char *text, int64_t *ret_number)
{
    const char *at = text;
    char *end;

    while (isspace((unsigned char)*at))
        at++;
    if (*at++ != '(')
        return 0;
    errno = 0;
    *ret_number = strtoll(at, &end, 10);
    if (end == at || errno != 0)
        return 0;
    while (isspace((unsigned char)*end))
        end++;
    return *end == ')' ? (size_t)(end + 1 - text) : 0;
}

tundish_status
expression_fill_in(const struct expression_config *config, char **ret_text)
{
    int64_t replicas = replicas_in_sync(config), global;
    char *text = tnd_strdup(config->text), *at = text;

    while (replicas > 0 && (at = strstr(at, VARIABLE)) != NULL) {
        size_t name_bytes = strlen(VARIABLE);
        size_t argument_bytes = read_argument(at + name_bytes, &global);
        char number[24];

        /* Distributed Input refuses a global batch size that the replicas cannot share evenly,
         * too. */
        if (argument_bytes > 0 && global % replicas != 0) {
            spec_complain(config->errors, config->line, config->column + (uint32_t)(at - text),
                          "the global batch size %" PRId64 " is not divisible by the %" PRId64
                          " replicas in sync: %" PRId64 " rows would be left over",
                          global, replicas, global % replicas);
            free(text);
            return TUNDISH_E_PIPELINE;
        }
        if (argument_bytes > 0) {
            int digits = snprintf(number, sizeof number, "%" PRId64, global / replicas);

            memset(at, ' ', name_bytes + argument_bytes);
            memcpy(at, number, (size_t)digits);
        }
        at += name_bytes;
    }
    *ret_text = text;
    return TUNDISH_OK;
}
