"""The report must never turn a crash, a time-out or a suite that did not run into a pass."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "test_report.py"
CASES = """<testsuites><testsuite name="S">
<testcase name="a" status="run" result="completed" classname="S"/>
<testcase name="b" status="run" result="completed" classname="S"/>{more}
<testcase name="DISABLED_d" status="notrun" result="suppressed" classname="S"/>
</testsuite></testsuites>"""
FAILURE = '<testcase name="f" status="run" result="completed" classname="S"><failure message="1 is not 2"/></testcase>'
SKIP = '<testcase name="s" status="run" result="skipped" classname="S"><skipped message="x.cpp:4&#10;no GPU"/></testcase>'


def entry(name: str, status: str, inner: str = "", output: str = "") -> str:
    return f'<testcase name="{name}" status="{status}">{inner}<system-out>{output}</system-out></testcase>'


class TestReport(unittest.TestCase):
    def report(self, entries: list[str], cases: dict[str, str] | None = None) -> tuple[int, list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "ctest.xml").write_text(f"<testsuite>{''.join(entries)}</testsuite>")
            for name, text in (cases or {}).items():
                Path(folder, f"{name}.xml").write_text(text)
            done = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout.splitlines()

    def test_cases_of_a_suite_are_counted_one_by_one(self):
        code, lines = self.report([entry("u", "run")], {"u": CASES.format(more=SKIP)})
        self.assertEqual(code, 0)
        self.assertEqual(lines, ["SKIPPED u: S.s: no GPU", "2 passed, 0 failed, 1 skipped"])

    def test_a_failed_case_is_named_with_its_message_and_log(self):
        code, lines = self.report([entry("u", "fail", "<failure/>")], {"u": CASES.format(more=FAILURE)})
        self.assertEqual(code, 1)
        self.assertRegex(lines[0], r"^FAILED u: 1 case\(s\); whole log: .*/u\.log$")
        self.assertIn("    1 is not 2", lines)
        self.assertEqual(lines[-1], "2 passed, 1 failed, 0 skipped")

    def test_a_suite_that_crashed_before_it_wrote_its_cases_has_failed(self):
        code, lines = self.report([entry("u", "fail", "<failure/>", output="Segmentation fault")])
        self.assertEqual(code, 1)
        self.assertIn("    Segmentation fault", lines)
        self.assertEqual(lines[-1], "0 passed, 1 failed, 0 skipped")

    def test_a_leak_found_after_all_cases_passed_is_a_failure(self):
        code, lines = self.report([entry("u", "fail", "<failure/>")], {"u": CASES.format(more="")})
        self.assertEqual(code, 1)
        self.assertEqual(lines[-1], "2 passed, 1 failed, 0 skipped")

    def test_a_script_that_skips_itself_is_listed_with_its_reason(self):
        skipped = entry("sdk", "notrun", '<skipped message="SKIP_RETURN_CODE=77"/>', "trying\nPyPI is out of reach\n")
        code, lines = self.report([skipped, entry("ok", "run")])
        self.assertEqual(code, 0)
        self.assertEqual(lines, ["SKIPPED sdk: sdk: PyPI is out of reach", "1 passed, 0 failed, 1 skipped"])

    def test_a_program_that_was_not_built_is_a_failure(self):
        code, lines = self.report([entry("u", "notrun", '<skipped message="Unable to find executable"/>')])
        self.assertEqual(code, 1)
        self.assertEqual(lines[-1], "0 passed, 1 failed, 0 skipped")

    def test_a_run_without_any_suite_is_a_failure(self):
        code, lines = self.report([])
        self.assertEqual(code, 1)
        self.assertEqual(lines[-1], "0 passed, 1 failed, 0 skipped")


if __name__ == "__main__":
    unittest.main()
