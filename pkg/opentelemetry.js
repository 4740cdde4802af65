// `edgelatch/opentelemetry`: spans and metrics by `@opentelemetry/api`. Names and attributes are
// those of OpenTelemetry's semantic conventions, our own begin with `edgelatch.`.
// docs/observability.md lists them.
import { SpanKind, SpanStatusCode, context, metrics, trace } from "@opentelemetry/api";
import { OBJECT } from "./mark.js";
import { observeClient, observeFetch } from "./observe.js";

const SCOPE = "edgelatch";
/** Buckets of seconds, from 1 ms to an hour: waits and holds last from one round trip to many. */
const BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600];

const seconds = (ms) => ms / 1000;

function addressOf(host) {
  const [, name, port] = /^(.*?)(?::(\d+))?$/.exec(host);
  return { "db.system.name": "redis", "server.address": name, ...(port && { "server.port": Number(port) }) };
}

const labels = ({ kind, host }) => ({ ...addressOf(host), "edgelatch.object.kind": kind });

const attributes = (subject) => ({
  ...labels(subject),
  ...(subject.name !== undefined && !subject.redactNames && { "edgelatch.object.name": subject.name }),
});

function instruments(meter) {
  const duration = (name, description) =>
    meter.createHistogram(name, { unit: "s", description, advice: { explicitBucketBoundaries: BUCKETS } });
  const counter = (name, unit, description) => meter.createCounter(name, { unit: `{${unit}}`, description });
  return {
    wait: duration("edgelatch.wait.duration", "Time from the call to the end of an acquisition"),
    hold: duration("edgelatch.hold.duration", "Time from a grant to the end of its lease"),
    contended: counter("edgelatch.contended", "acquisition", "Acquisitions that waited, or ended because the lock was held"),
    renewals: counter("edgelatch.renewals", "renewal", "Confirmed renewals"),
    losses: counter("edgelatch.losses", "lease", "Leases that were lost before their release"),
    requests: counter("edgelatch.requests", "request", "Requests to the gateway, without streams"),
    fallbacks: counter("edgelatch.polling.fallbacks", "fallback", "Changes from streams to polling, and waits that began to poll"),
  };
}

/** Returns the observer of `observe.js` whose contexts are spans. */
function observerOf(tracer, meters) {
  const start = (name, subject, more) =>
    tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes: { ...attributes(subject), ...more } });
  const fail = (span, code) => {
    span.setAttribute("error.type", code);
    span.setStatus({ code: SpanStatusCode.ERROR, message: code });
  };
  return {
    acquire: (subject) => start("edgelatch.acquire", subject),
    acquired(span, subject, { token, waitedMs, isContended, code }) {
      const attributes = labels(subject);
      if (isContended) meters.contended.add(1, attributes);
      meters.wait.record(seconds(waitedMs), code === undefined ? attributes : { ...attributes, "error.type": code });
      span.setAttribute("edgelatch.contended", isContended);
      if (code === undefined) span.setAttribute("edgelatch.fencing_token", token);
      else fail(span, code);
      span.end();
    },
    hold: (subject, token) => start("edgelatch.hold", subject, { "edgelatch.fencing_token": token }),
    renewed(span, subject) {
      meters.renewals.add(1, labels(subject));
      span.addEvent("edgelatch.renewed");
    },
    lost(span, subject, reason) {
      meters.losses.add(1, { ...labels(subject), "edgelatch.loss.reason": reason });
      span.setAttribute("edgelatch.loss.reason", reason);
      fail(span, "lease-lost");
    },
    held(span, subject, outcome, heldMs) {
      meters.hold.record(seconds(heldMs), { ...labels(subject), "edgelatch.outcome": outcome });
      span.setAttribute("edgelatch.outcome", outcome);
      span.end();
    },
    within: (span, work) => context.with(trace.setSpan(context.active(), span), work),
    release: (subject) => start("edgelatch.release", subject),
    released(span, _, code) {
      if (code !== undefined) fail(span, code);
      span.end();
    },
    modeChanged({ host }, mode) {
      if (mode === "polling") meters.fallbacks.add(1, addressOf(host));
    },
  };
}

/** Returns a `connect` whose clients report spans and metrics. */
export function instrument(connect, { tracerProvider = trace, meterProvider = metrics } = {}) {
  const observe = (open, input) => {
    const meters = instruments(meterProvider.getMeter(SCOPE));
    let address;
    const fetch = observeFetch(input?.fetch, (error) => {
      meters.requests.add(1, error === undefined ? address : { ...address, "error.type": error });
    });
    const client = open({ ...input, fetch });
    address = addressOf(client[OBJECT].host);
    return observeClient(client, observerOf(tracerProvider.getTracer(SCOPE), meters));
  };
  const instrumented = (input) => observe(connect, input);
  instrumented.fromEnv = (env, input) => observe((all) => connect.fromEnv(env, all), input);
  return instrumented;
}
