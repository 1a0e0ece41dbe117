import assert from 'node:assert/strict';
import test from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import {assertPaced, assertStayed, base, control, key, large, largeText, long, paced, rejection, session, tooLarge} from './rig.mjs';

const client = new Anthropic({baseURL: base, apiKey: key, maxRetries: 0});
const messages = [{role: 'user', content: 'hello'}];
const ask = {model: 'm-ant', max_tokens: 64, messages};
const tools = [{name: 'get_weather', input_schema: {type: 'object', properties: {city: {type: 'string'}}}}];

test('plain messages', async () => {
  const {data, response} = await client.messages.create(ask, session('msg')).withResponse();
  assert.match(data.content[0].text, /^Hello from n\. Größe 1 👋/);
  assert.equal(data.usage.cache_read_input_tokens, 800);
  assert.equal(response.headers.get('x-switchboard-provider'), 'n');
  assert.equal(response.headers.get('x-switchboard-session'), 'js-msg');
});

test('streamed messages', async () => {
  const final = await client.messages.stream(ask, session('msg')).finalMessage();
  assert.match(final.content[0].text, / Größe 3 👋$/);
  assert.equal(final.usage.output_tokens, 20);
});

test('a bearer token works as well', async () => {
  const bearer = new Anthropic({baseURL: base, apiKey: null, authToken: key, maxRetries: 0});
  assert.equal((await bearer.messages.create(ask, session('bearer'))).stop_reason, 'end_turn');
});

test('the session of Claude Code', async () => {
  const id = '5d0c7a4e-1111-4222-8333-9f00aa00bb01';
  const {response} = await client.messages.create({...ask, metadata: {user_id: JSON.stringify({device_id: 'd', session_id: id})}}).withResponse();
  assert.equal(response.headers.get('x-switchboard-session'), id);
});

test('tools, plain and streamed', async () => {
  const plain = await client.messages.create({...ask, tools}, session('msg-tools'));
  assert.equal(plain.stop_reason, 'tool_use');
  assert.deepEqual(plain.content[0].input, {city: 'Berlin'});
  const result = {role: 'user', content: [{type: 'tool_result', tool_use_id: plain.content[0].id, content: 'sunny'}]};
  const done = await client.messages.create({...ask, tools, messages: [...messages, {role: 'assistant', content: plain.content}, result]}, session('msg-tools'));
  assert.equal(done.stop_reason, 'end_turn');
  const final = await client.messages.stream({...ask, tools}, session('msg-tools')).finalMessage();
  assert.deepEqual(final.content[0].input, {city: 'Berlin'});
});

test('a streamed conversation with tools', async () => {
  const talk = [], reasons = [];
  for (const question of ['today?', 'tomorrow?']) {
    talk.push({role: 'user', content: question});
    while (talk.at(-1).role === 'user') {
      const stream = client.messages.stream({...ask, tools, messages: talk}, session('msg-tool-talk'));
      let json = '';
      stream.on('inputJson', (part) => (json += part));
      const {content, stop_reason} = await stream.finalMessage();
      talk.push({role: 'assistant', content});
      reasons.push(stop_reason);
      if (stop_reason !== 'tool_use') continue;
      assert.deepEqual([JSON.parse(json), content[0].input], [{city: 'Berlin'}, {city: 'Berlin'}]);
      talk.push({role: 'user', content: [{type: 'tool_result', tool_use_id: content[0].id, content: 'sunny'}]});
    }
  }
  assert.deepEqual(reasons, ['tool_use', 'end_turn', 'tool_use', 'end_turn']);
});

test('ten turns stay on one key', async () => {
  const talk = [], heads = [];
  for (let turn = 0; turn < 10; turn++) {
    talk.push({role: 'user', content: `turn ${turn}`});
    const {data: stream, response} = await client.messages.stream({...ask, messages: talk}, session('msg-ten')).withResponse();
    talk.push({role: 'assistant', content: await stream.finalText()});
    heads.push(response.headers);
  }
  assertStayed(heads, 'msg-ten', 'rank');
});

test('chunks come as they are sent', async () => {
  await control('n', paced);
  await assertPaced(client.messages.stream(ask, session('msg-paced')), (event) => event.delta?.text);
  await control('n', {});
});

test('a stream that the provider cuts is an error, not an end', async () => {
  await control('n', {cut: 5});
  const stream = client.messages.stream(ask, session('msg-cut'));
  let text = '';
  stream.on('text', (part) => (text += part));
  const cut = await rejection(stream.finalMessage());
  await control('n', {});
  assert.match(text, /^Hello from n\./);
  assert.ok(cut instanceof Anthropic.APIError, cut);
  assert.equal(cut.error.type, 'error');
});

test('large answers, streamed and plain', async () => {
  await control('n', large);
  assert.ok(await client.messages.stream(ask, session('msg-large')).finalText() === largeText('n'), 'streamed');
  const plain = await client.messages.create(ask, session('msg-large'));
  assert.ok(plain.content[0].text === largeText('n'), 'plain');
  await control('n', {});
});

test('a large request fits, a larger one is refused', async () => {
  const send = (content) => client.messages.create({...ask, messages: [{role: 'user', content}]}, session('msg-fits'));
  assert.equal((await send(long(5_000_000))).stop_reason, 'end_turn');
  for (const size of tooLarge) {
    const refused = await rejection(send('x'.repeat(size)));
    assert.ok(refused instanceof Anthropic.ContentTooLargeError, refused);
    assert.equal(typeof refused.error, 'object');
  }
});

test('count_tokens', async () => {
  assert.equal((await client.messages.countTokens({model: 'm-ant', messages}, session('count'))).input_tokens, 1000);
});

test('models', async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.ok(ids.includes('m-ant'), ids);
  assert.equal((await client.models.retrieve('m-ant')).type, 'model');
});

test('error classes', async () => {
  const stranger = new Anthropic({baseURL: base, apiKey: `${key}x`, maxRetries: 0});
  const wrongKey = await rejection(stranger.messages.create(ask));
  assert.ok(wrongKey instanceof Anthropic.AuthenticationError, wrongKey);
  assert.equal(wrongKey.error.error.type, 'authentication_error');
  const unknown = await rejection(client.messages.create({...ask, model: 'm-nope'}));
  assert.ok(unknown instanceof Anthropic.NotFoundError, unknown);
  assert.equal(unknown.error.type, 'error');
  const long = await rejection(client.messages.create({...ask, messages: [{role: 'user', content: 'far too long'}]}, session('msg-bad')));
  assert.ok(long instanceof Anthropic.BadRequestError, long);
});

test('an aborted stream is not the provider\'s fault', async () => {
  await control('n', {gap_ms: 20, chunks: 200});
  const stream = client.messages.stream(ask, session('msg-abort'));
  let seen = 0;
  for await (const _ of stream) if (++seen === 5) break;
  await control('n', {});
  const next = await client.messages.create(ask, session('msg-abort')).withResponse();
  assert.equal(next.response.headers.get('x-switchboard-decision'), 'affinity');
});

test('all limited', async () => {
  await control('n', {status: 429, retry_after: '3'});
  const limited = await rejection(client.messages.create(ask, session('msg-limited')));
  await control('n', {});
  assert.ok(limited instanceof Anthropic.RateLimitError, limited);
  const wait = Number(limited.headers.get('retry-after'));
  assert.ok(wait >= 2 && wait <= 3, `Retry-After ${wait}`);
});
