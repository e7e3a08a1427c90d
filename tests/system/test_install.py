"""What `meson install` leaves is enough for programs outside the tree, linked either way."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.environ["TUNDISH_BUILD"]

TRANSFORM = """
#include <stdio.h>
#include <tundish/tundish_transform.h>

int main(int argc, char **argv)
{
    tundish_transform *transform;
    tundish_transformer *transformer;
    const tundish_tensor *tensor;
    tundish_bytes line = { "abc", 3 };

    if (argc != 2 || tundish_transform_open(argv[1], NULL, &transform) != TUNDISH_OK ||
        tundish_transformer_open(transform, &transformer) != TUNDISH_OK ||
        tundish_transform_records(transformer, &line, 1) != TUNDISH_OK ||
        tundish_transform_tensor(transformer, 0, &tensor) != TUNDISH_OK)
        return puts(tundish_transform_last_error()), 1;
    tundish_transformer_close(transformer);
    tundish_transform_close(transform);
    return 0;
}
"""

# Tables that are not what they should be, and transforms that do what they should not.
LIARS = """
#include <string.h>
#include <tundish/tundish_op.h>

static tundish_op_spec given;

static const char *
open_as(const char *parameters, const tundish_op_spec *inputs, tundish_op_spec *outputs,
        void **ret_state)
{
    (void)inputs, (void)ret_state;
    given = (tundish_op_spec){ TUNDISH_INT32, 0 };
    if (strstr(parameters, "dtype"))
        given.dtype = (tundish_dtype)4711;
    if (strstr(parameters, "width"))
        given.width = 4000000000u;
    if (strstr(parameters, "list"))
        given.width = TUNDISH_OP_LIST;
    if (strstr(parameters, "text"))
        given.dtype = TUNDISH_STRING;
    if (strstr(parameters, "bool"))
        given.dtype = TUNDISH_BOOL;
    *outputs = given;
    return strstr(parameters, "complain") ? "no pleasing" : NULL;
}

