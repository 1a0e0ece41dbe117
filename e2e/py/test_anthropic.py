import json
import unittest

import anthropic
from rig import BASE, KEY, LARGE, PACED, TOO_LARGE, assert_paced, assert_stayed, control, large_text, long, session

ASK = {"model": "m-ant", "max_tokens": 64, "messages": [{"role": "user", "content": "hello"}]}
TOOLS = [
    {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
]


class AnthropicSDK(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = anthropic.Anthropic(base_url=BASE, api_key=KEY, max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def create(self, name, **arguments):
        return self.client.messages.create(extra_headers=session(name), **(ASK | arguments))

    def test_plain(self):
        answer = self.create("msg")
        self.assertRegex(answer.content[0].text, r"^Hello from n\. Größe 1 👋")
        self.assertEqual(answer.usage.cache_read_input_tokens, 800)

    def test_stream(self):
        with self.client.messages.stream(extra_headers=session("msg"), **ASK) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertRegex(text, r"^Hello from n\..* Größe 3 👋$")
        self.assertEqual(final.usage.output_tokens, 20)

    def test_session_of_claude_code(self):
        name = "5d0c7a4e-1111-4222-8333-9f00aa00bb02"
        raw = self.client.messages.with_raw_response.create(
            metadata={"user_id": json.dumps({"device_id": "d", "session_id": name})}, **ASK
        )
        self.assertEqual(raw.headers["x-switchboard-session"], name)

    def test_tools(self):
        plain = self.create("msg-tools", tools=TOOLS)
        self.assertEqual(plain.content[0].input, {"city": "Berlin"})
        result = {"type": "tool_result", "tool_use_id": plain.content[0].id, "content": "sunny"}
        turn = ASK["messages"] + [
            {"role": "assistant", "content": [plain.content[0].model_dump()]},
            {"role": "user", "content": [result]},
        ]
        self.assertEqual(self.create("msg-tools", tools=TOOLS, messages=turn).stop_reason, "end_turn")
        with self.client.messages.stream(extra_headers=session("msg-tools"), tools=TOOLS, **ASK) as stream:
            final = stream.get_final_message()
        self.assertEqual(final.content[0].input, {"city": "Berlin"})

    def test_streamed_conversation_with_tools(self):
        talk, reasons = [], []
        for question in ["today?", "tomorrow?"]:
            talk.append({"role": "user", "content": question})
            while talk[-1]["role"] == "user":
                answer, json_parts = self.streamed("msg-tool-talk", tools=TOOLS, messages=talk)
                talk.append({"role": "assistant", "content": [block.model_dump() for block in answer.content]})
                reasons.append(answer.stop_reason)
                if answer.stop_reason == "tool_use":
                    self.assertEqual(json.loads("".join(json_parts)), {"city": "Berlin"})
                    result = {"type": "tool_result", "tool_use_id": answer.content[0].id, "content": "sunny"}
                    talk.append({"role": "user", "content": [result]})
        self.assertEqual(reasons, ["tool_use", "end_turn", "tool_use", "end_turn"])

    def streamed(self, name, **arguments):
        """The final message of a stream, and the parts of a tool's input as they came."""
        with self.client.messages.stream(extra_headers=session(name), **(ASK | arguments)) as stream:
            parts = [event.partial_json for event in stream if event.type == "input_json"]
            return stream.get_final_message(), parts

    def test_ten_turns(self):
        talk, heads = [], []
        for turn in range(10):
            talk.append({"role": "user", "content": f"turn {turn}"})
            with self.client.messages.stream(extra_headers=session("msg-ten"), **(ASK | {"messages": talk})) as stream:
                talk.append({"role": "assistant", "content": stream.get_final_text()})
                heads.append(stream.response.headers)
        assert_stayed(self, heads, "msg-ten", "rank")

    def test_chunks_come_as_they_are_sent(self):
        control("n", **PACED)
        with self.client.messages.stream(extra_headers=session("msg-paced"), **ASK) as stream:
            assert_paced(self, stream.text_stream)
        control("n")

    def test_cut_stream(self):
        control("n", cut=5)
        text = ""
        with self.assertRaises(anthropic.APIError) as cut:
            with self.client.messages.stream(extra_headers=session("msg-cut"), **ASK) as stream:
                for piece in stream.text_stream:
                    text += piece
        control("n")
        self.assertRegex(text, r"^Hello from n\.")
        self.assertEqual(cut.exception.body["type"], "error")

    def test_large_answers(self):
        control("n", **LARGE)
        with self.client.messages.stream(extra_headers=session("msg-large"), **ASK) as stream:
            self.assertTrue("".join(stream.text_stream) == large_text("n"), "streamed")
        self.assertTrue(self.create("msg-large").content[0].text == large_text("n"), "plain")
        control("n")

    def test_large_requests(self):
        fits = self.create("msg-fits", messages=[{"role": "user", "content": long(5_000_000)}])
        self.assertEqual(fits.stop_reason, "end_turn")
        for size in TOO_LARGE:
            with self.assertRaises(anthropic.ContentTooLargeError) as refused:
                self.create("msg-fits", messages=[{"role": "user", "content": "x" * size}])
            self.assertIsInstance(refused.exception.body, dict)

    def test_count_tokens(self):
        answer = self.client.messages.count_tokens(
            model="m-ant", messages=ASK["messages"], extra_headers=session("count")
        )
        self.assertEqual(answer.input_tokens, 1000)

    def test_models(self):
        self.assertIn("m-ant", [model.id for model in self.client.models.list()])
        self.assertEqual(self.client.models.retrieve("m-ant").id, "m-ant")

    def test_error_classes(self):
        with anthropic.Anthropic(base_url=BASE, api_key="nobody", max_retries=0) as stranger:
            with self.assertRaises(anthropic.AuthenticationError):
                stranger.messages.create(**ASK)
        with self.assertRaises(anthropic.NotFoundError):
            self.create("none", model="m-nope")
        with self.assertRaises(anthropic.BadRequestError):
            self.create("msg-bad", messages=[{"role": "user", "content": "far too long"}])

    def test_aborted_stream(self):
        control("n", gap_ms=20, chunks=200)
        with self.client.messages.stream(extra_headers=session("msg-abort"), **ASK) as stream:
            for _ in range(5):
                next(stream)
        control("n")
        raw = self.client.messages.with_raw_response.create(extra_headers=session("msg-abort"), **ASK)
        self.assertEqual(raw.headers["x-switchboard-decision"], "affinity")

    def test_zz_all_limited(self):  # last: it leaves both keys limited
        control("n", status=429, retry_after="3")
        with self.assertRaises(anthropic.RateLimitError) as limited:
            self.create("msg-limited")
        control("n")
        self.assertIn(limited.exception.response.headers["retry-after"], ["2", "3"])


if __name__ == "__main__":
    unittest.main()
