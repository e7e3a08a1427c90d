/* credentials.c - looks for credentials in the order in which the stores' own programs do. */
#include "remote/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/read_write.h"

enum { TOKEN_BYTES_MAX = 16 << 10 };

void
credentials_close(struct credentials *credentials)
{
    char *secrets[] = { credentials->key, credentials->secret, credentials->session,
                        credentials->bearer };

    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        if (secrets[i] != NULL)
            explicit_bzero(secrets[i], strlen(secrets[i]));
        free(secrets[i]);
    }
    *credentials = (struct credentials){ 0 };
}

bool
credentials_are_words(const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

static const char *
variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool
take_pair(const char *key, const char *secret, struct credentials *ret_credentials)
{
    if (key == NULL || secret == NULL)
        return false;
    *ret_credentials = (struct credentials){ .key = tnd_strdup(key), .secret = tnd_strdup(secret) };
    return true;
}

static bool
find_in_environment(enum remote_scheme scheme, struct credentials *ret_credentials)
{
    const char *session = variable("AWS_SESSION_TOKEN");
    const char *bearer = variable("GOOGLE_OAUTH_ACCESS_TOKEN");

    if (scheme == REMOTE_GS && bearer != NULL) {
        *ret_credentials = (struct credentials){ .bearer = tnd_strdup(bearer) };
        return true;
    }
    if (scheme == REMOTE_GS)
        return take_pair(variable("GS_ACCESS_KEY_ID"), variable("GS_SECRET_ACCESS_KEY"),
                         ret_credentials);
    if (!take_pair(variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"),
                   ret_credentials))
        return false;
    if (session != NULL)
        ret_credentials->session = tnd_strdup(session);
    return true;
}

static bool
find_in_profiles(struct credentials *ret_credentials)
{
    const char *profile = variable("AWS_PROFILE"), *home = variable("HOME");
    const char *named[] = { variable("AWS_SHARED_CREDENTIALS_FILE"), variable("AWS_CONFIG_FILE") };
    static const char *const usual[] = { ".aws/credentials", ".aws/config" };
    bool found = false;

    for (int i = 0; i < 2 && !found; i++) {
        char *path = named[i] != NULL ? tnd_strdup(named[i])
                     : home != NULL   ? tnd_sprintf("%s/%s", home, usual[i])
                                      : NULL;

        found = path != NULL &&
                profile_read_keys(path, profile != NULL ? profile : "default", ret_credentials);
        free(path);
    }
    return found;
}

/* A file with a [profile], or with nothing but a token, which another program may renew. */
static tundish_status
read_file(const char *path, struct credentials *ret_credentials)
{
    const char *profile = variable("AWS_PROFILE");
    char text[TOKEN_BYTES_MAX + 1];
    size_t bytes = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int error = file < 0 ? errno : tnd_read_at(file, text, TOKEN_BYTES_MAX, 0, &bytes);

    if (file >= 0)
        close(file);
    if (error != 0)
        return tnd_fail_errno(error, "remote.credentials: the file %s cannot be read", path);
    if (profile_read_keys(path, profile != NULL ? profile : "default", ret_credentials))
        return TUNDISH_OK;
    text[bytes] = '\0';
    bytes = strcspn(text, "\r\n");
    if (bytes == 0 || strpbrk(text, "[ =") != NULL)
        return tnd_fail(TUNDISH_E_PIPELINE,
                        "remote.credentials: the file %s has neither a profile [default] with "
                        "aws_access_key_id and aws_secret_access_key nor one line with a token",
                        path);
    *ret_credentials = (struct credentials){ .bearer = tnd_strndup(text, bytes) };
    explicit_bzero(text, sizeof text);
    return TUNDISH_OK;
}

static tundish_status
find(const struct credential_source *source, struct credentials *ret_credentials)
{
    const char *choice = source->choice;

    if (source->scheme != REMOTE_S3 && source->scheme != REMOTE_GS)
        return TUNDISH_OK;
    if (strcmp(choice, "none") == 0)
        return TUNDISH_OK;
    if (strcmp(choice, "auto") != 0 && strcmp(choice, "environment") != 0)
        return read_file(choice, ret_credentials);
    if (find_in_environment(source->scheme, ret_credentials))
        return TUNDISH_OK;
    if (strcmp(choice, "environment") == 0)
        return tnd_fail(TUNDISH_E_PIPELINE, "remote.credentials: the environment has none; set %s",
                        source->scheme == REMOTE_GS
                            ? "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, or "
                              "GOOGLE_OAUTH_ACCESS_TOKEN"
                            : "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
    if (source->scheme == REMOTE_S3 && find_in_profiles(ret_credentials))
        return TUNDISH_OK;
    (void)metadata_find(source, ret_credentials);
    return TUNDISH_OK;
}

tundish_status
credentials_find(const struct credential_source *source, struct credentials *ret_credentials)
{
    tundish_status status;

    *ret_credentials = (struct credentials){ 0 };
    status = find(source, ret_credentials);
    if (status == TUNDISH_OK && (!credentials_are_words(ret_credentials->key) ||
                                 !credentials_are_words(ret_credentials->secret) ||
                                 !credentials_are_words(ret_credentials->session) ||
                                 !credentials_are_words(ret_credentials->bearer))) {
        credentials_close(ret_credentials);
        status = tnd_fail(TUNDISH_E_PIPELINE,
                          "remote.credentials: a key or token contains a control character, such "
                          "as the end of a line; write it again without");
    }
    return status;
}
