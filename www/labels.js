/** The texts of the page about contenders of each kind. */

const ORDINALS = ["first", "second", "third", "fourth", "fifth"];

const DEFAULT_LABELS = {
  /** For the head of a lane: while waiting, while holding, and afterwards. */
  waits: () => "Waiting",
  holds: () => "Inside",
  done: () => "Done",
  /** For the bar of a hold. */
  bar: () => "",
};

const LABELS = {
  lock: {
    start: ({ contenders }) => `${contenders.length} Workers request the same lock.`,
    released: ({ name }) => `${name} released the lock.`,
    holds: () => "Holds the lock",
    bar: ({ token }) => `…${tokenParts(token)[1]}`,
  },
  readers: {
    start: () => "Four readers and two writers start, one after the other.",
    held: ({ name, holds, hold }) => {
      if (hold.as === "alone") return `${name} writes, alone.`;
      return holds.length > 1 ? `${name} has stopped writing, and goes on reading.` : `${name} reads.`;
    },
    released: ({ name }) => `${name} is done.`,
    holds: ({ hold }) => (hold.as === "alone" ? "Writes" : "Reads"),
    done: ({ holds }) => (holds.length > 1 ? "Wrote, then read" : "Done"),
    bar: (one, { as }) => (as === "alone" ? "writes" : "reads"),
  },
  fair: {
    start: () => "Five Workers queue up for the same lock.",
    queued: ({ name, queued }) => `${name} came ${ORDINALS[queued.place - 1]}.`,
    held: (one, run) => `${one.name} is served ${served(one, run)}.`,
    left: ({ name }) => `${name} left the queue.`,
    waits: ({ queued }) => (queued ? came({ queued }) : "Arriving"),
    holds: (one, run) => `${came(one)}, served ${served(one, run)}`,
    done: (one, run) => `${came(one)}, served ${served(one, run)}`,
    bar: (one, hold, run) => served(one, run),
  },
  permits: {
    start: () => "Six Workers each request one of two permits.",
    held: ({ name }, { inside }) => `${name} has a permit. ${inside.length} inside.`,
    released: ({ name }) => `${name} released its permit.`,
    holds: () => "Has a permit",
    bar: () => "permit",
  },
  latch: {
    start: () => "The gate opens after three steps. Three Workers wait for it.",
    held: ({ name, role }) => (role === "wait" ? `${name} goes through the gate.` : null),
    counted: ({ name, counted }) =>
      counted.left === 0 ? `${name} is done. The gate is open.` : `${name} is done, ${counted.left} left to count.`,
    waits: () => "Before the gate",
    holds: ({ role }) => (role === "wait" ? "Goes through" : "Works"),
    done: ({ role, counted }) => (role === "wait" ? "Through" : `Done, ${counted.left} left`),
    bar: ({ role }) => (role === "wait" ? "passes" : "works"),
  },
  pairs: {
    start: () => "Five locks in a ring, and five Workers that each request two neighbours at once.",
    held: ({ name }) => `${name} are held together.`,
    released: ({ name }) => `${name} are free again.`,
    holds: () => "Holds both",
    bar: ({ name }) => name,
  },
};

/**
 * Returns the texts of a kind: functions of a contender (for a bar, also of its hold) and the run.
 */
export function labelsOf(kind) {
  return { ...DEFAULT_LABELS, ...LABELS[kind] };
}

/** Returns the text for the head of a lane. */
export function describe(one, run, now) {
  const left = secondsText(Math.max(0, (one.leaseEnd ?? 0) - now));
  switch (one.state) {
    case "ready":
      return run.started && run.endedAt === null ? "On its way" : "Ready";
    case "waiting":
      return run.labels.waits(one, run);
    case "holding":
      return one.isInside ? run.labels.holds(one, run) : "Releasing";
    case "killed":
      return `Dead, lease ${left}`;
    case "expired":
      return "Dead, lease expired";
    case "released":
      return run.labels.done(one, run);
    case "left":
      return one.queued ? `${came(one)}, left` : "Left";
    case "lost":
      return "Lost its lease";
    default:
      return "Failed";
  }
}

/**
 * The number of a token's last digits that fit everywhere. Tokens count microseconds, so these
 * digits differ for a quarter of an hour.
 */
const TOKEN_END_DIGITS = 9;

/** Returns a token as two texts: the leading digits, and the last ones, which fit everywhere. */
export function tokenParts(token) {
  if (token === null) return ["", ""];
  const digits = String(token);
  return [`${tokenText(digits.slice(0, -TOKEN_END_DIGITS))}\u202f`, tokenText(digits.slice(-TOKEN_END_DIGITS))];
}

/** Returns a token in groups of three digits. */
export function tokenText(token) {
  return String(token).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

export function secondsText(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

function came({ queued }) {
  return `Came ${ORDINALS[queued.place - 1]}`;
}

function served(one, run) {
  return ORDINALS[run.served.indexOf(one)];
}
