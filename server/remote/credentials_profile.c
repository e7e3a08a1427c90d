/* credentials_profile.c - profiles in files of Amazon's form: [name], and `word = value` below. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "remote/credentials.h"

enum { LINE_BYTES_MAX = 8192 };

/* Cut blanks from both ends. */
static char *
trim(char *text)
{
    char *end;

    text += strspn(text, " \t\r\n");
    for (end = text + strlen(text); end > text && strchr(" \t\r\n", end[-1]) != NULL; end--)
        end[-1] = '\0';
    return text;
}

/* [default], [name]; in a config file [profile name]. */
static bool
is_profile(char *line, const char *profile)
{
    char *end = strchr(line, ']'), *name;

    if (line[0] != '[' || end == NULL)
        return false;
    *end = '\0';
    name = trim(line + 1);
    if (strncmp(name, "profile ", 8) == 0)
        name = trim(name + 8);
    return strcmp(name, profile) == 0;
}

static void
take(char **to, const char *value)
{
    free(*to);
    *to = tnd_strdup(value);
}

struct profile {
    struct credentials credentials;
    char *region;
};

static void
take_line(char *line, struct profile *profile)
{
    char *equals = strchr(line, '=');
    const char *word, *value;

    if (equals == NULL)
        return;
    *equals = '\0';
    word = trim(line);
    value = trim(equals + 1);
    if (strcmp(word, "aws_access_key_id") == 0)
        take(&profile->credentials.key, value);
    else if (strcmp(word, "aws_secret_access_key") == 0)
        take(&profile->credentials.secret, value);
    else if (strcmp(word, "aws_session_token") == 0)
        take(&profile->credentials.session, value);
    else if (strcmp(word, "region") == 0)
        take(&profile->region, value);
}

static struct profile
read_profile(const char *path, const char *name)
{
    struct profile profile = { 0 };
    FILE *file = fopen(path, "re");
    char line[LINE_BYTES_MAX];
    bool is_in = false;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *text = trim(line);

        if (text[0] == '[')
            is_in = is_profile(text, name);
        else if (is_in && text[0] != '#' && text[0] != ';')
            take_line(text, &profile);
    }
    explicit_bzero(line, sizeof line);
    if (file != NULL)
        fclose(file);
    return profile;
}

bool
profile_read_keys(const char *path, const char *name, struct credentials *ret_credentials)
{
    struct profile profile = read_profile(path, name);
    bool has_keys = profile.credentials.key != NULL && profile.credentials.secret != NULL;

    if (has_keys)
        *ret_credentials = profile.credentials;
    else
        credentials_close(&profile.credentials);
    free(profile.region);
    return has_keys;
}

char *
profile_read_region(void)
{
    const char *path = getenv("AWS_CONFIG_FILE"), *home = getenv("HOME");
    const char *name = getenv("AWS_PROFILE");
    char *usual = home != NULL ? tnd_sprintf("%s/.aws/config", home) : NULL;
    struct profile profile = { 0 };

    if (path == NULL)
        path = usual;
    if (path != NULL)
        profile = read_profile(path, name != NULL && name[0] != '\0' ? name : "default");
    credentials_close(&profile.credentials);
    free(usual);
    return profile.region;
}
