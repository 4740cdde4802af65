/**
 * Records how a module uses its runtime. It is imported before the package, so that it also records
 * the package's calls at load.
 *
 * It also provides a clock that tests can advance: the events of ten seconds happen at once, in
 * their order.
 */

const GLOBALS = ["fetch", "setInterval", "setTimeout"];
const real = { clearTimeout, setTimeout, dateNow: Date.now, monotonicNow: performance.now.bind(performance) };

/** The number of milliseconds by which each clock was advanced. */
const ahead = { monotonic: 0, wall: 0 };
const timers = new Map();

/** The names of the functions that were called until the package has loaded. */
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

/** Compilation and instantiation are recorded too. */
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
 * The exports of the package's module, if it was instantiated synchronously, as everywhere outside
 * of a page. Node has other modules.
 */
let wasm;
/** The number of calls between JavaScript and that module, in both directions. */
let crossings = 0;
WebAssembly.Instance = function (module, imports = {}) {
  if (counting) calls.push("WebAssembly.Instance");
  if (!WebAssembly.Module.exports(module).some(({ name }) => name === "__wbindgen_malloc")) return Reflect.construct(Instance, [module, imports]);
  const counted = Object.fromEntries(Object.entries(imports).map(([name, members]) => [name, countCalls(members)]));
  wasm = Reflect.construct(Instance, [module, counted]).exports;
  return { exports: countCalls(wasm) };
};

/** Returns these members of a module with functions that count their calls. */
function countCalls(members) {
  const count = (call) => (...values) => {
    crossings += 1;
    return call(...values);
  };
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, typeof value === "function" ? count(value) : value]));
}

/** Returns the number of calls between JavaScript and the package's module during the work. */
export async function crossingsOf(work) {
  const before = crossings;
  await work();
  return crossings - before;
}

/**
 * The smallest allocation of WebAssembly's allocator takes sixteen bytes, with the four bytes that
 * it keeps before each block.
 */
const [REQUESTED, BLOCK, ALIGNED] = [12, 16, 4];

/**
 * Returns the size of WebAssembly's memory, and the bytes in use, in units of the smallest block.
 * Memory never shrinks, so its size shows the highest use so far, not the present one. All blocks
 * that can be allocated before it grows are not in use.
 */
export function memory() {
  const { memory, __wbindgen_malloc: allocate, __wbindgen_free: free } = wasm;
  const size = memory.buffer.byteLength;
  const allocated = [];
  while (memory.buffer.byteLength === size) allocated.push(allocate(REQUESTED, ALIGNED));
  for (const block of allocated) free(block, REQUESTED, ALIGNED);
  // The last block is from the memory that was added.
  return { size, used: size - (allocated.length - 1) * BLOCK };
}

function timer(callback, ms = 0, ...values) {
  // Node's fetch refreshes a timer, so a timer that has fired may fire again.
  const fire = () => {
    timers.delete(id);
    callback(...values);
  };
  const id = real.setTimeout.call(globalThis, fire, ms);
  timers.set(id, { due: performance.now() + ms, fire });
  return id;
}

/** Ends the record of calls: the package has loaded. */
export function loaded() {
  counting = false;
}

/** Returns the calls while the package loaded. */
export function calledAtLoad() {
  return calls;
}

/** Returns the number of pending timers. */
export function timersLeft() {
  return timers.size;
}

/** Advances both clocks, and fires the timers that are due, in their order. */
export function advanceTime(ms) {
  moveClocks({ monotonic: ms, wall: ms });
  const due = [...timers].filter(([, { due }]) => due <= performance.now()).sort(([, a], [, b]) => a.due - b.due);
  for (const [id, { fire }] of due) {
    if (!timers.has(id)) continue;
    real.clearTimeout.call(globalThis, id);
    fire();
  }
}

/** Advances the clocks only: no timer fires early. */
export function moveClocks({ monotonic = 0, wall = 0 }) {
  ahead.monotonic += monotonic;
  ahead.wall += wall;
}

/** Returns the shared prototypes with members that were added, removed or replaced. */
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

/** Unhandled rejections. */
export const unhandled = [];
const record = (reason) => unhandled.push(String(reason?.stack ?? reason));
if (globalThis.process?.versions?.node) {
  process.on("unhandledRejection", record);
} else {
  globalThis.addEventListener?.("unhandledrejection", (event) => {
    event.preventDefault();
    record(event.reason);
  });
}
