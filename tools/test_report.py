#!/usr/bin/env python3
"""Sums up one test run: which suites failed and why, what was skipped and why, and the totals as the last line.

Reads DIR/ctest.xml (CTest's JUnit output, one entry a suite) and DIR/<suite>.xml (GoogleTest's, one entry a case), and
writes each suite's output to DIR/<suite>.log. A suite without a GoogleTest file counts as one case. A suite that CTest
calls failed while all its finished cases passed (a crash, a time-out, a leak found at exit) counts as one failed case more.
"""
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple


class Suite(NamedTuple):
    name: str
    passed: int
    failures: list[str]             # one text a failed case
    skips: list[tuple[str, str]]    # (case, reason)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def skip_reason(message: str) -> str:
    """GoogleTest puts `file:line` before the text of GTEST_SKIP."""
    return last_line(message)


def read_cases(path: Path) -> tuple[int, list[str], list[tuple[str, str]]]:
    passed, failures, skips = 0, [], []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        failed, skipped = case.findall("failure"), case.find("skipped")
        if failed:
            failures.append(f"{name}\n" + "\n".join(f.get("message", "") for f in failed))
        elif skipped is not None or case.get("result") == "skipped":
            skips.append((name, skip_reason(skipped.get("message", "") if skipped is not None else "")))
        elif case.get("status") == "run":
            passed += 1  # `notrun` is a disabled case
    return passed, failures, skips


def read_suite(entry: ElementTree.Element, folder: Path) -> Suite:
    name = entry.get("name", "")
    output = entry.findtext("system-out") or ""
    (folder / f"{name}.log").write_text(output)
    status = entry.get("status")  # run, fail, notrun, disabled
    cases_file = folder / f"{name}.xml"
    if cases_file.exists() and cases_file.stat().st_size > 0:
        passed, failures, skips = read_cases(cases_file)
    else:
        passed, failures, skips = (1 if status == "run" else 0), [], []
    if status == "fail" and not failures:
        why = entry.find("failure")
        text = why.get("message", "") if why is not None else ""
        tail = "\n".join(output.splitlines()[-30:])
        failures = [f"the suite as a whole ({text or 'non-zero exit'}); its last lines:\n{tail}"]
    if status in ("notrun", "disabled") and not skips:
        why = entry.find("skipped")
        if why is not None and why.get("message", "").startswith("SKIP_"):
            skips = [(name, last_line(output))]
        else:  # the program is missing: a broken build is a failure, never a skip
            failures = [f"did not run: {why.get('message', '') if why is not None else last_line(output)}"]
    return Suite(name, passed, failures, skips)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: test_report.py RESULT_DIR", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    try:
        entries = ElementTree.parse(folder / "ctest.xml").getroot().findall("testcase")
    except (OSError, ElementTree.ParseError) as error:
        print(f"error: CTest left no usable result in {folder}: {error}", file=sys.stderr)
        entries = []
    suites = [read_suite(entry, folder) for entry in entries]

    for suite in suites:
        for case, reason in suite.skips:
            print(f"SKIPPED {suite.name}: {case}: {reason}")
    for suite in suites:
        if suite.failures:
            print(f"FAILED {suite.name}: {len(suite.failures)} case(s); whole log: {folder / (suite.name + '.log')}")
            for text in suite.failures:
                print("    " + text.replace("\n", "\n    "))
    if not suites:
        print("FAILED no suite ran")

    failed = sum(len(suite.failures) for suite in suites) + (0 if suites else 1)
    print(f"{sum(s.passed for s in suites)} passed, {failed} failed, {sum(len(s.skips) for s in suites)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
