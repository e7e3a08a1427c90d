/* confine.c - run a program as a hardened service is run:
 *
 *     confine ALLOWED,CALLS PROGRAM [ARGUMENT ...]
 *
 * Other system calls fail with EPERM, so do memory that is both written and executed, and
 * sockets of another family than AF_UNIX: what a unit's SystemCallFilter=, MemoryDenyWriteExecute=
 * and RestrictAddressFamilies= do.
 */
#include <errno.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void
restrict_call(scmp_filter_ctx filter, const char *name)
{
    const scmp_datum_t both = PROT_WRITE | PROT_EXEC;
    int number = seccomp_syscall_resolve_name(name);

    if (number == __NR_SCMP_ERROR || number < 0)
        return; /* of another machine, or of a later kernel */
    if (strcmp(name, "mmap") == 0) {
        for (scmp_datum_t allowed = 0; allowed < both; allowed += PROT_WRITE)
            seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1,
                             SCMP_A2(SCMP_CMP_MASKED_EQ, both, allowed));
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1,
                         SCMP_A2(SCMP_CMP_MASKED_EQ, both, PROT_EXEC));
    } else if (strstr(name, "mprotect") != NULL) {
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1,
                         SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    } else if (strcmp(name, "socket") == 0) {
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
    } else {
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
    }
}

int
main(int argc, char **argv)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));

    if (argc < 3 || filter == NULL)
        return 2;
    for (char *name = strtok(argv[1], ","); name != NULL; name = strtok(NULL, ","))
        restrict_call(filter, name);
    if (seccomp_load(filter) != 0) {
        perror("confine");
        return 2;
    }
    seccomp_release(filter);
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 2;
}
