// What the suites share. The Go test that starts them sets the environment.
export const base = process.env.BASE_URL;
export const key = process.env.CLIENT_KEY;
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
