"""The server as users meet it: through the public OpenAI SDK.

openai_sdk_test.py -- COMMAND...     starts COMMAND, which prints its URL, tests it and ends it
openai_sdk_test.py --base-url URL    tests a server that runs, ours or a peer's (--peer skips what only ours promises)
"""

import argparse
import asyncio
import functools
import json
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

import openai

START_TIMEOUT_S = 120
PROMPT = "The first thing to know about a database is"


class Target:
    """The server under test."""

    url = ""
    model = ""
    api_key = "none"
    is_peer = False

    @classmethod
    @functools.cache
    def client(cls):
        return openai.OpenAI(base_url=cls.url + "/v1", api_key=cls.api_key, max_retries=0, timeout=60)


def only_ours(test):
    return unittest.skipIf(Target.is_peer, "only our server promises this")(test)


def fetch(path, body=None):
    """Status and JSON of a plain request."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {Target.api_key}"}
    request = urllib.request.Request(Target.url + path, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


class Models(unittest.TestCase):
    def test_the_list_has_the_served_model(self):
        self.assertIn(Target.model, [model.id for model in Target.client().models.list()])

    def test_a_model_can_be_looked_up(self):
        model = Target.client().models.retrieve(Target.model)
        self.assertEqual((model.id, model.object), (Target.model, "model"))

    def test_an_unknown_model_is_not_found(self):
        with self.assertRaises(openai.NotFoundError):
            Target.client().models.retrieve("no-such-model")


class Completions(unittest.TestCase):
    def complete(self, prompt=PROMPT, **fields):
        fields = {"model": Target.model, "max_tokens": 16, "temperature": 0, **fields}
        return Target.client().completions.create(prompt=prompt, **fields)

    def text(self, prompt=PROMPT, **fields):
        return self.complete(prompt, **fields).choices[0].text

    def test_a_string(self):
        answer = self.complete(extra_body={"ignore_eos": True})
        self.assertEqual(answer.object, "text_completion")
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(answer.usage.completion_tokens, 16)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + 16)
        self.assertTrue(answer.choices[0].text)

    def test_a_list_of_strings_is_answered_in_order(self):
        prompts = [PROMPT, "Once upon a time"]
        answer = self.complete(prompts)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1])
        self.assertEqual([choice.text for choice in answer.choices], [self.text(prompt) for prompt in prompts])

    def test_token_ids_and_a_list_of_them(self):
        one = self.complete([100, 101, 102]).choices[0].text
        many = self.complete([[100, 101, 102], [100, 101, 102]])
        self.assertEqual([choice.text for choice in many.choices], [one, one])
        self.assertEqual(many.usage.prompt_tokens, 6)

    def test_n_choices_have_stable_indices(self):
        answer = self.complete(n=3, temperature=1, seed=5)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2])

    def test_a_seed_repeats_and_greedy_needs_none(self):
        self.assertEqual(self.text(temperature=1, seed=7), self.text(temperature=1, seed=7))
        self.assertEqual(self.text(), self.text())

    def test_a_stop_string_ends_the_text_before_it(self):
        text = self.text(max_tokens=24)
        stop = text[len(text) // 2 : len(text) // 2 + 3]
        answer = self.complete(max_tokens=24, stop=[stop, "never to be seen"])
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual(answer.choices[0].text, text[: text.index(stop)])

    def test_logprobs(self):
        logprobs = self.complete(logprobs=3, max_tokens=4, extra_body={"ignore_eos": True}).choices[0].logprobs
        self.assertEqual(len(logprobs.tokens), 4)
        self.assertTrue(all(value <= 0 for value in logprobs.token_logprobs))
        self.assertTrue(all(1 <= len(best) <= 4 for best in logprobs.top_logprobs))

    def test_a_stream_is_the_same_text_with_the_usage_last(self):
        events = list(self.complete(stream=True, stream_options={"include_usage": True}))
        text = "".join(event.choices[0].text for event in events if event.choices)
        self.assertEqual(text, self.text())
        self.assertEqual(events[-1].choices, [])
        self.assertGreater(events[-1].usage.completion_tokens, 0)
        self.assertTrue(all(event.usage is None for event in events[:-1]))

    @only_ours
    def test_min_tokens_and_ignore_eos_fix_the_length(self):
        answer = self.complete(max_tokens=40, extra_body={"min_tokens": 40, "ignore_eos": True})
        self.assertEqual(answer.usage.completion_tokens, 40)

    def test_many_streams_at_once(self):
        async def run():
            client = openai.AsyncOpenAI(base_url=Target.url + "/v1", api_key=Target.api_key, max_retries=0)

            async def one(prompt):
                stream = await client.completions.create(
                    model=Target.model, prompt=prompt, max_tokens=8, temperature=0, stream=True
                )
                return "".join([event.choices[0].text async for event in stream if event.choices])

            return await asyncio.gather(*[one([100 + i, 200 + i]) for i in range(32)])

        texts = asyncio.run(run())
        self.assertEqual(texts[3], self.text([103, 203], max_tokens=8))
        self.assertEqual(len(texts), 32)


class Chat(unittest.TestCase):
    MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Describe a hash table."}]

    def chat(self, **fields):
        fields = {"model": Target.model, "messages": self.MESSAGES, "max_tokens": 16, "temperature": 0, **fields}
        return Target.client().chat.completions.create(**fields)

    def test_an_answer(self):
        answer = self.chat()
        self.assertEqual(answer.object, "chat.completion")
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertIn(answer.choices[0].finish_reason, ("stop", "length"))
        self.assertTrue(answer.choices[0].message.content)

    def test_list_form_content_is_the_same_prompt(self):
        parts = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
        plain = [{"role": "user", "content": "Hi"}]
        self.assertEqual(
            self.chat(messages=parts).choices[0].message.content, self.chat(messages=plain).choices[0].message.content
        )

    def test_a_stream_begins_with_the_role_and_ends_with_reason_and_usage(self):
        events = list(self.chat(stream=True, stream_options={"include_usage": True}))
        self.assertEqual(events[0].choices[0].delta.role, "assistant")
        content = "".join(event.choices[0].delta.content or "" for event in events if event.choices)
        self.assertEqual(content, self.chat().choices[0].message.content)
        reasons = [event.choices[0].finish_reason for event in events if event.choices]
        self.assertEqual(sum(reason is not None for reason in reasons), 1)
        self.assertIsNotNone(reasons[-1])
        self.assertEqual(events[-1].choices, [])
        self.assertGreater(events[-1].usage.prompt_tokens, 0)

    def test_n_streams_keep_their_indices_apart(self):
        seen = {}
        for event in self.chat(stream=True, n=2, temperature=1, seed=3):
            for choice in event.choices:
                seen.setdefault(choice.index, []).append(choice.finish_reason)
        self.assertEqual(sorted(seen), [0, 1])
        self.assertTrue(all(reasons[-1] is not None for reasons in seen.values()))

    def test_the_newer_length_field(self):
        answer = self.chat(max_tokens=None, max_completion_tokens=3, extra_body={"ignore_eos": True})
        self.assertEqual(answer.usage.completion_tokens, 3)

    def test_logprobs(self):
        content = self.chat(logprobs=True, top_logprobs=2, max_tokens=3).choices[0].logprobs.content
        self.assertTrue(1 <= len(content) <= 3)
        self.assertTrue(all(len(entry.top_logprobs) == 2 for entry in content[:1]))
        self.assertTrue(all(entry.logprob <= 0 for entry in content))

    @only_ours
    def test_thinking_is_off_unless_asked_for_and_stands_apart(self):
        self.assertFalse((self.chat().choices[0].message.model_extra or {}).get("reasoning_content"))
        answer = self.chat(extra_body={"chat_template_kwargs": {"thinking": True}})
        message = answer.choices[0].message
        self.assertTrue(message.model_extra.get("reasoning_content"))
        self.assertGreater(answer.usage.completion_tokens_details.reasoning_tokens, 0)

    @only_ours
    def test_streamed_thinking_is_the_same_as_whole_thinking(self):
        kwargs = {"extra_body": {"chat_template_kwargs": {"thinking": True}}, "max_tokens": 40}
        whole = self.chat(**kwargs).choices[0].message
        reasoning = content = ""
        for event in self.chat(stream=True, **kwargs):
            delta = event.choices[0].delta
            reasoning += (delta.model_extra or {}).get("reasoning_content") or ""
            content += delta.content or ""
        self.assertEqual(reasoning, whole.model_extra["reasoning_content"])
        self.assertEqual(content, whole.content)


class Errors(unittest.TestCase):
    def refused(self, kind=openai.BadRequestError, **fields):
        fields = {"model": Target.model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, **fields}
        with self.assertRaises(kind) as caught:
            Target.client().chat.completions.create(**fields)
        return caught.exception

    def test_a_value_out_of_range_names_the_field(self):
        self.assertIn("temperature", str(self.refused(temperature=-1)))
        self.assertIn("top_p", str(self.refused(top_p=3)))

    @only_ours
    def test_the_error_object_is_openais(self):
        error = self.refused(temperature=-1)
        self.assertEqual((error.type, error.param), ("invalid_request_error", "temperature"))
        self.assertTrue(error.response.headers["x-request-id"])

    def test_wrong_types_and_empty_messages(self):
        self.refused(messages=[])
        self.refused(extra_body={"max_tokens": "many"})
        self.refused(messages=[{"role": "robot", "content": "Hi"}])

    def test_an_unknown_model(self):
        self.assertEqual(self.refused(openai.NotFoundError, model="no-such-model").status_code, 404)

    def test_a_prompt_beyond_the_context(self):
        with self.assertRaises(openai.BadRequestError):
            Target.client().completions.create(model=Target.model, prompt="word " * 1_000_000, max_tokens=1)

    @only_ours
    def test_what_is_not_supported_is_refused_by_name(self):
        tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
        self.assertIn("tools", str(self.refused(tools=[tool])))
        self.assertIn("response_format", str(self.refused(response_format={"type": "json_object"})))

    def test_a_wrong_key(self):
        if Target.api_key == "none":
            self.skipTest("the server has no key")
        with self.assertRaises(openai.AuthenticationError):
            openai.OpenAI(base_url=Target.url + "/v1", api_key="wrong", max_retries=0).models.list()


@unittest.skipIf(Target.is_peer, "only our server promises this")
class Native(unittest.TestCase):
    def test_generate(self):
        body = {"text": PROMPT, "sampling_params": {"max_new_tokens": 4, "temperature": 0, "ignore_eos": True}}
        status, answer = fetch("/generate", body)
        self.assertEqual(status, 200)
        self.assertEqual(len(answer["output_ids"]), 4)
        self.assertEqual(answer["meta_info"]["completion_tokens"], 4)
        self.assertEqual(answer["meta_info"]["finish_reason"], {"type": "length", "length": 4})

    def test_tokenize_and_back(self):
        _, tokens = fetch("/tokenize", {"model": Target.model, "prompt": PROMPT})
        self.assertEqual(fetch("/detokenize", {"tokens": tokens["tokens"]})[1]["prompt"], PROMPT)

    def test_health_and_info(self):
        for path in ("/health", "/health_generate", "/liveness", "/server_info", "/model_info"):
            self.assertEqual(fetch(path)[0], 200, path)

    def test_a_stream_that_is_closed_frees_its_rank(self):
        stream = Target.client().completions.create(
            model=Target.model, prompt=PROMPT, max_tokens=400, stream=True, extra_body={"ignore_eos": True}
        )
        next(iter(stream))
        stream.close()
        deadline = time.monotonic() + 30
        while sum(rank["num_reqs"] for rank in fetch("/get_load")[1]) > 0:
            self.assertLess(time.monotonic(), deadline, "the request is still live")
            time.sleep(0.05)


def start(command):
    """Starts the server; returns its process once it is ready."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    found = threading.Event()

    def read():
        for line in process.stderr:
            sys.stderr.write(line)
            match = re.search(r"event=ready.*?(http://[\w.\[\]:]+:\d+)", line)
            if match:
                Target.url = match.group(1)
                found.set()
        found.set()

    threading.Thread(target=read, daemon=True).start()
    if not found.wait(START_TIMEOUT_S) or not Target.url:
        process.kill()
        sys.exit(f"the server did not get ready: {' '.join(command)}")
    return process


def stop(process):
    process.send_signal(signal.SIGTERM)
    code = process.wait(60)
    if code != 0:
        sys.exit(f"the server ended with {code} after SIGTERM")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", default="")
    parser.add_argument("--api-key", default="none")
    parser.add_argument("--model", default="")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("command", nargs="*")
    args = parser.parse_args()
    Target.api_key, Target.is_peer, Target.url = args.api_key, args.peer, args.base_url.rstrip("/")
    process = start(args.command) if args.command else None
    try:
        Target.model = args.model or next(iter(Target.client().models.list())).id
        result = unittest.main(argv=[sys.argv[0]], exit=False, verbosity=1).result
    finally:
        if process:
            stop(process)
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
