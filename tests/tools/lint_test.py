"""Every rule of tools/lint must be able to fail, and a clean file must pass."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "lint"
CLEAN_HEADER = "// A sentence.\n#pragma once\n\n#include <vector>\n"


@unittest.skipUnless(shutil.which("git"), "git is not installed")
class Lint(unittest.TestCase):
    def lint(self, name: str, text: str, more: dict[str, str] | None = None) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["git", "init", "--quiet", root], check=True)
            for file, content in {name: text, **(more or {})}.items():
                path = Path(root, file)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
            done = subprocess.run([sys.executable, TOOL, "--root", root], capture_output=True, text=True, check=False)
            out = "\n".join(line for line in done.stdout.splitlines() if "not installed, so the formatting" not in line)
            return done.returncode, out

    def assert_found(self, name: str, text: str, line: int, words: str, more: dict[str, str] | None = None):
        code, out = self.lint(name, text, more)
        self.assertEqual(code, 1, out)
        self.assertRegex(out, rf"(?m)^{name}:{line}:.* .*{words}")

    @unittest.skipUnless(shutil.which("clang-format-14"), "clang-format-14 is not installed")
    def test_a_clean_file_passes(self):
        self.assertEqual(self.lint("src/kv/a.h", CLEAN_HEADER), (0, ""))

    @unittest.skipUnless(shutil.which("clang-format-14"), "clang-format-14 is not installed")
    def test_unformatted_code(self):
        self.assert_found("src/kv/a.cpp", "int   x;\n", 1, "tools/format src/kv/a.cpp")

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
    def test_a_shell_script_with_an_unquoted_variable(self):
        self.assert_found("tools/run.sh", "#!/bin/bash\nrm $1\n", 2, "SC2086")

    def test_a_file_that_is_too_long(self):
        self.assert_found("src/kv/a.cpp", "// a\n" * 501, 500, "501 lines")

    def test_blanks_at_the_end_of_a_line(self):
        self.assert_found("docs/a.md", "one\ntwo \n", 2, "blank")

    def test_a_missing_newline_at_the_end(self):
        self.assert_found("docs/a.md", "one", 1, "newline")

    def test_a_line_that_is_too_wide(self):
        self.assert_found("src/kv/a.cpp", "// " + "x" * 118 + "\n", 1, "121 columns")

    def test_an_open_end(self):
        self.assert_found("src/kv/a.cpp", "// TODO: later\n", 1, "TODO")

    def test_a_path_of_one_machine(self):
        self.assert_found("docs/a.md", "see /home/me/x\n", 1, "machine")

    def test_a_header_without_pragma_once(self):
        self.assert_found("src/kv/a.h", "// A sentence.\nint x;\n", 1, "pragma once")

    def test_a_header_that_does_not_say_what_it_is(self):
        self.assert_found("src/kv/a.h", "#pragma once\n", 1, "one sentence")

    def test_a_third_party_include_in_a_header(self):
        self.assert_found("src/kv/a.h", CLEAN_HEADER + "#include <nlohmann/json.hpp>\n", 5, "nlohmann/json.hpp")

    def test_an_internal_header_that_leaves_its_folder(self):
        internal = CLEAN_HEADER.replace("A sentence.", "Internal to client/.") + "#include <boost/asio/awaitable.hpp>\n"
        self.assert_found("src/lab/arms/a.cpp", '#include "lab/client/slot.h"\n', 1, "internal to its folder",
                          {"src/lab/client/slot.h": internal})

    def test_intrinsics_outside_an_isa_file(self):
        self.assert_found("src/kv/a.cpp", "#include <immintrin.h>\n", 1, "ISA file")

    def test_a_read_of_the_environment(self):
        self.assert_found("src/kv/a.cpp", 'auto x = std::getenv("X");\n', 1, "environment")

    def test_a_test_that_sleeps(self):
        self.assert_found("src/kv/a_test.cpp", "std::this_thread::sleep_for(x);\n", 1, "sleeps")

    def test_a_property_whose_outcome_nobody_looks_at(self):
        self.assert_found("src/kv/a_test.cpp", "rc::check([] {});\n", 1, "cannot fail")

    def test_using_namespace(self):
        self.assert_found("src/kv/a.h", CLEAN_HEADER + "using namespace std;\n", 5, "using namespace")


if __name__ == "__main__":
    unittest.main()
