/* findings.c - the list of findings, as text and as JSON. */
#include "doctor/doctor.h"

#include <stdarg.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/plural.h"
#include "core/redact.h"

static const char *const levels[] = { [DOCTOR_OK] = "ok",
                                      [DOCTOR_NOTE] = "note",
                                      [DOCTOR_WARNING] = "warning",
                                      [DOCTOR_FAULT] = "fault" };

void
doctor_say(struct doctor *doctor, enum doctor_level level, const char *about, const char *advice,
           const char *format, ...)
{
    struct doctor_finding *finding;
    va_list arguments;
    char *text;

    va_start(arguments, format);
    must(vasprintf(&text, format, arguments) >= 0);
    va_end(arguments);
    tnd_redact(text);
    doctor->findings = tnd_realloc(doctor->findings, doctor->count + 1, sizeof *finding);
    finding = &doctor->findings[doctor->count++];
    *finding = (struct doctor_finding){
        .level = level,
        .about = about,
        .text = text,
        .advice = advice == NULL ? NULL : tnd_strdup(advice),
    };
}

void
doctor_close(struct doctor *doctor)
{
    for (uint32_t i = 0; i < doctor->count; i++) {
        free(doctor->findings[i].text);
        free(doctor->findings[i].advice);
    }
    free(doctor->findings);
    free(doctor->tables);
    *doctor = (struct doctor){ 0 };
}

enum doctor_level
doctor_worst(const struct doctor *doctor)
{
    enum doctor_level worst = DOCTOR_OK;

    for (uint32_t i = 0; i < doctor->count; i++)
        if (doctor->findings[i].level > worst)
            worst = doctor->findings[i].level;
    return worst;
}

void
doctor_print_text(const struct doctor *doctor, FILE *file)
{
    uint32_t wrong = 0;

    for (uint32_t i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];

        fprintf(file, "%-8s %-13s %s\n", levels[finding->level], finding->about, finding->text);
        if (finding->advice != NULL)
            fprintf(file, "%-22s -> %s\n", "", finding->advice);
        wrong += finding->level >= DOCTOR_WARNING;
    }
    if (wrong == 0)
        fputs("nothing to change\n", file);
    else
        fprintf(file, "%u thing%s to change\n", wrong, TND_PLURAL(wrong));
}

void
doctor_print_json(const struct doctor *doctor, FILE *file)
{
    struct json json;

    json_start(&json, file);
    json_object(&json);
    json_key_text(&json, "level", levels[doctor_worst(doctor)]);
    json_key(&json, "findings");
    json_array(&json);
    for (uint32_t i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];

        json_object(&json);
        json_key_text(&json, "about", finding->about);
        json_key_text(&json, "level", levels[finding->level]);
        json_key_text(&json, "text", finding->text);
        json_key(&json, "advice");
        if (finding->advice != NULL)
            json_text(&json, finding->advice);
        else
            json_null(&json);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    fputc('\n', file);
}
