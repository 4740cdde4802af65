// A fetch function that replies to the lock's scripts as Redis would, with one hold in memory and
// the frame of every reply.
//
// A function body. `refusals` is the number of tries that are refused before one is granted.

let left = refusals;
let held = null;
let token = 1795268812119000;

const scripts = {
  lock_acquire(owner, lease) {
    if (left-- > 0) return [0, "1", 20];
    held = owner;
    token += 1;
    return [1, String(token), lease];
  },
  lock_release(owner) {
    const was = held === owner;
    if (was) held = null;
    return [was ? 1 : 0, "0", 0];
  },
};

return async (input, init) => {
  const body = init?.body ?? (await input.text());
  const [command, source, keys, ...rest] = JSON.parse(body);
  // Redis does not know the script: the client then sends the text, which shows which one it is.
  if (command === "EVALSHA") return from(input, { error: "NOSCRIPT No matching script." }, 400);
  const [request, , , , owner, lease] = rest.slice(Number(keys));
  const kind = source.includes("ARGV[8]") ? "lock_acquire" : "lock_release";
  return from(input, { result: [...scripts[kind](owner, Number(lease)), Date.now(), request] }, 200);
};

function from(input, answer, status) {
  return Object.defineProperty(Response.json(answer, { status }), "url", { value: input.url ?? input });
}
