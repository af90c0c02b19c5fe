#!/usr/bin/env python3
"""Compares our chat encoder with the one that ships with a checkpoint, on its own examples and on random chats.

usage: chat_oracle.py ENCODE_CHAT_LINES_PROGRAM MODEL_DIR   (MODEL_DIR/encoding as DeepSeek-V4 releases it; runs its Python)
"""
import copy
import importlib.util
import json
import pathlib
import random
import subprocess
import sys

NUM_CHATS = 5_000
TEXTS = ["", "a", "Hi there", "two\n\nlines", "</think>", "<｜User｜>", "数", "{braces}", "tail "]
ARGUMENTS = ["{}", '{"a":1}', '{"a": "x\\ny", "b": [1,2.50,true,null,{"k":"ü"}]}', '{"n":-0.0,"m":1e5,"o":1E-7,"p":12345678901234567890123}',
             '{"a":1,"b":2,"a":{"c":""}}', "not json", '{"open":', '{"s": "\\u00e9\\u0001\\/"}']
TASKS = ["action", "query", "authority", "domain", "title", "read_url"]
TOOL = {"type": "function", "function": {"name": "f", "description": "Größe \"x\"", "parameters": {"type": "object", "properties": {}}}}


def random_number(rng):
    if rng.random() < 0.4:
        return rng.randrange(-10 ** rng.randrange(1, 30), 10 ** rng.randrange(1, 30))
    return rng.choice([rng.random(), rng.uniform(-1, 1) * 10.0 ** rng.randrange(-320, 300), float(rng.randrange(10 ** 17))])


def random_json(rng, depth=0):
    kind = rng.randrange(6 if depth < 4 else 4)
    if kind == 4:
        return [random_json(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 5:
        return {rng.choice(TEXTS) + str(i): random_json(rng, depth + 1) for i in range(rng.randrange(4))}
    random_string = "".join(chr(rng.choice([rng.randrange(0x80), rng.randrange(0x80, 0xD800), rng.randrange(0x10000, 0x110000)]))
                            for _ in range(rng.randrange(6)))
    return [None, rng.random() < 0.5, random_number(rng), random_string][kind]


def random_arguments(rng):
    if rng.random() < 0.3:
        return rng.choice(ARGUMENTS)
    members = {f"k{i}": random_json(rng) for i in range(rng.randrange(4))}
    return json.dumps(members, ensure_ascii=rng.random() < 0.5, separators=rng.choice([(",", ":"), (" , ", " : ")]))


def random_tool_content(rng):
    if rng.random() < 0.7:
        return rng.choice(TEXTS)
    return [rng.choice([{"type": "text", "text": rng.choice(TEXTS)}, {"type": "image_url"}]) for _ in range(rng.randrange(3))]


def random_message(rng):
    role = rng.choices(["user", "assistant", "tool", "system", "developer", "latest_reminder"], [5, 5, 4, 1, 1, 1])[0]
    message = {"role": role, "content": rng.choice(TEXTS)}
    if role == "tool":
        message |= {"content": random_tool_content(rng), "tool_call_id": rng.choice(["1", "2", "3", "4"])}
    if role == "assistant":
        message["reasoning_content"] = rng.choice(TEXTS)
        if rng.random() < 0.5:
            ids = rng.sample(["1", "2", "3"], rng.randrange(4))
            message["tool_calls"] = [{"id": i, "function": {"name": rng.choice("fgh"), "arguments": random_arguments(rng)}}
                                     for i in ids]
        if rng.random() < 0.1:
            message["wo_eos"] = True
    if role in ("system", "developer"):
        message["content"] = message["content"] or "S"
        if rng.random() < 0.3:
            message["tools"] = [TOOL] * rng.randrange(1, 3)
        if rng.random() < 0.3:
            message["response_format"] = {"type": "json_schema", "schema": {"title": "ß", "minimum": 0.5}}
    if role in ("user", "developer") and rng.random() < 0.15:
        message["task"] = rng.choice(TASKS)
    return message


def random_chat(rng):
    return {"messages": [random_message(rng) for _ in range(rng.randrange(1, 9))], "thinking": rng.random() < 0.7,
            "drop_thinking": rng.random() < 0.7, "effort": rng.choice(["none", "none", "high", "max"])}


def official_chats(directory):
    """The four examples; the fourth is in chat mode."""
    for number in range(1, 5):
        content = json.loads((directory / f"test_input_{number}.json").read_text(encoding="utf-8"))
        messages = content["messages"] if isinstance(content, dict) else content
        if isinstance(content, dict) and "tools" in content:
            messages[0]["tools"] = content["tools"]
        expected = (directory / f"test_output_{number}.txt").read_text(encoding="utf-8")
        yield {"messages": messages, "thinking": number != 4, "drop_thinking": True, "effort": "none"}, expected


def main():
    program, model_dir = sys.argv[1], pathlib.Path(sys.argv[2])
    spec = importlib.util.spec_from_file_location("encoding_dsv4", model_dir / "encoding" / "encoding_dsv4.py")
    encoder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(encoder)

    cases = list(official_chats(model_dir / "encoding" / "tests"))
    rng = random.Random(4)
    for _ in range(NUM_CHATS):
        chat = random_chat(rng)
        effort = None if chat["effort"] == "none" and not hasattr(encoder, "DEFAULT_REASONING_EFFORT") else chat["effort"]
        if effort == "none":
            effort = encoder.DEFAULT_REASONING_EFFORT
        expected = encoder.encode_messages(copy.deepcopy(chat["messages"]), "thinking" if chat["thinking"] else "chat",
                                           drop_thinking=chat["drop_thinking"], reasoning_effort=effort)
        cases.append((chat, expected))

    lines = "".join(json.dumps(chat) + "\n" for chat, _ in cases)
    result = subprocess.run([program, str(model_dir)], input=lines, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(result.stderr)
    prompts = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(prompts) == len(cases)
    different = [(chat, expected, ours) for (chat, expected), ours in zip(cases, prompts) if ours != expected]
    for chat, expected, ours in different[:5]:
        print(f"DIFFERENT {json.dumps(chat, ensure_ascii=False)}\n  ours   {ours!r}\n  theirs {expected!r}")
    print(f"{len(cases)} chats, {len(different)} different")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
