/**
 * The pictures of the site's pages. Tokens are shortened: real ones have 16 digits. The numbers of
 * scenarios name the tests that show the same.
 */

const [A, REDIS, B] = [0, 1, 2];
const PARTIES = ["Worker A", "Redis", "Worker B"];
const STORE = 3;

export const PICTURES = {
  lease: {
    title: "A lease and its token on a time line",
    description: "Worker A renews its lease every 10 s. When it dies, nothing is renewed: the lease ends, and Worker B gets a higher token.",
    scenarios: [36, 38],
    columns: PARTIES,
    rows: [
      { at: "0 s", from: A, to: REDIS, text: "acquire" },
      { from: REDIS, to: A, text: "token 41, 30 s" },
      { at: "2 s", from: B, to: REDIS, text: "acquire" },
      { from: REDIS, to: B, text: "held: wait" },
      { at: "10 s", from: A, to: REDIS, text: "renew" },
      { from: REDIS, to: A, text: "until 40 s" },
      { at: "14 s", column: A, text: "crash", bad: true },
      { at: "40 s", column: REDIS, text: "lease ends" },
      { from: B, to: REDIS, text: "acquire" },
      { from: REDIS, to: B, text: "token 42" },
    ],
    bars: [
      { column: A, from: 1, to: 6, kind: "hold" },
      { column: REDIS, from: 0, to: 6, kind: "hold" },
      { column: REDIS, from: 6, to: 7, kind: "rest" },
      { column: B, from: 3, to: 9, kind: "wait" },
      { column: REDIS, from: 8, to: 10, kind: "hold" },
      { column: B, from: 9, to: 10, kind: "hold" },
    ],
  },
  "lost-grant": {
    title: "The reply to an acquisition is lost",
    description: "Redis has granted the lock, but the client cannot know it. It repeats the request for the same owner, and gets the same grant.",
    scenarios: [1, 4],
    columns: ["Worker A", "Redis"],
    rows: [
      { at: "0 s", from: A, to: REDIS, text: "acquire, owner a7" },
      { from: REDIS, to: A, text: "granted, token 41", lost: true },
      { at: "5 s", column: A, text: "no reply in time" },
      { from: A, to: REDIS, text: "acquire, owner a7" },
      { from: REDIS, to: A, text: "already yours, token 41" },
    ],
    bars: [
      { column: REDIS, from: 0, to: 5, kind: "hold" },
      { column: A, from: 0, to: 4, kind: "wait" },
      { column: A, from: 4, to: 5, kind: "hold" },
    ],
  },
  "undone-grant": {
    title: "No reply arrives at all",
    description: "After three attempts the client undoes the acquisition: Redis ends the hold and records that this owner must never be granted again. A late copy changes nothing.",
    scenarios: [79, 5, 6],
    columns: ["Worker A", "Redis"],
    rows: [
      { at: "0 s", from: A, to: REDIS, text: "acquire, owner a7" },
      { from: REDIS, to: A, text: "granted, token 41", lost: true },
      { column: A, text: "two more attempts" },
      { from: A, to: REDIS, text: "undo, owner a7" },
      { from: REDIS, to: A, text: "undone" },
      { column: A, text: "error: nothing is held" },
      { from: A, to: REDIS, text: "a late copy of the request" },
      { from: REDIS, to: A, text: "not granted" },
    ],
    bars: [
      { column: REDIS, from: 0, to: 3, kind: "hold" },
      { column: A, from: 0, to: 5, kind: "wait" },
    ],
  },
  "lost-release": {
    title: "The reply to a release is lost",
    description: "Redis has recorded the result of the release, so the repeated one gets the same reply, even if another client holds the lock by then.",
    scenarios: [12, 13],
    columns: PARTIES,
    rows: [
      { column: A, text: "holds token 41" },
      { from: A, to: REDIS, text: "release" },
      { from: REDIS, to: A, text: "released", lost: true },
      { from: B, to: REDIS, text: "acquire" },
      { from: REDIS, to: B, text: "token 42" },
      { from: A, to: REDIS, text: "release again" },
      { from: REDIS, to: A, text: "released" },
    ],
    bars: [
      { column: A, from: -0.4, to: 1, kind: "hold" },
      { column: REDIS, from: -0.4, to: 1, kind: "hold" },
      { column: REDIS, from: 3, to: 7, kind: "hold" },
      { column: B, from: 4, to: 7, kind: "hold" },
    ],
  },
  frozen: {
    title: "The holder freezes, and resumes too late",
    description: "Worker A stops for longer than its lease, for example a laptop that sleeps. Its signal aborts when it runs again, and the store rejects the write that was already on its way.",
    scenarios: [32, 33],
    columns: [...PARTIES, "Store"],
    rows: [
      { at: "0 s", from: REDIS, to: A, text: "token 41" },
      { at: "5 s", column: A, text: "stopped", bad: true },
      { at: "30 s", column: REDIS, text: "lease ends" },
      { from: REDIS, to: B, text: "token 42" },
      { from: B, to: STORE, text: "write, 42" },
      { at: "50 s", column: A, text: "resumes" },
      { column: A, text: "signal aborts" },
      { from: A, to: STORE, text: "write, 41", late: true },
      { column: STORE, text: "rejected", bad: true },
    ],
    bars: [
      { column: A, from: 0, to: 1, kind: "hold" },
      { column: A, from: 1, to: 5, kind: "stopped" },
      { column: REDIS, from: 0, to: 2, kind: "hold" },
      { column: REDIS, from: 3, to: 9, kind: "hold" },
      { column: B, from: 3, to: 9, kind: "hold" },
    ],
  },
  waiting: {
    title: "A release wakes the waiter",
    description: "A waiter subscribes and then sends nothing. The release publishes a message, and the waiter tries again at once.",
    scenarios: [74],
    columns: PARTIES,
    rows: [
      { from: B, to: REDIS, text: "acquire" },
      { from: REDIS, to: B, text: "held" },
      { from: B, to: REDIS, text: "subscribe" },
      { from: B, to: REDIS, text: "acquire" },
      { from: REDIS, to: B, text: "held" },
      { from: A, to: REDIS, text: "release" },
      { from: REDIS, to: B, text: "message" },
      { from: B, to: REDIS, text: "acquire" },
      { from: REDIS, to: B, text: "token 42" },
    ],
    bars: [
      { column: A, from: -0.4, to: 5, kind: "hold" },
      { column: REDIS, from: -0.4, to: 5, kind: "hold" },
      { column: B, from: 1, to: 8, kind: "wait" },
      { column: REDIS, from: 7, to: 9, kind: "hold" },
      { column: B, from: 8, to: 9, kind: "hold" },
    ],
  },
};
