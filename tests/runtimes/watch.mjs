/**
 * Watches what a module does to its runtime. Imported before the package, so that it sees what the
 * package does at load.
 *
 * It also lends a clock that can be put forward: what would take ten seconds happens at once, in
 * its order.
 */

const GLOBALS = ["fetch", "setInterval", "setTimeout"];
const real = { clearTimeout, setTimeout, dateNow: Date.now, monotonicNow: performance.now.bind(performance) };

/** By how much each clock was put forward. */
const ahead = { monotonic: 0, wall: 0 };
const timers = new Map();

/** What was called since the watch began, by name, until the package has loaded. */
const calls = [];
let counting = true;

const prototypes = { Array, Error, Function, Object, Promise, Uint8Array };
const before = membersOfAll();

for (const name of GLOBALS) {
  const original = globalThis[name];
  globalThis[name] = function (...values) {
    if (counting) calls.push(name);
    return name === "setTimeout" ? timer(...values) : Reflect.apply(original, globalThis, values);
  };
}
globalThis.clearTimeout = (id) => {
  timers.delete(id);
  real.clearTimeout.call(globalThis, id);
};
performance.now = () => real.monotonicNow() + ahead.monotonic;
Date.now = () => real.dateNow() + ahead.wall;
const { getRandomValues } = crypto;
crypto.getRandomValues = (array) => {
  if (counting) calls.push("getRandomValues");
  return getRandomValues.call(crypto, array);
};
const { random } = Math;
Math.random = () => {
  if (counting) calls.push("random");
  return random();
};

/** Compiling and instantiating are watched too. */
for (const name of ["compile", "compileStreaming", "instantiate", "instantiateStreaming"]) {
  const original = WebAssembly[name];
  if (!original) continue;
  WebAssembly[name] = (...values) => {
    if (counting) calls.push(`WebAssembly.${name}`);
    return Reflect.apply(original, WebAssembly, values);
  };
}
const { Instance, Module } = WebAssembly;
WebAssembly.Module = function (...values) {
  if (counting) calls.push("WebAssembly.Module");
  return Reflect.construct(Module, values);
};
WebAssembly.Module.prototype = Module.prototype;
Object.assign(WebAssembly.Module, { customSections: Module.customSections, exports: Module.exports, imports: Module.imports });

/**
 * What the package's module exports, if it was instantiated at once, as it is done wherever no page
 * waits for it. Node has other modules.
 */
let wasm;
WebAssembly.Instance = function (...values) {
  if (counting) calls.push("WebAssembly.Instance");
  const instance = Reflect.construct(Instance, values);
  if (instance.exports.__wbindgen_malloc) wasm = instance.exports;
  return instance;
};

/**
 * The least that an allocator of WebAssembly gives: with the four bytes that it keeps before each
 * piece, sixteen.
 */
const [ASKED, PIECE, ALIGNED] = [12, 16, 4];

/**
 * How large the memory of WebAssembly has become, and how much of it is in use, to the piece. It
 * never shrinks: its size tells of the fullest moment that there was, not of what is kept. Whatever
 * can still be had of it before it grows is not in use.
 */
export function memory() {
  const { memory, __wbindgen_malloc: allocate, __wbindgen_free: free } = wasm;
  const size = memory.buffer.byteLength;
  const had = [];
  while (memory.buffer.byteLength === size) had.push(allocate(ASKED, ALIGNED));
  for (const piece of had) free(piece, ASKED, ALIGNED);
  // The last one is of what the memory has grown by.
  return { size, used: size - (had.length - 1) * PIECE };
}

function timer(callback, ms = 0, ...values) {
  // Node's fetch has a timer that it refreshes: what has fired may fire again.
  const fire = () => {
    timers.delete(id);
    callback(...values);
  };
  const id = real.setTimeout.call(globalThis, fire, ms);
  timers.set(id, { due: performance.now() + ms, fire });
  return id;
}

/** Ends the count: the package has loaded. */
export function loaded() {
  counting = false;
}

/** What was called while the package loaded. */
export function calledAtLoad() {
  return calls;
}

/** How many timers wait. */
export function timersLeft() {
  return timers.size;
}

/** Puts both clocks forward, and fires what has become due, in its order. */
export function putForward(ms) {
  moveClocks({ monotonic: ms, wall: ms });
  const due = [...timers].filter(([, { due }]) => due <= performance.now()).sort(([, a], [, b]) => a.due - b.due);
  for (const [id, { fire }] of due) {
    if (!timers.has(id)) continue;
    real.clearTimeout.call(globalThis, id);
    fire();
  }
}

/** Moves the clocks and nothing else: timers go off when they would have. */
export function moveClocks({ monotonic = 0, wall = 0 }) {
  ahead.monotonic += monotonic;
  ahead.wall += wall;
}

/**
 * Which of the prototypes that everybody shares have members that were added, taken away or
 * replaced.
 */
export function changedPrototypes() {
  const now = membersOfAll();
  return Object.keys(prototypes).filter((name) => {
    const [old, young] = [before[name], now[name]];
    return old.length !== young.length || old.some((member, i) => member !== young[i]);
  });
}

function membersOfAll() {
  const members = ({ prototype }) =>
    Reflect.ownKeys(prototype).flatMap((key) => {
      const { value, get, set } = Reflect.getOwnPropertyDescriptor(prototype, key);
      return [key, value, get, set];
    });
  return Object.fromEntries(Object.entries(prototypes).map(([name, of]) => [name, members(of)]));
}

/** Rejections that nobody took. */
export const unhandled = [];
const note = (reason) => unhandled.push(String(reason?.stack ?? reason));
if (globalThis.process?.versions?.node) {
  process.on("unhandledRejection", note);
} else {
  globalThis.addEventListener?.("unhandledrejection", (event) => {
    event.preventDefault();
    note(event.reason);
  });
}
