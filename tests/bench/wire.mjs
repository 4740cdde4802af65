// What leaves this process: counted, and recorded so that it can be sent again without the library
// that made it.

/** What a new connection says by itself. */
const GREETING = new Set(["hello", "client", "info", "select"]);

/** Over `fetch`, which everybody here looks up at each request. */
export function overHttp({ url, token }) {
  const { fetch } = globalThis;
  let requests = 0;
  let open = 0;
  let heard = () => {};
  globalThis.fetch = async (input, init) => {
    requests += 1;
    open += 1;
    heard(input, init);
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
    /** How many have no answer yet. */
    open: () => open,
    /** Ends when there is a connection. */
    opened: () => send(hello),
    /** The smallest request there is, sent by nobody's library. */
    ping: () => send(hello),
    /** What `work` sends, as something that sends it again, one after the other. */
    async recorded(work) {
      const sent = [];
      // A signal belongs to the request that it was made for.
      heard = (input, { signal, ...init } = {}) => sent.push([input, init]);
      await work();
      heard = () => {};
      return async () => {
        for (const request of sent) await send(request);
      };
    },
  };
}

/** Over ioredis' connections. A request is a command. */
export function overTcp({ redis }, Redis) {
  const { sendCommand } = Redis.prototype;
  let requests = 0;
  let open = 0;
  let heard = () => {};
  const over = () => (open -= 1);
  class Counted extends Redis {
    sendCommand(command, stream) {
      if (!stream && !GREETING.has(command.name)) {
        requests += 1;
        open += 1;
        command.promise.then(over, over);
        heard(command);
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
      heard = ({ name, args }) => sent.push([name, args]);
      await work();
      heard = () => {};
      return async () => {
        for (const [name, args] of sent) await plain().call(name, ...args);
      };
    },
  };
}
