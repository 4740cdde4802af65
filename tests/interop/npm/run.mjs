/**
 * The packed npm package and Redisson itself on the same Redis, in Node.
 *
 * Environment: EDGELATCH_TARBALL (what `npm pack` made), EDGELATCH_GATEWAY (our gateway's program),
 * EDGELATCH_PEER (the folder of the Java side, as `cargo xtask test interop-npm` has built it).
 */

import { after, before, describe, test } from "node:test";

import { kinds } from "./kinds.mjs";
import { startStand } from "./stand.mjs";

/** How many kinds at a time: they wait more than they compute. */
const TOGETHER = 3;

let stand;
before(async () => {
  stand = await startStand();
});
after(() => stand?.close());

describe("Redisson and the npm package", { concurrency: TOGETHER }, () => kinds.forEach(cases));

function cases(kind) {
  describe(kind.kind, { concurrency: 3 }, () => {
    let service;
    before(async () => {
      service = await stand.service({}, kind.nodes);
    });
    after(() => service?.close());
    for (const [sentence, run] of kind.groups.flatMap(Object.entries)) {
      test(sentence, () => run(world(kind, service, sentence)));
    }
  });
}

/**
 * What a case meets: an object of its own in the hands of both sides, and a Java thread of its own.
 */
function world(kind, service, sentence) {
  const name = `${kind.kind}:${crypto.randomUUID()}`;
  const describedFor = (service) => kind.java(service, name);
  return {
    ...stand,
    kind,
    name,
    ours: kind.make(stand.client(), name),
    java: service.object(describedFor(service), sentence),
    /** The same object in the hands of a client of its own, or of what is made of it. */
    make: (client) => kind.make(client, name),
    /**
     * The same object in the hands of another Java thread, which may have another of Redisson's
     * kinds of it.
     */
    other: (description = describedFor(service)) => service.object({ name, ...description }, `${sentence}, another`),
    /** A Java service of its own, and the object in its hands. */
    async another(config) {
      const own = await stand.service(config, kind.nodes);
      return { own, java: own.object(describedFor(own)), description: describedFor(own) };
    },
  };
}
