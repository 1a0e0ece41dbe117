import assert from 'node:assert/strict';
import test from 'node:test';
import OpenAI from 'openai';
import {assertPaced, assertStayed, base, control, key, large, largeText, long, paced, parallel, rejection, session, tooLarge} from './rig.mjs';

const client = new OpenAI({baseURL: `${base}/v1`, apiKey: key, maxRetries: 0});
const messages = [{role: 'user', content: 'hello'}];
const tools = [{type: 'function', function: {name: 'get_weather', parameters: {type: 'object', properties: {city: {type: 'string'}}}}}];

async function textOf(stream) {
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? '';
  return text;
}

test('plain chat', async () => {
  const {data, response} = await client.chat.completions.create({model: 'm-oai', messages}, {headers: {...session('plain').headers, Cookie: 'of=the-client; and=more'}}).withResponse();
  assert.match(data.choices[0].message.content, /^Hello from [ab]\. Größe 1 👋/);
  assert.equal(data.usage.prompt_tokens_details.cached_tokens, 800);
  assert.equal(response.headers.get('x-switchboard-session'), 'js-plain');
  assert.equal(response.headers.get('x-switchboard-session-source'), 'header:x-session-id');
  assert.equal(response.headers.get('x-switchboard-provider'), data.system_fingerprint);
  assert.equal(response.headers.get('x-switchboard-model'), 'm-oai');
  assert.equal(response.headers.get('x-switchboard-decision'), 'rank');
  assert.equal(response.headers.get('x-switchboard-switches'), '0');
  assert.ok(response.headers.get('x-request-id'));
  assert.deepEqual(response.headers.getSetCookie(), []); // the provider's cookies are between it and us
});

test('streamed chat hides usage that was not asked for', async () => {
  const stream = await client.chat.completions.create({model: 'm-oai', messages, stream: true}, session('stream'));
  let text = '';
  for await (const chunk of stream) {
    assert.equal(chunk.choices.length, 1);
    assert.ok(!chunk.usage);
    text += chunk.choices[0].delta.content ?? '';
  }
  assert.match(text, /^Hello from [ab]\..* Größe 3 👋$/);
});

test('streamed chat shows usage that was asked for', async () => {
  const stream = await client.chat.completions.create(
    {model: 'm-oai', messages, stream: true, stream_options: {include_usage: true}}, session('usage'));
  let usage;
  for await (const chunk of stream) usage = chunk.usage ?? usage;
  assert.equal(usage.completion_tokens, 20);
});

test('tools, plain and streamed', async () => {
  const plain = await client.chat.completions.create({model: 'm-oai', messages, tools}, session('tools'));
  const call = plain.choices[0].message.tool_calls[0];
  assert.deepEqual(JSON.parse(call.function.arguments), {city: 'Berlin'});
  const turn = [...messages, plain.choices[0].message, {role: 'tool', tool_call_id: call.id, content: 'sunny'}];
  const done = await client.chat.completions.create({model: 'm-oai', messages: turn, tools}, session('tools'));
  assert.equal(done.choices[0].finish_reason, 'stop');
  const final = await client.chat.completions.stream({model: 'm-oai', messages, tools}, session('tools')).finalChatCompletion();
  assert.equal(final.choices[0].message.tool_calls[0].function.arguments, '{"city":"Berlin"}');
});

test('responses, plain and streamed, stay where the previous response lives', async () => {
  for (const model of ['spread', 'spread', 'spread-too', 'spread-too']) {
    const {data: first, response} = await client.responses.create({model, input: `start ${model} ${Math.random()}`}).withResponse();
    assert.match(first.output_text, /^Hello from/);
    let previous = first.id;
    for (let turn = 0; turn < 3; turn++) {
      // The fake provider answers 404 unless provider and key are the ones that made it.
      const stream = await client.responses.create({model, input: `go on ${turn}`, previous_response_id: previous, stream: true});
      let completed;
      for await (const event of stream) if (event.type === 'response.completed') completed = event.response;
      assert.equal(completed.usage.input_tokens, 1000);
      const next = await client.responses.create({model, input: 'and on', previous_response_id: completed.id}).withResponse();
      assert.equal(next.response.headers.get('x-switchboard-provider'), response.headers.get('x-switchboard-provider'));
      previous = next.data.id;
    }
  }
});

test('embeddings', async () => {
  const answer = await client.embeddings.create({model: 'm-emb', input: 'hello'}, session('embeddings'));
  assert.deepEqual([...answer.data[0].embedding], [0.25, -0.5, 1]);
});

test('models', async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  for (const id of ['m-oai', 'm-emb', 'm-ant', 'spread']) assert.ok(ids.includes(id), `${id} in ${ids}`);
  assert.equal((await client.models.retrieve('m-oai')).id, 'm-oai');
  assert.ok(await rejection(client.models.retrieve('m-nope')) instanceof OpenAI.NotFoundError);
});

