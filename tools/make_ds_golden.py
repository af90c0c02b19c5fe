#!/usr/bin/env python3
"""Writes tests/golden/ds/*.safetensors: what the independent NumPy oracle gives in profile ds with double sums.

    tools/make_ds_golden.py [tiny|mini]       (needs numpy; a few minutes)

tiny-b.safetensors  b.layerL.{attn,mlp,out} of sequence b, and with each the relative L2 distance (NAME.f32) of the
                    oracle's own run with float32 sums: how far the order of sums alone moves it
mini.safetensors    D.j.nll of all texts
"""
import json, pathlib, struct, sys
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import oracle  # noqa: E402


def write(path, tensors):
    head, at = {}, 0
    for name, a in tensors.items():
        head[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for a in tensors.values():
            out.write(np.ascontiguousarray(a, np.float32).tobytes())


def tiny():
    folder = ROOT / "tests/golden/tiny-b"
    gold = oracle.Checkpoint(str(folder), "golden.safetensors")
    exact, single = {}, {}
    oracle.Model(str(folder), "ds", True).forward(gold.plain("b.tokens"), dump=exact)
    model = oracle.Model(str(folder), "ds", False)
    model.forward(gold.plain("b.tokens"), dump=single)
    out = {}
    for l in range(model.cfg["num_hidden_layers"]):
        for k in ("attn", "mlp", "out"):
            a, b = exact[f"layer{l}.{k}"], single[f"layer{l}.{k}"]
            out[f"b.layer{l}.{k}"] = a.reshape(len(a), -1).astype(np.float32)
            out[f"b.layer{l}.{k}.f32"] = np.array([np.linalg.norm(b - a) / np.linalg.norm(a)], np.float32)
    write(ROOT / "tests/golden/ds/tiny-b.safetensors", out)


def mini():
    folder = ROOT / "models/mini"
    model, gold = oracle.Model(str(folder), "ds", True), oracle.Checkpoint(str(folder), "golden.safetensors")
    out = {}
    for name in sorted(k[:-7] for k in gold.t if k.endswith(".tokens")):
        tokens = gold.plain(name + ".tokens")
        out[name + ".nll"] = oracle.nll(model.forward(tokens[:-1]), tokens[1:]).astype(np.float32)
        print(name, out[name + ".nll"].mean(), flush=True)
    write(ROOT / "tests/golden/ds/mini.safetensors", out)


for part in sys.argv[1:] or ("tiny", "mini"):
    {"tiny": tiny, "mini": mini}[part]()
