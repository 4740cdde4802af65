/** A TCP proxy in front of a Redis, which loses a response or stops to forward commands. */

import { once } from "node:events";
import { connect, createServer } from "node:net";

/**
 * Starts a proxy in front of the Redis at a Unix socket; returns its port and its faults.
 * `loseResponse()` breaks the connection in place of the next response, after Redis has executed
 * the command. Between `hang()` and `resume()` every connection stays open, and no command arrives;
 * `withheld()` returns the number of messages that wait meanwhile.
 */
export async function startProxy(socket) {
  const open = new Set();
  let isLosing = false;
  /** While the proxy hangs: the calls that forward what has arrived. */
  let waiting = null;
  const server = createServer((client) => {
    const redis = connect({ path: socket });
    const end = () => {
      open.delete(client);
      client.destroy();
      redis.destroy();
    };
    for (const side of [client, redis]) side.on("error", end).on("close", end);
    redis.on("data", (response) => {
      if (!isLosing) return client.write(response);
      isLosing = false;
      end();
    });
    client.on("data", (command) => {
      const forward = () => redis.write(command);
      if (waiting === null) forward();
      else waiting.push(forward);
    });
    open.add(client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: server.address().port,
    loseResponse: () => (isLosing = true),
    hang: () => (waiting = []),
    withheld: () => waiting.length,
    resume() {
      for (const forward of waiting) forward();
      waiting = null;
    },
    close() {
      server.close();
      for (const client of open) client.destroy();
    },
  };
}