/* Only the third is to be had: two values for the second of two. */
static void
give_lists(uint64_t count, tundish_op_call *call)
{
    int32_t *rooms[] = { call->list_room(call, 1, 0, 1), call->list_room(call, 0, count, 1),
                         call->list_room(call, 0, 1, 2), call->list_room(call, 0, 0, 1),
                         call->list_room(call, 0, 1, 1), call->list_room(call, 0, 1, UINT64_MAX) };

    for (uint64_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        if (rooms[i] != NULL)
            rooms[i][0] = rooms[i][1] = (int32_t)i;
}

static void
apply(const void *state, uint64_t count, const void *const *inputs, void *const *outputs,
      tundish_op_call *call)
{
    (void)state, (void)inputs;
    call->reject(call, count, "out of range");
    call->reject(call, UINT64_MAX, NULL);
    if (given.dtype == TUNDISH_BOOL)
        memset(outputs[0], 7, count);
    else if (given.width == TUNDISH_OP_LIST)
        give_lists(count, call);
    else if (given.dtype == TUNDISH_INT32)
        memset(outputs[0], 0, 4 * count);
}

static void
close_it(void *state)
{
    (void)state;
}

#define OP(op_name, version, bytes, flag, ins, outs, apply_it) \\
    { version, bytes, op_name, "", flag, ins, outs, open_as, apply_it, close_it }

static const tundish_op ops[] = {
    OP(NULL, 1, sizeof(tundish_op), TUNDISH_OP_PURE, 1, 1, apply),
    OP("version", 99, sizeof(tundish_op), TUNDISH_OP_PURE, 1, 1, apply),
    OP("small", 1, 8, TUNDISH_OP_PURE, 1, 1, apply),
    OP("impure", 1, sizeof(tundish_op), 0, 1, 1, apply),
    OP("none", 1, sizeof(tundish_op), TUNDISH_OP_PURE, 0, 1, apply),
    OP("many", 1, sizeof(tundish_op), TUNDISH_OP_PURE, 1, 4000000000u, apply),
    OP("empty", 1, sizeof(tundish_op), TUNDISH_OP_PURE, 1, 1, NULL),
    OP("good", 1, sizeof(tundish_op), TUNDISH_OP_PURE, 1, 1, apply),
    OP("flags", 1, sizeof(tundish_op), TUNDISH_OP_PURE | 1u << 31, 1, 1, apply),
};

TUNDISH_API const tundish_op *const *
tundish_ops(void)
{
    static const tundish_op *list[] = { &ops[0], &ops[1], &ops[2], &ops[3],
                                        &ops[4], &ops[5], &ops[6], &ops[7],
                                        &ops[8], NULL };

    return list;
}
"""

PIPELINE = """
streams:
  train:
    dataset:
      - text_line: absent.txt
      - string_upper: {}
      - batch: 1
"""


class Install(unittest.TestCase):
    def setUp(self):
        self.path = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.path)
        subprocess.run(
            ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"],
            env=dict(os.environ, DESTDIR=str(self.path)),
            check=True,
        )
        self.libraries = next(self.path.rglob("pkgconfig")).parent

    def flags(self, package, *options):
        environment = dict(
            os.environ,
            PKG_CONFIG_PATH=str(self.libraries / "pkgconfig"),
            PKG_CONFIG_SYSROOT_DIR=str(self.path),
        )
        command = ["pkg-config", *options, package]
        return subprocess.check_output(command, env=environment, text=True).split()

    def compile(self, package, text):
        """The program, linked to the shared library and to the static one."""
        source = self.path / "program.c"
        source.write_text(text)
        headers = self.flags(package, "--cflags")
        shared, static = str(self.path / "shared"), str(self.path / "static")
        subprocess.run(
            ["cc", str(source), *headers, *self.flags(package, "--libs")]
            + [f"-Wl,-rpath,{self.libraries}", "-o", shared],
            check=True,
        )
        private = self.flags(package, "--static", "--libs-only-l", "--libs-only-other")
        private.remove(f"-l{package}")
        archive = str(self.libraries / f"lib{package}.a")
        subprocess.run(["cc", str(source), *headers, archive, *private, "-o", static], check=True)
        return shared, static

    def test_a_trainer_is_built_with_it(self):
        trainer = re.search(r"```c\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
        for program in self.compile("tundish", trainer):
            environment = dict(os.environ, TUNDISH_SERVER="/" + "x" * 200)
            done = subprocess.run([program], env=environment, timeout=600, check=False,
                                  stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("E_ARGUMENT: the socket's path has 201 bytes", done.stderr)

    def test_rows_are_transformed_with_it(self):
        pipeline = self.path / "pipeline.yaml"
        pipeline.write_text(PIPELINE)
        for program in self.compile("tundish_transform", TRANSFORM):
            done = subprocess.run(
                [program, str(pipeline)], stdout=subprocess.PIPE, text=True, check=False
            )
            self.assertEqual(done.returncode, 0, done.stdout)

    def shared_object(self, source):
        path = self.path / "libmine.so"
        flags = self.flags("tundish", "--cflags")
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-fvisibility=hidden", str(source), *flags, "-o", str(path)],
            check=True,
        )
        return path

    def peek_op(self, library, name, parameters):
        file = self.path / "op.yaml"
        file.write_text(
            "streams:\n  a:\n    dataset:\n      - from_tensors: {x: [0.5, 20.0]}\n"
            f"      - op: {{library: '{library}', name: {name}, parameters: {parameters}}}\n"
        )
        return subprocess.run(
            [Path(BUILD) / "server/tundish", "peek", str(file)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=600,
        )

    def test_a_transform_of_ones_own_is_built_with_it(self):
        library = self.shared_object(ROOT / "sdk/examples/op_clamp.c")
        done = self.peek_op(library, "clamp", "[0, 10]")
        self.assertIn("0.5, 1e+01", done.stdout)

    def test_what_a_transform_claims_is_not_believed(self):
        source = self.path / "liars.c"
        source.write_text(LIARS)
        library = self.shared_object(source)
        for name, parameters, words in (
            ("absent", "{}", "no transform 'absent'"),
            ("version", "{}", "version 99"),
            ("small", "{}", "made for version"),
            ("impure", "{}", "pure"),
            ("flags", "{}", "flags that this build does not know"),
            ("none", "{}", "incomplete"),
            ("many", "{}", "incomplete"),
            ("empty", "{}", "incomplete"),
            ("good", "dtype", "unknown dtype 4711"),
            ("good", "width", "makes 4000000000 values from one"),
            ("good", "complain", "no pleasing"),
            ("good", "plain", "0, 0"),
            ("good", "text", '"", ""'),
            ("good", "bool", "true, true"),
            ("good", "list", "ragged 2, 2\n"),
        ):
            done = self.peek_op(library, name, parameters)
            self.assertIn(words, done.stdout, (name, parameters))
            self.assertGreaterEqual(done.returncode, 0, done.stdout)

    def test_programs_have_manual_pages(self):
        pages = {page.name for page in self.path.rglob("man1/*.1")}
        for program in next(self.path.rglob("bin")).iterdir():
            self.assertIn(f"{program.name}.1", pages)


if __name__ == "__main__":
    unittest.main()
