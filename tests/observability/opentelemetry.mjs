/** The spans and metrics of `edgelatch/opentelemetry`, as the SDK of OpenTelemetry exports them. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { until } from "../runtimes/check.mjs";
import { host, leaks, load, newName, watched } from "./env.mjs";

/** Returns an instrumented `connect`, the finished spans, and a function that collects metrics. */
async function instrumented(options) {
  const { edgelatch, instrument, require } = await load();
  const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require("@opentelemetry/sdk-trace-base");
  const { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } =
    require("@opentelemetry/sdk-metrics");
  const spans = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const client = instrument(edgelatch.connect, { tracerProvider, meterProvider })(watched(options));
  /** Returns the metrics by their names: the unit, and a list of attributes and values. */
  const collect = async () => {
    await reader.forceFlush();
    const metrics = exporter.getMetrics().at(-1).scopeMetrics.flatMap(({ metrics }) => metrics);
    return Object.fromEntries(metrics.map(({ descriptor: { name, unit }, dataPoints }) =>
      [name, { unit, points: dataPoints.map(({ attributes, value }) => ({ attributes, value: value.count ?? value })) }]));
  };
  const finished = () => spans.getFinishedSpans();
  return { client, finished, collect, tracerProvider, require, shutdown: () => reader.shutdown() };
}

const [, address, port] = /^(.*):(\d+)$/.exec(host);
const GATEWAY = { "db.system.name": "redis", "server.address": address, "server.port": Number(port) };

const total = (metric) => metric?.points.reduce((sum, { value }) => sum + value, 0) ?? 0;

function spanTests() {
  test("acquire, hold and release have spans with the attributes of the conventions", async () => {
    const { client, finished, shutdown } = await instrumented();
    const name = newName();
    const lease = await client.lock(name).acquire();
    const { token } = lease;
    await lease.release();
    const common = { ...GATEWAY, "edgelatch.object.kind": "lock", "edgelatch.object.name": name };
    assert.deepEqual(finished().map(({ name, kind, attributes, status }) => ({ name, kind, attributes, code: status.code })), [
      { name: "edgelatch.acquire", kind: 2, code: 0, attributes: { ...common, "edgelatch.contended": false, "edgelatch.fencing_token": token } },
      { name: "edgelatch.release", kind: 2, code: 0, attributes: common },
      { name: "edgelatch.hold", kind: 2, code: 0, attributes: { ...common, "edgelatch.fencing_token": token, "edgelatch.outcome": "released" } },
    ]);
    await shutdown();
  });

  test("spans of the work are children of the hold, and its parent is the caller's span", async () => {
    const { client, finished, tracerProvider, require, shutdown } = await instrumented();
    const { context, trace } = require("@opentelemetry/api");
    const { AsyncLocalStorageContextManager } = require("@opentelemetry/context-async-hooks");
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    const tracer = tracerProvider.getTracer("test");
    await tracer.startActiveSpan("caller", async (caller) => {
      await client.lock(newName()).run(async () => tracer.startSpan("work").end());
      caller.end();
    });
    context.disable();
    const spans = Object.fromEntries(finished().map((span) => [span.name, span]));
    const parentOf = (name) => spans[name].parentSpanContext?.spanId;
    const idOf = (name) => spans[name].spanContext().spanId;
    for (const name of ["edgelatch.acquire", "edgelatch.hold"]) assert.equal(parentOf(name), idOf("caller"), name);
    assert.equal(parentOf("work"), idOf("edgelatch.hold"));
    await shutdown();
  });
}

