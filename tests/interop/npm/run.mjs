/**
 * Tests the packed npm package and Redisson on the same Redis, in Node.
 *
 * Environment: EDGELATCH_TARBALL (the output of `npm pack`), EDGELATCH_GATEWAY (the gateway's
 * program), EDGELATCH_PEER (the folder of the Java side, built by `cargo xtask test interop-npm`).
 */

import { after, before, describe, test } from "node:test";

import { kinds } from "./kinds.mjs";
import { startEnv } from "./env.mjs";

/** The number of kinds that run concurrently: they wait more than they compute. */
const TOGETHER = 3;

let env;
before(async () => {
  env = await startEnv();
});
after(() => env?.close());

describe("Redisson and the npm package", { concurrency: TOGETHER }, () => kinds.forEach(cases));

function cases(kind) {
  describe(kind.kind, { concurrency: 3 }, () => {
    let service;
    before(async () => {
      service = await env.service({}, kind.nodes);
    });
    after(() => service?.close());
    for (const [sentence, run] of kind.groups.flatMap(Object.entries)) {
      test(sentence, () => run(world(kind, service, sentence)));
    }
  });
}

/** The environment of a case: an object of its own on both sides, and a Java thread of its own. */
function world(kind, service, sentence) {
  const name = `${kind.kind}:${crypto.randomUUID()}`;
  const describedFor = (service) => kind.java(service, name);
  const inJava = (service) => ({
    java: service.object(describedFor(service), sentence),
    /**
     * Whether the Java thread holds the object. Redisson's own reply is true only if a red lock
     * holds all its members, but it locks with a majority of them.
     */
    async javaHolds() {
      const description = describedFor(service);
      const voters = kind.nodes > 1 ? description.locks : [description];
      const replies = voters.map((voter) => service.object(voter, sentence).call("isHeldByCurrentThread"));
      return (await Promise.all(replies)).filter(Boolean).length > voters.length / 2;
    },
  });
  return {
    ...env,
    kind,
    name,
    ours: kind.make(env.client(), name),
    ...inJava(service),
    /** The same object of another client, or of what is derived from that client. */
    make: (client) => kind.make(client, name),
    /** The same object in another Java thread, which may use another of Redisson's kinds for it. */
    other: (description = describedFor(service)) => service.object({ name, ...description }, `${sentence}, another`),
    /** A Java service of its own, with the object. */
    async another(config) {
      const own = await env.service(config, kind.nodes);
      return { own, ...inJava(own), description: describedFor(own) };
    },
  };
}
