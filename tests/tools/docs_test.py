"""The documents must not point at files that are gone, and the runbook must know every configuration finding."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


class Docs(unittest.TestCase):
    def test_every_link_leads_to_a_file(self):
        broken = [f"{page.relative_to(ROOT)}: {target}" for page in PAGES for target in LINK.findall(page.read_text())
                  if not target.startswith(("http://", "https://")) and not (page.parent / target).exists()]
        self.assertEqual(broken, [])

    def test_the_tour_names_only_files_that_exist(self):
        names = re.findall(r"`((?:src|apps|tests|tools|docs|cmake|bench)/[\w./-]+\.\w+)`", (ROOT / "docs/tour.md").read_text())
        self.assertGreater(len(names), 10)
        self.assertEqual([name for name in names if not (ROOT / name).exists()], [])

    def test_the_runbook_explains_every_finding_that_the_sources_can_make(self):
        made = {found for file in (ROOT / "src").rglob("*.cpp") for found in re.findall(r'"(CFG-\d\d)"', file.read_text())}
        made |= {found for file in (ROOT / "apps").rglob("*.cpp") for found in re.findall(r'"(CFG-\d\d)"', file.read_text())}
        rows = set(re.findall(r"^\| (CFG-\d\d) ", (ROOT / "docs/runbook.md").read_text(), re.M))
        self.assertGreater(len(made), 5)
        self.assertEqual(made - rows, set())


if __name__ == "__main__":
    unittest.main()