function metricTests() {
  test("each metric of the documentation is measured, with its unit", async () => {
    const { client, collect, shutdown } = await instrumented({ wakeups: "off" });
    const lock = client.lock(newName());
    const lease = await lock.acquire({ leaseMs: 60_000 });
    await lease.renew({ leaseMs: 120_000 });
    assert.equal(await lock.tryAcquire(), null);
    const waiting = lock.acquire();
    await lease.release();
    const next = await waiting;
    await lock.forceRelease();
    assert.equal(await next.isHeld(), false);
    await until(async () => total((await collect())["edgelatch.losses"]) === 1, "the loss is counted");
    await until(async () => total((await collect())["edgelatch.polling.fallbacks"]) === 1, "polling is counted");
    await next.release().catch(() => {});

    const metrics = await collect();
    const page = await readFile(new URL("../../docs/observability.md", import.meta.url), "utf8");
    const documented = [...page.matchAll(/^\| `(edgelatch\.[\w.]+)` \| (histogram|counter), (\S+) \|/gm)];
    assert.deepEqual(documented.map(([, name, , unit]) => [name, unit]).sort(), Object.entries(metrics).map(([name, { unit }]) => [name, unit]).sort());
    assert.equal(total(metrics["edgelatch.contended"]), 2);
    assert.equal(total(metrics["edgelatch.renewals"]), 1);
    assert.equal(total(metrics["edgelatch.wait.duration"]), 3);
    const lock_ = { ...GATEWAY, "edgelatch.object.kind": "lock" };
    assert.deepEqual(metrics["edgelatch.losses"].points, [{ attributes: { ...lock_, "edgelatch.loss.reason": "gone" }, value: 1 }]);
    assert.deepEqual(metrics["edgelatch.hold.duration"].points.map(({ attributes }) => attributes["edgelatch.outcome"]).sort(), ["lost", "released"]);
    assert.deepEqual(metrics["edgelatch.wait.duration"].points.map(({ attributes }) => attributes["error.type"]).sort(), ["wait-timeout", undefined]);
    assert.ok(total(metrics["edgelatch.requests"]) >= 6);
    await shutdown();
  });

  test("errors have their code, and a failed request its status", async () => {
    const { client, finished, collect, shutdown } = await instrumented({ token: "a-wrong-token-secret" });
    await assert.rejects(client.lock(newName()).acquire(), { code: "gateway-refused" });
    const [{ name, attributes, status }] = finished();
    assert.deepEqual([name, attributes["error.type"], status], ["edgelatch.acquire", "gateway-refused", { code: 2, message: "gateway-refused" }]);
    const { points } = (await collect())["edgelatch.requests"];
    assert.deepEqual(points.map(({ attributes }) => attributes["error.type"]), ["401"]);
    await shutdown();
  });

  test("no span and no metric contains a secret, nor a name that the client redacts", async () => {
    const { client, finished, collect, shutdown } = await instrumented({ redactNames: true });
    await client.lock("a-name-secret").run(async (lease) => {
      await lease.eval("return ARGV[1]", [], ["an-argument-secret"]);
      await lease.renew();
    });
    const text = JSON.stringify([finished().map(({ name, attributes, events, status }) => [name, attributes, events, status]), await collect()]);
    const { found, known } = leaks(text);
    assert.ok(known > 4 && text.includes("edgelatch.hold"));
    assert.deepEqual(found, []);
    await shutdown();
  });
}

function clientTests() {
  test("invalid options are rejected as without instruments", async () => {
    const { edgelatch, instrument } = await load();
    const connect = instrument(edgelatch.connect);
    assert.throws(() => connect(watched({ fetch: 5 })), { option: "fetch" });
    for (const options of [undefined, null, {}]) assert.throws(() => connect(options), { option: "url" });
    assert.throws(() => connect.fromEnv({}), { option: "UPSTASH_REDIS_REST_URL" });
  });

  test("without an SDK the client works, and nothing is reported", async () => {
    const { edgelatch, instrument } = await load();
    const client = instrument(edgelatch.connect)(watched());
    assert.equal(await client.lock(newName()).run(() => "result"), "result");
    const { url, token, requestTimeoutMs } = watched();
    const env = { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token };
    const other = instrument(edgelatch.connect).fromEnv(env, { requestTimeoutMs });
    assert.equal(await other.lock(newName()).run(() => "result"), "result");
  });
}

export function openTelemetryTests() {
  spanTests();
  metricTests();
  clientTests();
}
