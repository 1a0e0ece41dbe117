"""Each official SDK against the other vendor's provider."""

import json
import unittest

import anthropic
import openai
from rig import BASE, KEY, control, session

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
FUNCTIONS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
TOOLS = [{"name": "get_weather", "input_schema": SCHEMA}]
PIXEL = "iVBORw0KGgo+/w=="
THOUGHT = 'I ponder "Größe".'


class OpenAISDKOnAnthropic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = openai.OpenAI(base_url=BASE + "/v1", api_key=KEY, max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def ask(self, name, **arguments):
        messages = [{"role": "system", "content": "be terse"}, {"role": "user", "content": "hello"}]
        arguments = {"model": "m-ant", "messages": messages} | arguments
        return self.client.chat.completions.create(extra_headers=session(name), **arguments)

    def test_plain(self):
        answer = self.ask("tr-chat")
        self.assertRegex(answer.choices[0].message.content, r"^Hello from n\. Größe 1 👋")
        self.assertEqual(answer.usage.prompt_tokens_details.cached_tokens, 800)
        self.assertEqual(answer.usage.total_tokens, 1020)

    def test_stream(self):
        chunks = list(self.ask("tr-chat", stream=True, stream_options={"include_usage": True}))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertRegex(text, r"^Hello from n\..* Größe 3 👋$")
        self.assertEqual(chunks[-1].usage.completion_tokens, 20)
        self.assertEqual(chunks[-2].choices[0].finish_reason, "stop")

    def test_tools_images_and_thinking(self):
        messages = [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "what is this?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}},
                    {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
                ],
            }
        ]
        for streamed in [True, False]:
            arguments = {"model": "m-ant", "messages": messages, "tools": FUNCTIONS, "reasoning_effort": "low"}
            if streamed:
                with self.client.chat.completions.stream(extra_headers=session("tr-chat-talk"), **arguments) as stream:
                    answer = stream.get_final_completion()
            else:
                answer = self.client.chat.completions.create(extra_headers=session("tr-chat-talk"), **arguments)
            message = answer.choices[0].message
            self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
            self.assertEqual(json.loads(message.tool_calls[0].function.arguments), {"city": "Berlin"})
            turn = message.model_dump(exclude_none=True)
            self.assertEqual(turn["thinking_blocks"][0]["thinking"], THOUGHT)
            self.assertEqual(turn["reasoning_content"], THOUGHT)
            turn.pop("parsed", None)
            for call in turn["tool_calls"]:
                call["function"].pop("parsed_arguments", None)
            messages += [turn, {"role": "tool", "tool_call_id": turn["tool_calls"][0]["id"], "content": "sunny"}]
            # The fake refuses thinking that does not come back as it went.
            done = self.client.chat.completions.create(extra_headers=session("tr-chat-talk"), **(arguments | {"messages": messages}))
            self.assertEqual(done.choices[0].finish_reason, "stop")
            messages += [done.choices[0].message.model_dump(exclude_none=True), {"role": "user", "content": "and tomorrow?"}]

    def test_errors(self):
        with self.assertRaises(openai.BadRequestError):
            self.ask("tr-chat-bad", messages=[{"role": "user", "content": "far too long"}])
        with self.assertRaises(openai.BadRequestError) as two:
            self.ask("tr-chat-bad", n=2)
        self.assertEqual(two.exception.param, "n")
        control("n", cut=5)
        with self.assertRaises(openai.APIError):
            list(self.ask("tr-chat-cut", stream=True))
        control("n")


class AnthropicSDKOnOpenAI(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = anthropic.Anthropic(base_url=BASE, api_key=KEY, max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def arguments(self, name, **more):
        ask = {"model": "m-oai", "max_tokens": 20_000, "system": "be terse", "messages": [{"role": "user", "content": "hello"}]}
        return ask | {"extra_headers": session(name)} | more

    def test_plain(self):
        answer = self.client.messages.create(**self.arguments("tr-msg"))
        self.assertRegex(answer.content[0].text, r"^Hello from [ab]\. Größe 1 👋")
        self.assertEqual(answer.usage.input_tokens, 200)
        self.assertEqual(answer.usage.cache_read_input_tokens, 800)

    def test_stream(self):
        with self.client.messages.stream(**self.arguments("tr-msg")) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertRegex(text, r"^Hello from [ab]\..* Größe 3 👋$")
        self.assertEqual(final.usage.input_tokens, 200)
        self.assertEqual(final.usage.output_tokens, 20)

    def test_tools_images_and_thinking(self):
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
        messages = [{"role": "user", "content": [{"type": "text", "text": "what is this?"}, image]}]
        for streamed in [True, False]:
            arguments = self.arguments("tr-msg-talk", messages=messages, tools=TOOLS, thinking={"type": "enabled", "budget_tokens": 2048})
            if streamed:
                with self.client.messages.stream(**arguments) as stream:
                    answer = stream.get_final_message()
            else:
                answer = self.client.messages.create(**arguments)
            self.assertEqual([block.type for block in answer.content], ["thinking", "tool_use"])
            self.assertEqual(answer.content[0].thinking, THOUGHT)
            self.assertEqual(answer.content[1].input, {"city": "Berlin"})
            result = {"type": "tool_result", "tool_use_id": answer.content[1].id, "content": [{"type": "text", "text": "sunny"}, image]}
            messages += [{"role": "assistant", "content": [block.model_dump() for block in answer.content]}, {"role": "user", "content": [result]}]
            done = self.client.messages.create(**(arguments | {"messages": messages, "tools": anthropic.omit}))
            self.assertEqual(done.stop_reason, "end_turn")
            messages += [{"role": "assistant", "content": done.content[-1].text}, {"role": "user", "content": "and tomorrow?"}]

    def test_errors(self):
        with self.assertRaises(anthropic.BadRequestError):
            self.client.messages.create(**self.arguments("tr-msg-bad", messages=[{"role": "user", "content": "far too long"}]))
        with self.assertRaisesRegex(anthropic.BadRequestError, r"tools\[0\]\.type"):
            self.client.messages.create(**self.arguments("tr-msg-bad", tools=[{"type": "web_search_20250305", "name": "web_search"}]))
        for name in ["a", "b"]:
            control(name, cut=3)
        with self.assertRaises(anthropic.APIError):
            with self.client.messages.stream(**self.arguments("tr-msg-cut")) as stream:
                stream.get_final_message()
        for name in ["a", "b"]:
            control(name)


if __name__ == "__main__":
    unittest.main()
