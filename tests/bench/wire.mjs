// Counts the requests of this process, and records them so that they can be sent again without
// their library.

/** The commands that a client library sends on a new connection by itself. */
const GREETING = new Set(["hello", "client", "info", "select"]);

/** Counts requests by `fetch`, which each of these libraries looks up at each request. */
export function overHttp({ url, token }) {
  const { fetch } = globalThis;
  let requests = 0;
  let open = 0;
  let record = () => {};
  globalThis.fetch = async (input, init) => {
    requests += 1;
    open += 1;
    record(input, init);
    try {
      return await fetch(input, init);
    } finally {
      open -= 1;
    }
  };
  const headers = { authorization: `Bearer ${token}` };
  const hello = [url, { method: "POST", headers, body: '["PING"]' }];
  const send = async ([input, init]) => (await fetch(input, init)).text();
  return {
    requests: () => requests,
    /** The number of requests without a response. */
    open: () => open,
    /** Resolves when there is a connection. */
    opened: () => send(hello),
    /** Sends the smallest request, without a library. */
    ping: () => send(hello),
    /** Records the requests of `work`; returns a function that sends them again, one by one. */
    async recorded(work) {
      const sent = [];
      // A signal belongs to the request that it was made for.
      record = (input, { signal, ...init } = {}) => sent.push([input, init]);
      await work();
      record = () => {};
      return async () => {
        for (const request of sent) await send(request);
      };
    },
  };
}

/** Counts the commands on ioredis' connections. */
export function overTcp({ redis }, Redis) {
  const { sendCommand } = Redis.prototype;
  let requests = 0;
  let open = 0;
  let record = () => {};
  const over = () => (open -= 1);
  class Counted extends Redis {
    sendCommand(command, stream) {
      if (!stream && !GREETING.has(command.name)) {
        requests += 1;
        open += 1;
        command.promise.then(over, over);
        record(command);
      }
      return sendCommand.call(this, command, stream);
    }
  }
  const connections = [];
  const connect = () => {
    connections.push(new Counted(redis));
    return connections.at(-1);
  };
  let bare;
  const plain = () => (bare ??= new Redis(redis));
  return {
    connect,
    requests: () => requests,
    open: () => open,
    opened: () => Promise.all(connections.map((connection) => connection.ping())),
    ping: () => plain().ping(),
    async recorded(work) {
      const sent = [];
      record = ({ name, args }) => sent.push([name, args]);
      await work();
      record = () => {};
      return async () => {
        for (const [name, args] of sent) await plain().call(name, ...args);
      };
    },
  };
}
