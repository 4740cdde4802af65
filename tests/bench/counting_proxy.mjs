// A proxy on loopback that counts the bytes of both directions: HTTP with its headers, or Redis'
// protocol.
import { connect, createServer } from "node:net";

/** Forwards to the address; returns the proxy's address, the counts so far, and how to end it. */
export async function startCountingProxy(target) {
  const { protocol, hostname, port } = new URL(target);
  const counts = { up: 0, down: 0 };
  const sockets = new Set();
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ host: hostname, port: Number(port), noDelay: true });
    for (const [from, to, way] of [[near, far, "up"], [far, near, "down"]]) {
      sockets.add(from);
      from.on("data", (bytes) => (counts[way] += bytes.length));
      from.on("error", () => to.destroy());
      from.on("close", () => sockets.delete(from));
      from.pipe(to);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `${protocol}//127.0.0.1:${server.address().port}`,
    counts,
    end() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
