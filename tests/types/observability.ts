// Uses of `edgelatch/log` and `edgelatch/opentelemetry` that must compile, and some that must not.

import { metrics, trace } from "@opentelemetry/api";
import { connect } from "edgelatch";
import type { Locks } from "edgelatch";
import { log, logTo } from "edgelatch/log";
import type { Log, LogLevel } from "edgelatch/log";
import { instrument } from "edgelatch/opentelemetry";

const gateway = { url: "https://example.com", token: "t" };

export function logged(level: LogLevel, lines: string[]): Locks[] {
  const own: Log = logTo((line) => void lines.push(line.toUpperCase()), level);
  return [connect({ ...gateway, log }), connect({ ...gateway, log: own }), connect.fromEnv(undefined, { log: logTo(console) })];
}

export function instrumented(): Locks[] {
  const open: typeof connect = instrument(connect);
  const other = instrument(connect, { tracerProvider: trace.getTracerProvider(), meterProvider: metrics.getMeterProvider() });
  return [open(gateway), other.fromEnv({}, { prefix: "LOCKS_" }), instrument(connect)({ ...gateway, log })];
}

export function mistakes(): void {
  // @ts-expect-error: a console is no log
  connect({ ...gateway, log: console });
  // @ts-expect-error: a function is no log, since it would be called with the token
  connect({ ...gateway, log: console.log });
  // @ts-expect-error: no such level
  logTo(console, "loud");
  // @ts-expect-error: a client is no connect
  instrument(connect(gateway));
}
