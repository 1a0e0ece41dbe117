import assert from 'node:assert/strict';
import test from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import {base, control, key, rejection, session} from './rig.mjs';

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
