import json
import random
import unittest
from concurrent.futures import ThreadPoolExecutor

import openai
from rig import BASE, KEY, LARGE, PACED, PARALLEL, TOO_LARGE, assert_paced, assert_stayed, control, large_text, long, session

MESSAGES = [{"role": "user", "content": "hello"}]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


class OpenAISDK(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = openai.OpenAI(base_url=BASE + "/v1", api_key=KEY, max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def chat(self, name, **arguments):
        arguments = {"model": "m-oai", "messages": MESSAGES} | arguments
        return self.client.chat.completions.create(extra_headers=session(name), **arguments)

    def raw(self, name, **arguments):
        arguments = {"model": "m-oai", "messages": MESSAGES} | arguments
        return self.client.chat.completions.with_raw_response.create(
            extra_headers=session(name), **arguments
        )

    def text(self, stream):
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    def test_plain(self):
        cookies = session("plain") | {"Cookie": "of=the-client; and=more"}
        raw = self.client.chat.completions.with_raw_response.create(
            model="m-oai", messages=MESSAGES, extra_headers=cookies
        )
        answer = raw.parse()
        # The provider's cookies are between it and us.
        self.assertNotIn("set-cookie", raw.headers)
        self.assertRegex(answer.choices[0].message.content, r"^Hello from [ab]\. Größe 1 👋")
        self.assertEqual(answer.usage.prompt_tokens_details.cached_tokens, 800)
        self.assertEqual(raw.headers["x-switchboard-provider"], answer.system_fingerprint)
        self.assertEqual(raw.headers["x-switchboard-session"], "py-plain")

    def test_stream(self):
        text = ""
        for chunk in self.chat("stream", stream=True):
            self.assertEqual(len(chunk.choices), 1)
            self.assertIsNone(chunk.usage)
            text += chunk.choices[0].delta.content or ""
        self.assertRegex(text, r"^Hello from [ab]\..* Größe 3 👋$")

    def test_stream_with_usage(self):
        chunks = list(self.chat("usage", stream=True, stream_options={"include_usage": True}))
        self.assertEqual(chunks[-1].usage.completion_tokens, 20)

    def test_tools(self):
        plain = self.chat("tools", tools=TOOLS)
        message = plain.choices[0].message
        self.assertEqual(json.loads(message.tool_calls[0].function.arguments), {"city": "Berlin"})
        turn = MESSAGES + [
            message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"},
        ]
        self.assertEqual(self.chat("tools", messages=turn, tools=TOOLS).choices[0].finish_reason, "stop")
        arguments = ""
        for chunk in self.chat("tools", tools=TOOLS, stream=True):
            for call in chunk.choices[0].delta.tool_calls or []:
                arguments += call.function.arguments or ""
        self.assertEqual(arguments, '{"city":"Berlin"}')

    def test_responses_stay_where_the_previous_one_lives(self):
        create = self.client.responses.create
        for model in ["spread", "spread", "spread-too", "spread-too"]:
            first = create(model=model, input=f"start {random.random()}")
            self.assertTrue(first.output_text.startswith("Hello from"))
            previous = first
            for turn in range(3):
                # The fake provider answers 404 unless provider and key are the ones that made it.
                completed = None
                for event in create(model=model, input=f"on {turn}", previous_response_id=previous.id, stream=True):
                    if event.type == "response.completed":
                        completed = event.response
                self.assertEqual(completed.usage.input_tokens, 1000)
                previous = create(model=model, input="and on", previous_response_id=completed.id)
                self.assertEqual(previous.output_text, first.output_text)

    def test_embeddings(self):
        answer = self.client.embeddings.create(model="m-emb", input="hello", extra_headers=session("embeddings"))
        self.assertEqual(answer.data[0].embedding, [0.25, -0.5, 1.0])

    def test_models(self):
        ids = [model.id for model in self.client.models.list()]
        for name in ["m-oai", "m-emb", "m-ant", "spread"]:
            self.assertIn(name, ids)
        self.assertEqual(self.client.models.retrieve("m-oai").id, "m-oai")

    def test_error_classes(self):
        with openai.OpenAI(base_url=BASE + "/v1", api_key=KEY[:10], max_retries=0) as stranger:
            with self.assertRaises(openai.AuthenticationError):
                stranger.chat.completions.create(model="m-oai", messages=MESSAGES)
        with self.assertRaises(openai.NotFoundError) as unknown:
            self.chat("none", model="m-nope")
        self.assertEqual(unknown.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError) as long:
            self.chat("bad", messages=[{"role": "user", "content": "far too long"}])
        self.assertEqual(long.exception.code, "context_length_exceeded")
        control("c", status=429, retry_after="7")
        with self.assertRaises(openai.RateLimitError) as limited:
            self.chat("limited", model="m-limited")
        self.assertIn(limited.exception.response.headers["retry-after"], ["6", "7"])
        control("c", status=503)
        with self.assertRaises(openai.InternalServerError) as down:
            self.chat("down", model="m-down")
        self.assertEqual(down.exception.status_code, 503)
        control("c")

    def test_aborted_stream(self):
        for name in ["a", "b"]:
            control(name, gap_ms=20, chunks=200)
        with self.chat("abort", model="spread", stream=True) as stream:
            served = stream.response.headers["x-switchboard-provider"]
            for _ in range(4):
                next(iter(stream))
        for name in ["a", "b"]:
            control(name)
        after = self.raw("abort", model="spread")
        self.assertEqual(after.headers["x-switchboard-provider"], served)
        self.assertEqual(after.headers["x-switchboard-decision"], "affinity")

    def test_ten_turns(self):
        turns, heads = [], []
        for turn in range(10):
            turns.append({"role": "user", "content": f"turn {turn}"})
            raw = self.raw("ten", model="spread", messages=turns, stream=True)
            text = self.text(raw.parse())
            self.assertTrue(text.startswith(f"Hello from {raw.headers['x-switchboard-provider']}."), text)
            turns.append({"role": "assistant", "content": text})
            heads.append(raw.headers)
        assert_stayed(self, heads, "ten", "round_robin")

    def test_chunks_come_as_they_are_sent(self):
        for name in ["a", "b"]:
            control(name, **PACED)
        stream = self.chat("paced", stream=True)
        assert_paced(self, (chunk.choices[0].delta.content for chunk in stream))
        for name in ["a", "b"]:
            control(name)

    def test_cut_stream(self):
        for name in ["a", "b"]:
            control(name, cut=3)
        text = ""
        with self.assertRaises(openai.APIError) as cut:
            for chunk in self.chat("cut", stream=True):
                text += chunk.choices[0].delta.content or ""
        for name in ["a", "b"]:
            control(name)
        self.assertRegex(text, r"^Hello from [ab]\.")
        self.assertTrue(cut.exception.body["message"], cut.exception)

    def test_conversations_side_by_side(self):
        def talk(name):
            return {self.text(self.chat(name, model="spread", stream=True)) for _ in range(3)}

        with ThreadPoolExecutor(len(PARALLEL)) as threads:
            for texts in threads.map(talk, PARALLEL):
                self.assertEqual(len(texts), 1, texts)

    def test_large_answers(self):
        for name in ["a", "b"]:
            control(name, **LARGE)
        raw = self.raw("large", stream=True)
        self.assertTrue(self.text(raw.parse()) == large_text(raw.headers["x-switchboard-provider"]), "streamed")
        plain = self.chat("large-plain")
        self.assertTrue(plain.choices[0].message.content == large_text(plain.system_fingerprint), "plain")
        for name in ["a", "b"]:
            control(name)

    def test_large_requests(self):
        fits = self.chat("fits", messages=[{"role": "user", "content": long(5_000_000)}])
        self.assertEqual(fits.choices[0].finish_reason, "stop")
        for size in TOO_LARGE:
            with self.assertRaises(openai.APIStatusError) as refused:
                self.chat("fits", messages=[{"role": "user", "content": "x" * size}])
            self.assertEqual(refused.exception.status_code, 413)
            self.assertIsInstance(refused.exception.body, dict)

    def test_a_provider_starts_to_fail(self):
        served, switches = [], []
        for turn in range(8):
            if turn == 4:
                control(served[0], status=503)
            raw = self.raw("move", model="spread-too")
            served.append(raw.headers["x-switchboard-provider"])
            switches.append(raw.headers["x-switchboard-switches"])
        control(served[0])
        other = "b" if served[0] == "a" else "a"
        self.assertEqual(served, [served[0]] * 4 + [other] * 4)
        self.assertEqual(switches, ["0"] * 4 + ["1"] * 4)


if __name__ == "__main__":
    unittest.main()
