"""The program from the outside: exit codes, and what a user reads when something is wrong. argv[1] is the program."""
import json
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
MINI = "models/mini"
# The public reproduction's launch line, without program, variables, and the FP8 cache that this version lacks.
REFERENCE_LINE = """--host 0.0.0.0 --port 30000 --trust-remote-code --tp 8 --ep-size 8 --dp-size 8 --enable-dp-attention
  --moe-a2a-backend megamoe --moe-dense-tp-size 1 --enable-dp-lm-head --load-balance-method round_robin
  --attention-backend dsv4 --kv-cache-dtype auto --page-size 256 --swa-full-tokens-ratio 0.15 --mem-fraction-static 0.85
  --chunked-prefill-size 65536 --cuda-graph-max-bs 1024 --max-running-requests 1024 --disable-radix-cache
  --disable-shared-experts-fusion --tool-call-parser deepseekv4 --reasoning-parser deepseek-v4""".split()


class Done:
    def __init__(self, *args: str):
        run = subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=120, check=False)
        self.code, self.out, self.err = run.returncode, run.stdout, run.stderr


class Program(unittest.TestCase):
    def test_version(self):
        done = Done("--version")
        self.assertEqual(done.code, 0)
        self.assertRegex(done.out, r"^megamoe \d+\.\d+\.\d+\n$")

    def test_help_of_every_subcommand_works(self):
        for words in (["demo"], ["serve"], ["bench"], ["bench", "manifest"], ["bench", "serve"], ["op"],
                      ["op", "check"], ["op", "bench"], ["model"],
                      ["op"], ["model", "inspect"], ["model", "synth"], ["model", "generate"], ["model", "golden"]):
            with self.subTest(words):
                done = Done(*words, "--help")
                self.assertEqual(done.code, 0, done.err)
                self.assertGreater(len(done.out), 40)

    def test_an_unknown_subcommand_gets_the_nearest_one(self):
        done = Done("sevre")
        self.assertEqual(done.code, 1)
        self.assertIn("did you mean `serve`?", done.err)
        self.assertIn("did you mean `inspect`?", Done("model", "inpsect").err)

    def test_no_subcommand_prints_the_list_and_is_a_usage_error(self):
        done = Done()
        self.assertEqual(done.code, 1)
        self.assertIn("demo", done.out)


class Serve(unittest.TestCase):
    def dry_run(self, *args: str) -> Done:
        return Done("serve", "--model-path", MINI, "--dry-run", *args)

    def test_the_reference_launch_line_is_accepted(self):
        done = self.dry_run(*REFERENCE_LINE)
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("128 requests at once, 8192 prefill tokens a step", done.out)
        self.assertIn("CFG-45 note: --cuda-graph-max-bs 1024 -> no effect", done.err)

    def test_a_printed_configuration_reads_back_as_itself(self):
        first = self.dry_run("--ep-size", "2", "--print-config", "--port", "31234")
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(first.out)
            file.flush()
            again = Done("serve", "--config", file.name, "--dry-run", "--print-config")
        self.assertEqual(again.code, 0, again.err)
        values = [line.split("#")[0].rstrip() for line in first.out.splitlines()]
        self.assertEqual([line.split("#")[0].rstrip() for line in again.out.splitlines()], values)

    def test_every_problem_is_listed_at_once(self):
        done = self.dry_run("--tp", "3", "--page-size", "7", "--isa", "sse2", "--moe-a2a-backend", "none", "--prot", "1")
        self.assertEqual(done.code, 1)
        for piece in ("did you mean --port?", "must be exchanged", "CFG-14", "CFG-26", "sse2"):
            self.assertIn(piece, done.err)

    def test_the_document_of_the_flags_is_what_help_prints(self):
        page = Path("docs/config.md").read_text()
        self.assertIn("```\n" + Done("serve", "--help").out + "```\n", page,
                      "docs/config.md is old: put the output of `megamoe serve --help` between its fences")

    def test_a_model_that_is_not_there_is_named(self):
        done = Done("serve", "--model-path", "models/nothing")
        self.assertEqual(done.code, 1)
        self.assertIn("models/nothing", done.err)

    def test_a_port_in_use_is_said_before_the_weights_are_loaded(self):
        with socket.socket() as busy:
            busy.bind(("127.0.0.1", 0))
            busy.listen()
            done = Done("serve", "--model-path", MINI, "--port", str(busy.getsockname()[1]))
        self.assertEqual(done.code, 4)
        self.assertIn("--port", done.err)
        self.assertNotIn("model_loaded", done.err)


class Op(unittest.TestCase):
    def test_check_of_the_tiny_sizes_passes(self):
        done = Done("op", "check", "--format", "fp4", "--tokens", "5", "--ranks", "1,2")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("all rows passed", done.out)

    def test_bench_writes_what_it_prints(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "op.json")
            done = Done("op", "bench", "--tokens", "1", "--repeats", "3", "--json", str(file))
            self.assertEqual(done.code, 0, done.err)
            rows = json.loads(file.read_text())["rows"]
        self.assertEqual([row["backend"] for row in rows], ["standard", "megamoe 1", "megamoe 2"])
        self.assertIn("megamoe 2", done.out)

    def test_a_mistyped_flag_or_value_gets_the_nearest_one(self):
        for words, near in ((["check", "--geometri", "tiny"], "--geometry"), (["bench", "--routing", "unifrom"], "uniform"),
                            (["bench", "--geometry", "flash"], "flash-share"), (["bench", "--format", "fp5"], "fp4")):
            with self.subTest(words):
                done = Done("op", *words)
                self.assertEqual(done.code, 1)
                self.assertIn(near, done.err)


class Model(unittest.TestCase):
    def test_inspect_prints_the_parameters(self):
        done = Done("model", "inspect", MINI)
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("experts", done.out)

    def test_a_truncated_file_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for source in Path(MINI).iterdir():
                data = source.read_bytes()
                Path(folder, source.name).write_bytes(data[:-1000] if source.name.endswith("00001-of-00002.safetensors") else data)
            done = Done("model", "inspect", folder)
        self.assertEqual(done.code, 1)
        self.assertIn("model-00001-of-00002.safetensors", done.err)

    def test_one_seed_makes_the_same_checkpoint_and_it_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a", "b"):
                done = Done("model", "synth", "--preset", "tiny", "--seed", "7", "--out", f"{folder}/{name}")
                self.assertEqual(done.code, 0, done.err)
            files = sorted(p.name for p in Path(folder, "a").iterdir())
            self.assertEqual(files, sorted(p.name for p in Path(folder, "b").iterdir()))
            for name in files:
                self.assertEqual(Path(folder, "a", name).read_bytes(), Path(folder, "b", name).read_bytes(), name)
            done = Done("model", "generate", "--model-path", f"{folder}/a", "--prompt", "Hello", "--max-tokens", "4")
            self.assertEqual(done.code, 0, done.err)
            self.assertIn("4 tokens", done.err)

    def test_synth_refuses_a_folder_that_holds_a_checkpoint(self):
        self.assertEqual(Done("model", "synth", "--preset", "tiny", "--out", MINI).code, 1)

    def test_greedy_text_is_the_same_on_one_rank_and_on_two(self):
        texts = {Done("model", "generate", "--model-path", MINI, "--prompt", "It is a truth", "--max-tokens", "16",
                      "--ep-size", ranks).out for ranks in ("1", "2")}
        self.assertEqual(len(texts), 1)
        self.assertGreater(len(texts.pop()), 10)


if __name__ == "__main__":
    unittest.main()
