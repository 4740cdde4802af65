// `edgelatch/log`: a readable line for each step of a lock's life, without secrets, for
// `connect({ log })`. docs/observability.md describes the lines.
import { OBJECT } from "./mark.js";
import { observeClient, observeFetch } from "./observe.js";

const LEVELS = ["off", "error", "warn", "info", "debug", "trace"];

const describe = ({ kind, name, host, redactNames }) =>
  `${kind}${name === undefined || redactNames ? "" : ` ${JSON.stringify(name)}`} at ${host}`;

const ms = (time) => `after ${Math.round(time)} ms`;

/** Returns an observer that writes lines. */
const observerOf = (write) => ({
  acquire: (subject) => write("debug", `acquire ${describe(subject)}`),
  acquired(_, subject, { token, waitedMs, code, error }) {
    const end = `${describe(subject)} ${ms(waitedMs)}`;
    if (code === undefined) write("debug", `acquired ${end}, token ${token}`);
    // The error of a client's own signal may have any message.
    else write("debug", `not acquired ${end}: ${code}${code !== "cancelled" && error ? `: ${error.message}` : ""}`);
  },
  renewed: (_, subject) => write("debug", `renewed ${describe(subject)}`),
  lost: (_, subject, reason) => write("warn", `lost ${describe(subject)}: ${reason}`),
  release: (subject) => write("debug", `release ${describe(subject)}`),
  released(_, subject, code, tookMs) {
    const end = `${describe(subject)} ${ms(tookMs)}`;
    write("debug", code === undefined ? `released ${end}` : `not released ${end}: ${code}`);
  },
  held: (_, subject, outcome, heldMs) => write("debug", `end of ${describe(subject)} ${ms(heldMs)}: ${outcome}`),
  modeChanged: ({ host }, mode) => write("info", `waiters at ${host} learn of releases by ${mode}`),
});

/** Returns a log for `connect({ log })`. */
export function logTo(output, level = "debug") {
  const most = LEVELS.indexOf(level);
  if (most < 0) throw new TypeError(`\`level\` is not acceptable: expected one of ${LEVELS.join(", ")}`);
  // `console.trace` would print a stack.
  const print = typeof output === "function" ? (_, line) => output(line) : (at, line) => output[at === "trace" ? "debug" : at](line);
  const write = (at, message) => {
    if (LEVELS.indexOf(at) > most) return;
    print(at, `${new Date().toISOString()} ${at.toUpperCase()} edgelatch: ${message}`);
  };
  const log = (settings) => {
    const { host } = new URL(settings[0].trim());
    settings[3] = observeFetch(settings[3], (error) => {
      // With 400 Redis replied an error, as at the first use of a script: the client sends the
      // script then.
      const at = error === undefined || error === "400" ? "trace" : "debug";
      write(at, `request to ${host}${error === undefined ? "" : ` failed: ${error}`}`);
    });
    return (client) => observeClient(client, observerOf(write));
  };
  return Object.defineProperty(log, OBJECT, { value: true });
}

/** Programs print to stderr, pages and Workers to the console of their developers. */
const output = globalThis.process?.versions?.node || globalThis.Deno ? (line) => console.error(line) : console;

export const log = logTo(output);

/** Returns the value of a variable. Deno would ask the user for a permission that it lacks. */
function variable(name) {
  const { Deno, process } = globalThis;
  try {
    if (Deno && Deno.permissions.querySync({ name: "env", variable: name }).state !== "granted") return;
    return process?.env?.[name];
  } catch {}
}

const level = variable("EDGELATCH_LOG");
if (level) globalThis[OBJECT] = logTo(output, level);