test('error classes', async () => {
  const stranger = new OpenAI({baseURL: `${base}/v1`, apiKey: `${key}x`, maxRetries: 0});
  const wrongKey = await rejection(stranger.chat.completions.create({model: 'm-oai', messages}));
  assert.ok(wrongKey instanceof OpenAI.AuthenticationError, wrongKey);
  assert.ok(await rejection(stranger.models.list()) instanceof OpenAI.AuthenticationError);

  const unknown = await rejection(client.chat.completions.create({model: 'm-nope', messages}));
  assert.ok(unknown instanceof OpenAI.NotFoundError, unknown);
  assert.equal(unknown.code, 'model_not_found');
  assert.equal(unknown.param, 'model');

  const long = await rejection(client.chat.completions.create({model: 'm-oai', messages: [{role: 'user', content: 'far too long'}]}, session('bad')));
  assert.ok(long instanceof OpenAI.BadRequestError, long);
  assert.equal(long.code, 'context_length_exceeded');

  await control('c', {status: 429, retry_after: '7'});
  const limited = await rejection(client.chat.completions.create({model: 'm-limited', messages}, session('limited')));
  assert.ok(limited instanceof OpenAI.RateLimitError, limited);
  const wait = Number(limited.headers.get('retry-after'));
  assert.ok(wait >= 6 && wait <= 7, `Retry-After ${wait}`);

  await control('c', {status: 503});
  const down = await rejection(client.chat.completions.create({model: 'm-down', messages}, session('down')));
  assert.ok(down instanceof OpenAI.InternalServerError, down);
  assert.equal(down.status, 503);
  await control('c', {});
});

test('an aborted stream is not the provider\'s fault', async () => {
  for (const u of ['a', 'b']) await control(u, {gap_ms: 20, chunks: 200});
  const {data: stream, response} = await client.chat.completions.create({model: 'spread', messages, stream: true}, session('abort')).withResponse();
  let seen = 0;
  for await (const _ of stream) if (++seen === 4) break; // ends the request
  for (const u of ['a', 'b']) await control(u, {});
  const next = await client.chat.completions.create({model: 'spread', messages}, session('abort')).withResponse();
  assert.equal(next.response.headers.get('x-switchboard-provider'), response.headers.get('x-switchboard-provider'));
  assert.equal(next.response.headers.get('x-switchboard-decision'), 'affinity');
});

test('ten turns stay on one provider', async () => {
  const turns = [], heads = [];
  for (let turn = 0; turn < 10; turn++) {
    turns.push({role: 'user', content: `turn ${turn}`});
    const {data, response} = await client.chat.completions.create({model: 'spread', messages: turns, stream: true}, session('ten')).withResponse();
    const content = await textOf(data);
    assert.match(content, new RegExp(`^Hello from ${response.headers.get('x-switchboard-provider')}\\.`));
    turns.push({role: 'assistant', content});
    heads.push(response.headers);
  }
  assertStayed(heads, 'ten', 'round_robin');
});

test('chunks come as they are sent', async () => {
  for (const u of ['a', 'b']) await control(u, paced);
  const stream = await client.chat.completions.create({model: 'm-oai', messages, stream: true}, session('paced'));
  await assertPaced(stream, (chunk) => chunk.choices[0].delta.content);
  for (const u of ['a', 'b']) await control(u, {});
});

test('a stream that the provider cuts is an error, not an end', async () => {
  for (const u of ['a', 'b']) await control(u, {cut: 3});
  let text = '';
  const cut = await rejection((async () => {
    const stream = await client.chat.completions.create({model: 'm-oai', messages, stream: true}, session('cut'));
    for await (const chunk of stream) text += chunk.choices[0].delta.content ?? '';
  })());
  for (const u of ['a', 'b']) await control(u, {});
  assert.match(text, /^Hello from [ab]\./);
  assert.ok(cut instanceof OpenAI.APIError, cut);
  assert.ok(cut.error.message, cut);
});

test('conversations side by side', async () => {
  await Promise.all(parallel.map(async (name) => {
    const texts = new Set();
    for (let turn = 0; turn < 3; turn++) {
      texts.add(await textOf(await client.chat.completions.create({model: 'spread', messages, stream: true}, session(name))));
    }
    assert.equal(texts.size, 1);
  }));
});

test('large answers, streamed and plain', async () => {
  for (const u of ['a', 'b']) await control(u, large);
  const {data: stream, response} = await client.chat.completions.create({model: 'm-oai', messages, stream: true}, session('large')).withResponse();
  assert.ok(await textOf(stream) === largeText(response.headers.get('x-switchboard-provider')), 'streamed');
  const plain = await client.chat.completions.create({model: 'm-oai', messages}, session('large-plain'));
  assert.ok(plain.choices[0].message.content === largeText(plain.system_fingerprint), 'plain');
  for (const u of ['a', 'b']) await control(u, {});
});

test('a large request fits, a larger one is refused', async () => {
  const ask = (content) => client.chat.completions.create({model: 'm-oai', messages: [{role: 'user', content}]}, session('fits'));
  assert.equal((await ask(long(5_000_000))).choices[0].finish_reason, 'stop');
  for (const size of tooLarge) {
    const refused = await rejection(ask('x'.repeat(size)));
    assert.ok(refused instanceof OpenAI.APIError, refused);
    assert.equal(refused.status, 413);
    assert.match(refused.headers.get('content-type'), /^application\/json/);
  }
});

test('a provider that starts to fail costs one switch', async () => {
  const served = [];
  for (let turn = 0; turn < 8; turn++) {
    if (turn === 4) await control(served[0], {status: 503});
    const {response} = await client.chat.completions.create({model: 'spread-too', messages}, session('move')).withResponse();
    served.push(response.headers.get('x-switchboard-provider'));
    assert.equal(response.headers.get('x-switchboard-switches'), turn < 4 ? '0' : '1');
  }
  await control(served[0], {});
  const other = served[0] === 'a' ? 'b' : 'a';
  assert.deepEqual(served, [...Array(4).fill(served[0]), ...Array(4).fill(other)]);
});
