"""tools/format may break lines of a comment, and nothing else: no word is lost or moved."""
import importlib.machinery
import importlib.util
import random
import unittest
from pathlib import Path

TOOL = str(Path(__file__).resolve().parents[2] / "tools" / "format")
LOADER = importlib.machinery.SourceFileLoader("format_tool", TOOL)
format_tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("format_tool", LOADER))
LOADER.exec_module(format_tool)


def words(lines: list[str]) -> list[str]:
    return [word for line in lines for word in line.replace("//", " ").split()]


class WrapComments(unittest.TestCase):
    def test_a_narrow_file_stays_as_it_is(self):
        lines = ["// One.", "int x;  // two", "", "// Error kNotFound: three", "//       four"]
        self.assertEqual(format_tool.wrap_comments(lines), lines)

    def test_what_does_not_fit_goes_in_front_of_the_next_line(self):
        self.assertEqual(format_tool.wrap_comments(["// " + "a" * 100 + " " + "b" * 30, "// c"]),
                         ["// " + "a" * 100, "// " + "b" * 30 + " c"])

    def test_a_contract_line_continues_under_its_text(self):
        self.assertEqual(format_tool.wrap_comments(["// Error " + "a" * 100 + " " + "b" * 30, "// Cost  O(1)"]),
                         ["// Error " + "a" * 100, "//       " + "b" * 30, "// Cost  O(1)"])

    def test_an_item_of_a_list_does_not_run_into_the_next_one(self):
        self.assertEqual(format_tool.wrap_comments(["//   one   " + "a" * 100 + " " + "b" * 30, "//   two   c"]),
                         ["//   one   " + "a" * 100, "//   " + "b" * 30, "//   two   c"])

    def test_an_item_of_a_list_goes_on_under_its_own_text(self):
        self.assertEqual(format_tool.wrap_comments(["//   one   " + "a" * 100 + " " + "b" * 30, "//         c"]),
                         ["//   one   " + "a" * 100, "//         " + "b" * 30 + " c"])

    def test_code_is_left_to_clang_format(self):
        lines = ["int x;  // " + "a " * 80 + "b"]
        self.assertEqual(format_tool.wrap_comments(lines), lines)

    def test_a_word_that_is_too_long_stays_whole(self):
        lines = ["// " + "a" * 200]
        self.assertEqual(format_tool.wrap_comments(lines), lines)

    def test_no_word_is_lost_and_every_line_fits(self):
        rng = random.Random(1)
        for _ in range(300):
            lines = [" " * rng.choice([0, 4]) + "// " + " ".join("w" * rng.randint(1, 20) for _ in range(rng.randint(1, 25)))
                     for _ in range(rng.randint(1, 6))]
            wrapped = format_tool.wrap_comments(lines)
            self.assertEqual(words(wrapped), words(lines))
            self.assertLessEqual(max(len(line) for line in wrapped), 120)


if __name__ == "__main__":
    unittest.main()
