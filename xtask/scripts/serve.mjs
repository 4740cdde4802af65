// Serves the Worker of the current folder in workerd, by wrangler, and does not watch its files: a
// reload would cut off the requests that are under way, and wrangler would send some of them twice.
// Arguments: where wrangler is, and the port.
const [wrangler, port] = process.argv.slice(2);
const { unstable_startWorker: startWorker } = await import(wrangler);

const worker = await startWorker({
  config: "wrangler.toml",
  dev: { watch: false, liveReload: false, inspector: false, server: { hostname: "127.0.0.1", port: Number(port) } },
});
await worker.ready;
console.log(`Ready on ${(await worker.url).origin}`);

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => worker.dispose().finally(() => process.exit()));
