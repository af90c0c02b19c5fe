#!/usr/bin/env python3
"""Fails when an include points the wrong way: a folder may use only itself and the folders before it in LAYERS.

usage: tools/check_layers.py [ROOT]
"""
import re
import sys
from pathlib import Path

# From the ground up. A longer name wins over a shorter one, so compute/cpu is its own layer.
LAYERS = [
    "base",
    "config",
    "comm",
    "step",
    "obs",
    "compute/ops",
    "compute/mega",
    "compute/cpu",
    "compute/cuda",
    "weights",
    "moe",
    "eplb",
    "kv",
    "model",
    "engine",
    "frontend",
    "lab",
    "apps",
]

# Folders that may use less than all that stands before them.
ONLY = {
    "lab": {"base", "config"},  # measures servers over HTTP and must not know ours from the inside
    "compute/mega": {"base", "compute/ops"},  # host and device headers
    "compute/cuda": {"base", "config", "comm", "step", "obs", "compute/ops", "compute/mega"},  # beside cpu, not above it
}

# What programs may use besides src/: the measured roofs of this machine.
APPS_ALSO = ("bench/roofs/",)

SOURCES = {".h", ".cpp", ".cuh", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def layer_of(path: str) -> str | None:
    """The layer that a path relative to src/ lies in: "compute/cpu/gemm.h" -> "compute/cpu"."""
    matches = [layer for layer in LAYERS if path.startswith(layer + "/")]
    return max(matches, key=len, default=None)


def may_use(user: str, used: str) -> bool:
    if used == user:
        return True
    if user in ONLY:
        return used in ONLY[user]
    return LAYERS.index(used) < LAYERS.index(user)


def check_file(root: Path, file: Path) -> list[str]:
    relative = file.relative_to(root).as_posix()
    user = "apps" if relative.startswith("apps/") else layer_of(relative.removeprefix("src/"))
    if user is None:
        return [f"{relative}:1: lies in no known layer; add its folder to LAYERS in tools/check_layers.py or move it"]
    problems = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(1)
        if user == "apps" and ((file.parent / target).is_file() or target.startswith(APPS_ALSO)):
            continue
        used = layer_of(target)
        if used is None or not (root / "src" / target).is_file():
            problems.append(f'{relative}:{number}: "{target}" is no file below src/; quote our own headers by their path from '
                            "there, and put <> around others")
            continue
        if not may_use(user, used):
            allowed = ", ".join(sorted(ONLY[user])) if user in ONLY else "what stands before it: " + ", ".join(
                LAYERS[:LAYERS.index(user)])
            problems.append(f'{relative}:{number}: {user} includes "{target}" of {used}; {user} may use {allowed}')
    return problems


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    files = sorted(f for top in ("src", "apps") for f in (root / top).rglob("*") if f.suffix in SOURCES)
    if not files:
        print(f"check_layers: no source below {root}/src: wrong folder?", file=sys.stderr)
        return 2
    problems = [problem for file in files for problem in check_file(root, file)]
    for problem in problems:
        print(problem)
    print(f"layers: {len(files)} files, {len(problems)} problem(s)", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
