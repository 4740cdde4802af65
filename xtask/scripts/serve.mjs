// Serves the Worker of the current folder in workerd with wrangler, and does not watch its files: a
// reload would abort the requests in flight, and wrangler would send some of them twice. Arguments:
// the path of wrangler, and the port.
const [wrangler, port] = process.argv.slice(2);
const { unstable_startWorker: startWorker } = await import(wrangler);

const worker = await startWorker({
  config: "wrangler.toml",
  dev: { watch: false, liveReload: false, inspector: false, server: { hostname: "127.0.0.1", port: Number(port) } },
});
await worker.ready;
console.log(`Ready on ${(await worker.url).origin}`);

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => worker.dispose().finally(() => process.exit()));
