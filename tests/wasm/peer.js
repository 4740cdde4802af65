// A fetch function whose path selects the response: the peer of the transport's conformance suite,
// without a server.
//
// A function body. `shown` is true if redirections are visible, as in Node, and false if they are
// hidden, as in browsers.

const counts = new Map();
const add = (what) => counts.set(what, (counts.get(what) ?? 0) + 1);

const stream = (chunks, end) => {
  const left = [...chunks];
  return new ReadableStream({
    pull(controller) {
      if (left.length > 0) controller.enqueue(left.shift());
      else return end(controller);
    },
  });
};
const close = (controller) => controller.close();
const failStream = (controller) => controller.error(new TypeError("terminated"));
const untilAborted = (signal) =>
  new Promise((_, reject) => {
    signal.addEventListener("abort", () => {
      add("closed");
      reject(signal.reason);
    });
  });
const date = "Sun, 22 Nov 2026 10:00:00 GMT";
const text = (string) => new TextEncoder().encode(string);

const paths = {
  status: (status) => new Response("body", { status, headers: { "upstash-sync-token": `after-${status}` } }),
  "retry-after": (value) => new Response("", { status: 429, headers: { date, "retry-after": decodeURIComponent(value) } }),
  mirror: (rest, { method, headers, body }) =>
    Response.json({ line: `${method} /mirror/${rest} HTTP/1.1`, headers: Object.fromEntries(new Headers(headers)), body }),
  bytes: (length) => new Response(new Uint8Array(Number(length)).fill(120)),
  chunks(length) {
    const whole = new Uint8Array(Number(length)).fill(120);
    const parts = Array.from({ length: Math.ceil(whole.length / 1_000) }, (_, i) => whole.subarray(i * 1_000, (i + 1) * 1_000));
    return new Response(stream(parts, close));
  },
  redirect(status, { redirect }) {
    if (redirect !== "manual") throw new TypeError("it would be followed");
    return shown ? new Response(null, { status, headers: { location: "/target" } }) : Response.error();
  },
  broken(place) {
    if (place === "before" || place === "head") throw new TypeError("fetch failed");
    return new Response(stream([text("half")], failStream));
  },
  silence: (_rest, { signal }) => untilAborted(signal),
  stream: (_rest, { signal }) => new Response(stream([text("first")], () => untilAborted(signal))),
  count: (what) => new Response(String(counts.get(what) ?? 0)),
  "reset-counts"() {
    counts.clear();
    return new Response("");
  },
};

return async (input, init) => {
  // `fetch` also accepts a Request object.
  const { method, headers, body, redirect, signal } = input instanceof Request ? { ...plain(input), body: await input.text() } : init;
  const url = new URL(typeof input === "string" ? input : input.url);
  if (url.hostname === "unreachable.example") throw new TypeError("fetch failed");
  const path = url.pathname.slice(1);
  const [kind, rest] = [path.split("/", 1)[0], path.slice(path.indexOf("/") + 1)];
  if (kind !== "count" && kind !== "reset-counts") add(path);
  const response = await paths[kind](rest, { method, headers, body, redirect, signal });
  return Object.defineProperty(response, "url", { value: url.href });
};

function plain({ method, headers, redirect, signal }) {
  return { method, headers, redirect, signal };
}
