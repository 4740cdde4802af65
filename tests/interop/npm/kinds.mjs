/** Each kind: its name in Java, how an edgelatch client creates it, and its groups of cases. */

import { contention } from "./contention.mjs";
import { again, exclusive, never, tells, told } from "./exclusive.mjs";
import { latch, permits, readers, semaphore } from "./shared.mjs";
import { woken } from "./woken.mjs";

const VALUES = ["one", "two"];

/** A kind that has one name on one Redis. */
const one = (kind, make, ...groups) => ({
  kind,
  nodes: 1,
  java: (_, name) => ({ kind, name }),
  make: ({ locks }, name) => make(locks, name),
  groups,
});

const members = (name) => [name, `${name}-2`];

export const kinds = [
  one("lock", (locks, name) => locks.lock(name), exclusive, told, again, tells, contention, woken),
  one("nonReentrantLock", (locks, name) => locks.nonReentrantLock(name), exclusive, told, never, tells, contention),
  one("spinLock", (locks, name) => locks.spinLock(name), exclusive, told, again, contention),
  one("fairLock", (locks, name) => locks.fairLock(name), exclusive, told, again, tells, contention),
  one("nonReentrantFairLock", (locks, name) => locks.nonReentrantFairLock(name), exclusive, told, never, tells, contention),
  one("fencedLock", (locks, name) => locks.fencedLock(name), exclusive, told, again, tells, contention, woken),
  one("writeLock", (locks, name) => locks.readWriteLock(name).write, exclusive, told, again, tells, contention),
  one("readLock", (locks, name) => locks.readWriteLock(name, { peerWatchdogMs: null }).read, readers),
  {
    kind: "groupLock",
    nodes: 1,
    java: (_, name) => ({ kind: "groupLock", name, values: VALUES }),
    make: ({ locks }, name) => locks.groupLock(name, VALUES),
    groups: [exclusive, again, tells, contention],
  },
  {
    kind: "multiLock",
    nodes: 1,
    java: (_, name) => ({ kind: "multiLock", locks: members(name).map((name) => ({ kind: "lock", name })) }),
    make: ({ locks }, name) => locks.multiLock(members(name).map((name) => locks.lock(name))),
    groups: [exclusive, again, tells, contention],
  },
  {
    kind: "redLock",
    nodes: 3,
    // It ignores the exceptions of its members.
    ignoresStrangers: true,
    java: (service, name) => ({ kind: "redLock", locks: service.nodes.map((service) => ({ kind: "lock", name, service })) }),
    make: ({ locks, nodes }, name) => locks.redLock(nodes.map((locks) => locks.lock(name))),
    groups: [exclusive, again, tells, contention],
  },
  one("semaphore", (locks, name) => locks.semaphore(name), semaphore),
  one("permitExpirableSemaphore", (locks, name) => locks.permitExpirableSemaphore(name), permits),
  one("countDownLatch", (locks, name) => locks.countDownLatch(name), latch),
];
