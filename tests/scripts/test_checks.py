"""The checks of the tree find what they are there to find, and nothing else."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


class Check(unittest.TestCase):
    script = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def put(self, path, text=""):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def complaints(self):
        done = subprocess.run(
            [SCRIPTS / self.script, self.root], capture_output=True, text=True, timeout=600
        )
        self.assertEqual(bool(done.stderr), done.returncode != 0, done)
        return done.stderr

    def assert_fine(self):
        self.assertEqual(self.complaints(), "")


class Layers(Check):
    script = "check-layers"

    def setUp(self):
        super().setUp()
        for path in (
            "sdk/core/status.h",
            "sdk/include/tundish/tundish.h",
            "server/order/order.h",
            "server/order/order_repeat.h",
            "server/commands/commands.h",
        ):
            self.put(path)

    def includes(self, path, line):
        self.put(path, f"#include {line}\n")
        return self.complaints()

    def test_a_kind_includes_its_contract_and_the_core(self):
        self.put("server/order/order_shuffle.c", '#include "order/order.h"\n#include "core/status.h"')
        self.assert_fine()

    def test_a_kind_includes_its_own_header(self):
        self.assertEqual(self.includes("server/order/order_repeat.c", '"order/order_repeat.h"'), "")

    def test_a_kind_never_includes_another(self):
        path = "server/order/order_shuffle.c"
        self.assertIn("one kind never", self.includes(path, '"order/order_repeat.h"'))
        self.assertIn("one kind never", self.includes(path, '"order_repeat.h"'))

    def test_a_kind_never_includes_another_from_a_folder_within(self):
        path = "server/order/shuffle/order_shuffle.c"
        self.assertIn("one kind never", self.includes(path, '"order/order_repeat.h"'))

    def test_parts_of_one_thing_are_no_kinds(self):
        self.put("server/content/vocabulary/vocab_table.h")
        self.assertEqual(self.includes(
                "server/content/vocabulary/vocab_build.c", '"content/vocabulary/vocab_table.h"'
            ),
            "",
        )

    def test_the_sdk_never_includes_the_server(self):
        self.assertIn("server/", self.includes("sdk/client/reader.c", '"order/order.h"'))

    def test_the_admin_never_includes_the_server(self):
        self.assertIn("shared memory", self.includes("admin/page.c", '"order/order.h"'))

    def test_a_public_header_stands_alone(self):
        path = "sdk/include/tundish/tundish_op.h"
        self.assertIn("stands alone", self.includes(path, '"core/status.h"'))
        self.assertEqual(self.includes(path, "<stdint.h>"), "")
        self.assertEqual(self.includes(path, '"tundish/tundish.h"'), "")

    def test_every_family_of_kinds_is_known(self):
        for kind in (
            "source/source_csv",
            "source/scan/scanner_csv",
            "content/text/content_substr",
            "content/images/picture_png",
            "learn/analyzers/analyzer_bins",
            "link/link_mpi",
        ):
            folder, _, stem = kind.rpartition("/")
            other = f"{folder}/{stem.partition('_')[0]}_other.h"
            self.put(f"server/{other}")
            with self.subTest(kind):
                self.assertIn("one kind never", self.includes(f"server/{kind}.c", f'"{other}"'))
                self.put(f"server/{kind}.c")

    def test_an_include_never_goes_up_the_order_of_folders(self):
        self.put("server/source/source.h")
        said = self.includes("server/order/order.c", '"source/source.h"')
        self.assertIn("source stands above order", said)
        self.put("server/order/order.c")
        self.assertEqual(self.includes("server/source/source.c", '"order/order.h"'), "")

    def test_a_header_may_stand_lower_than_its_folder(self):
        self.put("server/plan/plan_node.h")
        self.put("server/plan/plan.h", '#include "plan/plan_node.h"')
        self.assertEqual(self.includes("server/order/order.h", '"plan/plan_node.h"'), "")
        self.assertIn("stands above", self.includes("server/order/order.h", '"plan/plan.h"'))

    def test_a_low_header_includes_nothing_of_its_folder(self):
        self.put("server/plan/plan.h")
        said = self.includes("server/plan/plan_node.h", '"plan/plan.h"')
        self.assertIn("plan stands above plan/plan_node.h", said)

    def test_a_folder_without_a_place_in_the_order_is_named(self):
        said = self.includes("server/extra/extra.c", '"order/order.h"')
        self.assertIn("does not say where", said)

    def test_only_the_top_knows_the_commands(self):
        self.assertIn("commands", self.includes("server/order/order.c", '"commands/commands.h"'))
        self.put("server/order/order.c")
        self.assertEqual(self.includes("server/main.c", '"commands/commands.h"'), "")

    def test_mpi_stays_in_one_file(self):
        self.assertIn("link_mpi.c", self.includes("server/session/session.c", "<mpi.h>"))
        self.put("server/session/session.c")
        self.assertEqual(self.includes("server/link/link_mpi.c", "<mpi.h>"), "")

    def test_an_include_never_climbs(self):
        said = self.includes("server/order/order.c", '"../commands/commands.h"')
        self.assertIn("from the layer's folder", said)

    def test_headers_in_a_ring_are_found(self):
        self.put("server/plan/plan.h", '#include "order/order.h"\n')
        self.put("server/order/order.h", '#include "plan/plan.h"\n')
        self.assertIn("include each other", self.complaints())


class StageNames(Check):
    script = "check-layers"

    def setUp(self):
        super().setUp()
        self.put(
            "server/spec/stages.def",
            'ORDER(shuffle, SHORT, "s", "h")\nREADER(range, SHORT, "r", "h")\nPLANNED_ORDER(deal)\n',
        )

    def finds(self, path, text):
        self.put(path, text)
        return self.complaints()

    def test_a_comparison_with_a_name_is_found(self):
        for call in (
            'strcmp(node->name, "shuffle") == 0',
            'node_is(node, "range")',
            'is(node_of(a, (b)), "deal")',
        ):
            self.assertIn("server/plan/a.c:2 asks", self.finds("server/plan/a.c", f"\nif ({call})"))

    def test_a_table_of_names_is_found(self):
        table = 'static const char *const names[] = { "x",\n "range" };'
        self.assertIn('order.c:2 asks for the stage "range"', self.finds("server/order/order.c", table))

    def test_a_look_into_the_tables_by_name_is_found(self):
        self.assertIn("asks", self.finds("server/plan/a.c", 'ops = order_find("shuffle");'))

    def test_all_folders_are_looked_at(self):
        for folder in ("source/scan", "content/images", "inference", "stats", "pipeline", "commands"):
            path = f"server/{folder}/a.c"
            self.assertIn(f"{path}:1 asks", self.finds(path, 'strcmp(name, "range")'))

    def test_the_value_of_a_parameter_is_no_stage(self):
        self.put("server/content/a.c", 'strcmp(spec_text(stage, "order"), "shuffle");')
        self.assert_fine()

    def test_a_folder_within_is_looked_at(self):
        self.assertIn("asks", self.finds("server/session/nodes/a.c", 'strcmp(name, "range")'))

    def test_a_stage_may_say_its_own_name(self):
        self.put("server/order/order_shuffle.c", 'strcmp(name, "shuffle");')
        self.assert_fine()

    def test_parameters_fields_and_comments_are_fine(self):
        self.put(
            "server/batch/a.c",
            'x = spec_bool(stage, "shuffle");\ny = (struct y){ .name = "range" };\n'
            '/* strcmp(name, "range") */ strcmp(name, "other");',
        )
        self.assert_fine()

    def test_formats_of_files_may_share_names(self):
        self.put("server/commands/rows_in.c", 'strcmp(form, "range");')
        self.assert_fine()

    def test_an_option_may_share_a_name(self):
        self.put("server/commands/a.c", 'struct row rows[] = { { "range", .text = &a.range }, { 0 } };')
        self.assert_fine()
        self.assertIn("asks", self.finds("server/commands/a.c", 'x = { { "range", .text_of = a } };'))


class Headers(Check):
    script = "check-headers"

    def header(self, path, guard, text=""):
        self.put(path, f"/* a header */\n#ifndef {guard}\n#define {guard}\n{text}\n#endif\n")
        return self.complaints()

    def test_guards_are_the_paths(self):
        for path, guard in (
            ("sdk/core/status.h", "TND_CORE_STATUS_H"),
            ("sdk/include/tundish/tundish_op.h", "TUNDISH_OP_H"),
            ("sdk/python/src/array.h", "PYTHON_ARRAY_H"),
            ("server/source/rows/npy.h", "SOURCE_ROWS_NPY_H"),
            ("admin/page.h", "ADMIN_PAGE_H"),
        ):
            self.assertEqual(self.header(path, guard), "")
        self.assertIn("is SOURCE_NPY_H, not SOURCE_ROWS_NPY_H",
                      self.header("server/source/rows/npy.h", "SOURCE_NPY_H"))

    def test_a_header_without_a_guard_is_found(self):
        self.put("server/order/run.h", "struct run {\n    int at;\n};\n")
        self.assertIn("server/order/run.h has no include guard ORDER_RUN_H", self.complaints())

    def test_a_tag_has_one_header(self):
        self.assertEqual(self.header("server/order/run.h", "ORDER_RUN_H", "struct run {\n};"), "")
        self.assertEqual(self.header("server/order/ops.h", "ORDER_OPS_H", "struct run;\nstruct run *next;"), "")
        self.assertIn("sdk/core/run.h both define the tag run",
                      self.header("sdk/core/run.h", "TND_CORE_RUN_H", "enum run { RUN };"))

    def test_private_headers_are_called_so(self):
        self.assertEqual(self.header("server/batch/origin_private.h", "BATCH_ORIGIN_PRIVATE_H"), "")
        self.assertIn("origin_parts.h: call a private header _private.h",
                      self.header("server/batch/origin_parts.h", "BATCH_ORIGIN_PARTS_H"))


class Names(Check):
    script = "check-names"

    def names(self, path, *lines):
        self.put(path, "\n".join(lines) + "\n")
        return self.complaints()

    def test_a_function_begins_with_its_file_or_folder(self):
        for path, prototype in (
            ("server/deliver/lane.h", "void lane_take(struct lane *lane);"),
            ("server/deliver/lane_reader.h", "bool lane_look(struct lane *lane,\n               int at);"),
            ("server/session/helpers/wire.h", "char *helper_name(void);"),
            ("server/link/tally_private.h", "struct tally *tallies_open(void) __attribute__((malloc));"),
            ("sdk/core/crc32c.h", "uint32_t tnd_crc32c(const void *bytes, size_t count);"),
            ("sdk/include/tundish/tundish.h", "int tundish_open(const char *name);"),
        ):
            self.assertEqual(self.names(path, prototype), "")
        self.assertIn("server/deliver/feed.h: hub_open, tell: begin with the name of the file or folder",
                      self.names("server/deliver/feed.h", "int hub_open(void);", "void tell(int a,", "    int b);"))

    def test_a_function_may_begin_with_the_source_that_defines_it(self):
        self.put("server/deliver/hub_door.c", "int\ndoor_shut(int a)\n{\n    return hear(a);\n}\n")
        self.assertEqual(self.names("server/deliver/feed.h", "int door_shut(int a);"), "")
        self.assertIn("hear: begin", self.names("server/deliver/feed.h", "int door_shut(int a);", "int hear(int a);"))

    def test_only_declared_functions_count(self):
        text = ("/* int\ntell(void); */", "#define tell(a) \\", "    tell_all(a);",
                "static inline int\ntell(int a)\n{\n    return other(a);\n}",
                "typedef int told(int);", "struct feed {\n    int (*tell)(int a);\n};")
        self.assertEqual(self.names("server/deliver/feed.h", *text), "")

    def test_the_numbers_only_fall(self):
        self.put("scripts/names.counts", "server/deliver/feed.h 1\n")
        self.assertEqual(self.names("server/deliver/feed.h", "int tell(void);"), "")
        self.assertIn("allows 1", self.names("server/deliver/feed.h", "int tell(void);", "int hear(void);"))
        self.assertIn("0 names to mend are left: lower its number",
                      self.names("server/deliver/feed.h", "int feed_tell(void);"))


class English(Check):
    script = "check-english"

    def test_each_phrase_is_found_once_in_comments_and_texts(self):
        for path, text, name in (
            ("server/order/run.c", "/* Of a step the rows. */", "of-first"),
            ("server/order/run.c", "/* Rows. Of\n * those that failed none. */", "of-first"),
            ("server/order/run.h", "/* What is sent stays. */", "what-first"),
            ("docs/faq.md", "A pattern is no name.", "is-no"),
            ("README.md", "It sends so many parts.", "so-many"),
            ("scripts/tool.py", "# begin anew\n", "anew"),
            ("sdk/core/log.h", "/* For whoever reads. */", "whoever"),
            ("scripts/tool.py", 'def f():\n    """All, be it late."""\n', "be-it"),
        ):
            with self.subTest(text=text):
                self.setUp()
                self.put(path, text)
                self.assertEqual(self.complaints().count("check-english: "), 1)
                self.assertIn(f"check-english: {name}: 1 in comments", self.complaints())

    def test_plain_words_are_fine(self):
        self.put("server/order/run.c", 'int of; /* There is no row; a part is no longer than this. */\n'
                                       'const char *text = "Of a step";')
        self.put("README.md", "What is it? `Of a step` is code, and\n\n```sh\nanew\n```\n\nso is this.")
        self.assert_fine()

    def test_a_number_may_fall_and_not_rise(self):
        self.put("scripts/english.counts", "anew 1\nof-first 2\n")
        self.put("README.md", "Begin anew.")
        self.assert_fine()
        self.put("docs/faq.md", "Begin anew.")
        self.assertIn("anew: 2 in comments and texts, more than the 1", self.complaints())


class Format(Check):
    script = "check-format"

    def setUp(self):
        super().setUp()
        version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True)
        if " version 14." not in version.stdout:
            self.skipTest("the sources are formatted by clang-format 14, which is not here")
        shutil.copy(SCRIPTS.parent / ".clang-format", self.root)
        for folder in ("server", "sdk", "admin", "tests"):
            (self.root / folder).mkdir()

    def test_what_the_formatter_wrote_is_fine(self):
        self.put("server/a.c", "int a;\n")
        self.assert_fine()

    def test_another_format_is_found_and_mended(self):
        self.put("sdk/a.h", "int  a;\n")
        self.assertIn("a.h:1:", self.complaints())
        subprocess.run([SCRIPTS / self.script, "--fix", self.root], check=True)
        self.assertEqual((self.root / "sdk/a.h").read_text(), "int a;\n")


class Calls(Check):
    script = "check-calls"

    def test_a_call_that_may_be_short_is_found(self):
        for call in ("read(file, to, 8)", "pread (file, to, 8, 0)", "write(1, text, n)",
                     "pwrite(file, at, n, o)", "readv(file, list, 2)", "preadv2(file, l, 2, 0, 0)"):
            with self.subTest(call):
                self.put("server/order/a.c", f"static int\nf(void)\n{{\n    return {call} < 0;\n}}\n")
                self.assertIn("server/order/a.c:4:", self.complaints())

    def test_others_are_not(self):
        self.put("server/order/a.c", "/* read(2) may be short */\nstatic int\nf(void)\n{\n"
                 "    ops->read(a); io.write(b); tnd_read(c); return say(\"write(1)\");\n}\n")
        self.put("admin/a.c", "static int\nread(int a)\n{\n    return read(a);\n}\n")
        self.put("sdk/core/read_write.c", "int a = read(0);\n")
        self.assert_fine()

    def test_an_exemption_that_is_not_needed_is_found(self):
        self.put("sdk/core/read_write.c", "")
        self.assertIn("no such call", self.complaints())


class Unfinished(Check):
    script = "check-unfinished"

    def setUp(self):
        super().setUp()
        self.git("init", "-q")

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, *arguments], check=True)

    def complaints(self):
        self.git("add", "-A")
        return super().complaints()

    def test_plain_text_is_fine(self):
        self.put("a.c", "/* a.c - todo lists and mkstemp's XXXXXX are not marks. */\n")
        self.assert_fine()

    def test_a_mark_is_found(self):
        self.put("server/a.c", "\n/* TO" + "DO: later */\n")
        self.assertIn("server/a.c:2:", self.complaints())

    def test_recorded_cases_are_left_alone(self):
        self.put("tests/conformance/cases/a.json", "TO" + "DO\n")
        self.assert_fine()

    def test_untracked_files_are_left_alone(self):
        self.put(".gitignore", "build/\n")
        self.put("build/a.c", "TO" + "DO\n")
        self.assert_fine()


if __name__ == "__main__":
    unittest.main()
