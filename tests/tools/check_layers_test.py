"""The layer check must fail on a tree that breaks a layer: a check that cannot fail is worth nothing."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"


class CheckLayers(unittest.TestCase):
    def check(self, files: dict[str, str]) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_an_include_towards_base_passes(self):
        code, out = self.check({"src/base/ids.h": "", "src/kv/pools.cpp": '#include "base/ids.h"\n#include <vector>\n'})
        self.assertEqual((code, out), (0, ""))

    def test_an_include_away_from_base_fails_with_file_line_and_both_layers(self):
        code, out = self.check({"src/engine/engine.h": "", "src/kv/pools.h": '// Pools.\n#include "engine/engine.h"\n'})
        self.assertEqual(code, 1)
        self.assertIn('src/kv/pools.h:2: kv includes "engine/engine.h" of engine', out)

    def test_the_order_holds_between_subfolders_of_compute(self):
        code, out = self.check({"src/compute/cpu/gemm.h": "", "src/compute/ops/route.h": '#include "compute/cpu/gemm.h"\n'})
        self.assertEqual(code, 1)
        self.assertIn("compute/ops includes", out)

    def test_the_laboratory_may_not_see_the_engine_that_it_measures(self):
        code, out = self.check({"src/engine/request.h": "", "src/lab/client/c.cpp": '#include "engine/request.h"\n'})
        self.assertEqual(code, 1)
        self.assertIn("lab may use base, config", out)

    def test_a_test_beside_its_source_obeys_the_layer_of_its_folder(self):
        code, _ = self.check({"src/model/v4.h": "", "src/kv/pools_test.cpp": '#include "model/v4.h"\n'})
        self.assertEqual(code, 1)

    def test_a_quoted_include_that_is_no_file_fails(self):
        code, out = self.check({"src/base/a.cpp": '#include "base/gone.h"\n'})
        self.assertEqual(code, 1)
        self.assertIn('"base/gone.h" is no file', out)

    def test_a_folder_that_is_in_no_layer_fails(self):
        code, out = self.check({"src/misc/a.cpp": ""})
        self.assertEqual(code, 1)
        self.assertIn("no known layer", out)

    def test_an_empty_tree_is_an_error_and_not_a_pass(self):
        code, _ = self.check({"README.md": ""})
        self.assertEqual(code, 2)


if __name__ == "__main__":
    unittest.main()
