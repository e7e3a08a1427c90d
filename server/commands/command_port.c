/* command_port.c - `tundish port`: the package for Python does it, since it runs the program that
 * is ported; this names the interpreter and hands the words on. */
#include "commands/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"

/* An interpreter without the package would end with 1, which means a list. */
static const char program[] = "import sys\n"
                              "try:\n"
                              "    from tundish.port.__main__ import main\n"
                              "except ImportError as error:\n"
                              "    print(f'tundish port: {sys.executable}: {error}; TUNDISH_PYTHON "
                              "names the Python that has the "
                              "package and TensorFlow', file=sys.stderr)\n"
                              "    sys.exit(2)\n"
                              "sys.exit(main())\n";

static int
command_port_run(int argc, char **argv)
{
    const char *python = getenv("TUNDISH_PYTHON");
    const char **words;

    if (argc < 2)
        return command_misused(&command_port, "name the function that makes the datasets");
    if (python == NULL || python[0] == '\0')
        python = "python3";
    words = tnd_zalloc((size_t)argc + 3, sizeof *words);
    words[0] = python;
    words[1] = "-c";
    words[2] = program;
    memcpy(words + 3, argv + 1, (size_t)(argc - 1) * sizeof *words);
    execvp(python, (char *const *)words);
    fprintf(stderr, "tundish port: %s: %s; TUNDISH_PYTHON names the Python with TensorFlow\n",
            python, strerror(errno));
    free(words);
    return EXIT_SYSTEM;
}

const struct command command_port = {
    .name = "port",
    .arguments = "MODULE:FUNCTION",
    .help = "Write the pipeline file of a tf.data program, in Python, and compare their batches.",
    .details =
        "  --args VALUE ...    arguments of the function; NAME=VALUE by name\n"
        "  --transform M:F     tf.Transform's preprocessing_fn, which follows on each dataset\n"
        "  --replicas N        replicas of each node that the file says (default: the program's)\n"
        "  --map-path OLD=NEW  paths that begin with OLD begin with NEW in the file, as\n"
        "                      /data=s3://bucket/data; may be repeated\n"
        "  --no-python         list what has no stage, and do not leave it to TensorFlow in\n"
        "                      interpreters\n"
        "  --output FILE       the pipeline file (default: standard output); in short -o\n"
        "  --check N           compare N batches of each stream with TensorFlow's, to the bit\n"
        "\n"
        "$TUNDISH_PYTHON is the interpreter that has TensorFlow and the package (default: "
        "python3).\n"
        "Exit status: 0 all is carried over, 1 not all, and the list is printed, 2 the program "
        "failed.\n",
    .run = command_port_run,
};
