// Each official SDK against the other vendor's provider.
import assert from 'node:assert/strict';
import test from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import {base, control, key, rejection, session} from './rig.mjs';

const openai = new OpenAI({baseURL: `${base}/v1`, apiKey: key, maxRetries: 0});
const anthropic = new Anthropic({baseURL: base, apiKey: key, maxRetries: 0});
const schema = {type: 'object', properties: {city: {type: 'string'}}};
const functions = [{type: 'function', function: {name: 'get_weather', parameters: schema}}];
const tools = [{name: 'get_weather', input_schema: schema}];
const pixel = 'iVBORw0KGgo+/w==';
const chat = (more) => ({model: 'm-ant', messages: [{role: 'system', content: 'be terse'}, {role: 'user', content: 'hello'}], ...more});
const ask = (more) => ({model: 'm-oai', max_tokens: 20_000, system: 'be terse', messages: [{role: 'user', content: 'hello'}], ...more});
const way = 'openai-chat-completions->anthropic-messages';
const back = 'anthropic-messages->openai-chat-completions';
const thought = 'I ponder "Größe".';

test('OpenAI SDK: plain', async () => {
  const {data, response} = await openai.chat.completions.create(chat({seed: 3}), session('tr-chat')).withResponse();
  assert.match(data.choices[0].message.content, /^Hello from n\. Größe 1 👋/);
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.deepEqual([data.usage.prompt_tokens, data.usage.completion_tokens, data.usage.prompt_tokens_details.cached_tokens], [1000, 20, 800]);
  assert.equal(response.headers.get('x-switchboard-translated'), `${way}; dropped=seed`);
  assert.equal(response.headers.get('x-switchboard-provider'), 'n');
});

test('OpenAI SDK: stream with usage', async () => {
  const stream = openai.chat.completions.stream(chat({stream_options: {include_usage: true}}), session('tr-chat'));
  const final = await stream.finalChatCompletion();
  assert.match(final.choices[0].message.content, /^Hello from n\..* Größe 3 👋$/);
  assert.equal(final.usage.total_tokens, 1020);
});

test('OpenAI SDK: tools, images and thinking, streamed and plain, in one conversation', async () => {
  const messages = [{role: 'user', content: [
    {type: 'text', text: 'what is this?'},
    {type: 'image_url', image_url: {url: `data:image/png;base64,${pixel}`}},
    {type: 'image_url', image_url: {url: 'https://images.example/a.png'}},
    {type: 'file', file: {filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0='}},
  ]}];
  for (const streamed of [true, false]) {
    const body = {model: 'm-ant', messages, tools: functions, reasoning_effort: 'low'};
    const answer = streamed
      ? await openai.chat.completions.stream(body, session('tr-chat-talk')).finalChatCompletion()
      : await openai.chat.completions.create(body, session('tr-chat-talk'));
    const {message, finish_reason} = answer.choices[0];
    assert.equal(finish_reason, 'tool_calls');
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), {city: 'Berlin'});
    assert.equal(message.thinking_blocks[0].thinking, thought);
    messages.push(message, {role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'sunny'});
    // The fake refuses thinking that does not come back as it went.
    const done = await openai.chat.completions.create({...body, messages}, session('tr-chat-talk'));
    assert.equal(done.choices[0].finish_reason, 'stop');
    messages.push(done.choices[0].message, {role: 'user', content: 'and tomorrow?'});
  }
});

test('OpenAI SDK: errors', async () => {
  const long = await rejection(openai.chat.completions.create(chat({messages: [{role: 'user', content: 'far too long'}]}), session('tr-chat-bad')));
  assert.ok(long instanceof OpenAI.BadRequestError, long);
  const two = await rejection(openai.chat.completions.create(chat({n: 2}), session('tr-chat-bad')));
  assert.deepEqual([two.status, two.param, two.code], [400, 'n', 'untranslatable']);
  await control('n', {cut: 5});
  const cut = await rejection(openai.chat.completions.stream(chat(), session('tr-chat-cut')).finalChatCompletion());
  await control('n', {});
  assert.ok(cut instanceof OpenAI.APIError, cut);
});

test('Anthropic SDK: plain', async () => {
  const {data, response} = await anthropic.messages.create(ask({top_k: 3}), session('tr-msg')).withResponse();
  assert.match(data.content[0].text, /^Hello from [ab]\. Größe 1 👋/);
  assert.deepEqual([data.type, data.role, data.stop_reason], ['message', 'assistant', 'end_turn']);
  assert.deepEqual([data.usage.input_tokens, data.usage.cache_read_input_tokens, data.usage.output_tokens], [200, 800, 20]);
  assert.equal(response.headers.get('x-switchboard-translated'), `${back}; dropped=top_k`);
});

test('Anthropic SDK: stream', async () => {
  const final = await anthropic.messages.stream(ask(), session('tr-msg')).finalMessage();
  assert.match(final.content[0].text, /^Hello from [ab]\..* Größe 3 👋$/);
  assert.deepEqual([final.usage.input_tokens, final.usage.cache_read_input_tokens, final.usage.output_tokens], [200, 800, 20]);
});

test('Anthropic SDK: tools, images and thinking, streamed and plain, in one conversation', async () => {
  const messages = [{role: 'user', content: [
    {type: 'text', text: 'what is this?'},
    {type: 'image', source: {type: 'base64', media_type: 'image/png', data: pixel}},
    {type: 'image', source: {type: 'url', url: 'https://images.example/a.png'}},
    {type: 'document', source: {type: 'base64', media_type: 'application/pdf', data: 'JVBERi0='}},
  ]}];
  for (const streamed of [true, false]) {
    const body = ask({messages, tools, thinking: {type: 'enabled', budget_tokens: 2048}});
    const answer = streamed
      ? await anthropic.messages.stream(body, session('tr-msg-talk')).finalMessage()
      : await anthropic.messages.create(body, session('tr-msg-talk'));
    assert.equal(answer.stop_reason, 'tool_use');
    assert.deepEqual(answer.content.map((block) => block.type), ['thinking', 'tool_use']);
    assert.equal(answer.content[0].thinking, thought);
    assert.deepEqual(answer.content[1].input, {city: 'Berlin'});
    const result = [{type: 'text', text: 'sunny'}, {type: 'image', source: {type: 'base64', media_type: 'image/png', data: pixel}}];
    messages.push({role: 'assistant', content: answer.content}, {role: 'user', content: [{type: 'tool_result', tool_use_id: answer.content[1].id, content: 'sunny'}]});
    const done = await anthropic.messages.create({...body, tools: undefined, messages}, session('tr-msg-talk'));
    assert.equal(done.stop_reason, 'end_turn');
    messages.push({role: 'assistant', content: done.content}, {role: 'user', content: result});
  }
});

test('Anthropic SDK: errors', async () => {
  const long = await rejection(anthropic.messages.create(ask({messages: [{role: 'user', content: 'far too long'}]}), session('tr-msg-bad')));
  assert.ok(long instanceof Anthropic.BadRequestError, long);
  assert.equal(long.error.type, 'error');
  const server = await rejection(anthropic.messages.create(ask({tools: [{type: 'web_search_20250305', name: 'web_search'}]}), session('tr-msg-bad')));
  assert.match(server.message, /tools\[0\]\.type/);
  for (const name of ['a', 'b']) await control(name, {cut: 3});
  const cut = await rejection(anthropic.messages.stream(ask(), session('tr-msg-cut')).finalMessage());
  for (const name of ['a', 'b']) await control(name, {});
  assert.ok(cut instanceof Anthropic.APIError, cut);
});
