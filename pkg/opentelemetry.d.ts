/**
 * `edgelatch/opentelemetry`: spans and metrics by `@opentelemetry/api`, an optional peer
 * dependency.
 */
import type { MeterProvider, TracerProvider } from "@opentelemetry/api";
import type { connect } from "./index.js";

/** The options of {@link instrument}. */
export interface InstrumentOptions {
  /** The provider of the tracer. Default: the global one. */
  tracerProvider?: TracerProvider;
  /** The provider of the meter. Default: the global one, which must be set before `connect`. */
  meterProvider?: MeterProvider;
}

/**
 * Returns a `connect` whose clients report spans of acquisitions, holds and releases, and metrics.
 *
 * @param original The `connect` of any entry of the package.
 */
export function instrument(original: typeof connect, options?: InstrumentOptions): typeof connect;
