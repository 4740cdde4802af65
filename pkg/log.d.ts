/**
 * `edgelatch/log`: one readable line for each step of a lock's life, without secrets.
 *
 * Pass {@link log} to `connect({ log })`. If the environment variable `EDGELATCH_LOG` has a level
 * when this module is loaded, every client without a log of its own logs at that level.
 */

/** The levels, from the fewest lines to the most. */
export type LogLevel = "off" | "error" | "warn" | "info" | "debug" | "trace";

/** A log for the option `log` of `connect`. It is created by {@link logTo}. */
export interface Log {
  /** Not called by programs. */
  (settings: never): never;
}

/** A console, or any logger with its methods. */
export interface LogConsole {
  warn(line: string): void;
  info(line: string): void;
  debug(line: string): void;
}

/**
 * Returns a log that passes each line to a function, or to the method of a console that has the
 * name of the line's level (`debug` for `trace`).
 *
 * @param output The function or console. Its exceptions are ignored.
 * @param level The level; default `debug`, a line for each step. `trace` adds a line for each
 *   request, `info` has changes to polling and losses, `warn` has losses only.
 * @throws TypeError for an unknown level.
 */
export function logTo(output: ((line: string) => void) | LogConsole, level?: LogLevel): Log;

/** Logs at the level `debug`: to stderr in Node, Deno and Bun, else to the console. */
export const log: Log;
