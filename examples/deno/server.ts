import { connect } from "edgelatch";

const FILE = "report.txt";

const locks = connect.fromEnv();

Deno.serve({ port: Number(Deno.env.get("PORT") ?? 8000), onListen }, async () => {
  return new Response(await read() ?? await fill());
});

/** Computes the report, unless another request has done so while this one waited. */
async function fill(): Promise<string> {
  await using _lease = await locks.lock("report").acquire({ waitMs: 60_000 });
  return await read() ?? await compute();
}

async function compute(): Promise<string> {
  const report = `report ${crypto.randomUUID()}`;
  console.log("computed", report);
  // A reader never sees half of a file.
  const partial = await Deno.makeTempFile({ dir: "." });
  await Deno.writeTextFile(partial, report);
  await Deno.rename(partial, FILE);
  return report;
}

async function read(): Promise<string | null> {
  try {
    return await Deno.readTextFile(FILE);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

function onListen({ port }: { port: number }) {
  console.log(`listening on http://localhost:${port}`);
}
