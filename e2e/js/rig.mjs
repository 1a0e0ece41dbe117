// What the suites share. The Go test that starts them sets the environment.
import assert from 'node:assert/strict';

export const base = process.env.BASE_URL;
export const key = process.env.CLIENT_KEY;
/** tooLarge are sizes of bodies, in bytes, that are refused. */
export const tooLarge = JSON.parse(process.env.TOO_LARGE);
const upstreams = JSON.parse(process.env.UPSTREAMS);

/** control replaces the behaviour of an upstream. */
export async function control(name, behaviour) {
  const answer = await fetch(`${upstreams[name]}/ctl`, {method: 'POST', body: JSON.stringify(behaviour)});
  if (answer.status !== 200) throw new Error(`ctl ${name}: ${answer.status}`);
}

/** session gives the header that names a session; the Go test looks for it afterwards. */
export const session = (name) => ({headers: {'X-Session-Id': `js-${name}`}});

/** rejection returns what a promise is rejected with. */
export async function rejection(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('the call succeeded');
}

/** long is text of so many bytes of JSON, in lines as people write them. */
export const long = (bytes) => `${'word '.repeat(15)}\n`.repeat(Math.floor(bytes / 77));

/** large makes an upstream answer with 7 MB, of which largeText is the text. */
export const large = {chunks: 71, piece_bytes: 100_000};
export function largeText(name) {
  let text = `Hello from ${name}.`;
  for (let i = 1; i < large.chunks; i++) text += ` Größe ${i} ${'x'.repeat(large.piece_bytes)}👋`;
  return text;
}

/** paced makes an upstream pause between the pieces of its answer. */
export const paced = {chunks: 6, gap_ms: 200};

/** parallel are the sessions that talk at the same time. */
export const parallel = Array.from({length: 12}, (_, i) => `parallel-${i}`);

/** assertPaced reads a stream: most pieces of its text, which textOf finds, come as far apart as they are sent. */
export async function assertPaced(stream, textOf) {
  const times = [];
  for await (const event of stream) if (textOf(event)) times.push(performance.now());
  assert.equal(times.length, paced.chunks);
  const gaps = times.slice(1).map((time, i) => time - times[i]);
  assert.ok(gaps.filter((gap) => gap > paced.gap_ms / 2).length > gaps.length / 2, `gaps of ${gaps} ms`);
}

/** assertStayed looks at the headers of a conversation's turns: it stayed where it began. */
export function assertStayed(turns, name, first) {
  const say = (header) => turns.map((headers) => headers.get(header));
  const all = (value) => turns.map(() => value);
  assert.deepEqual(say('x-switchboard-session'), all(`js-${name}`));
  assert.deepEqual(say('x-switchboard-session-source'), all('header:x-session-id'));
  assert.deepEqual(say('x-switchboard-switches'), all('0'));
  assert.deepEqual(say('x-switchboard-decision'), [first, ...all('affinity').slice(1)]);
  for (const header of ['x-switchboard-provider', 'x-switchboard-model']) assert.equal(new Set(say(header)).size, 1, header);
  assert.equal(new Set(say('x-request-id')).size, turns.length);
}
