/** Programs that write to PostgreSQL and to S3. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { until } from "../runtimes/check.mjs";
import { required } from "../runtimes/project.mjs";
import { call, seen, stage, start } from "./kit.mjs";
import { staleWrite } from "./stale_write.mjs";

async function postgres(t, workshop) {
  const env = await startPostgres(t, workshop);
  const server = await start(t, workshop, await stage(workshop, "postgres"), { env });
  const address = `${await server.address()}/invoices/42`;
  await staleWrite({
    address,
    lock: "pg-invoice:42",
    body: (total) => JSON.stringify({ total }),
    stored: async () => {
      const { total, fence } = (await call("GET", address)).body;
      return { value: Number(total), token: Number(fence) };
    },
  });
}

/** Starts a PostgreSQL with an empty database; returns the variables by which clients find it. */
async function startPostgres(t, workshop) {
  // Debian puts the programs into a folder of the version, which is not in the search path.
  const versions = (await readdir("/usr/lib/postgresql")).sort((a, b) => a - b);
  const program = (name) => join("/usr/lib/postgresql", versions.at(-1), "bin", name);
  const folder = await mkdtemp(join(tmpdir(), "edgelatch-postgres-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  // The server does not run as root, and Debian's package has created this user.
  const id = async (flag) => Number(await workshop.run("id", [flag, "postgres"], folder));
  const user = process.getuid() === 0 ? { uid: await id("-u"), gid: await id("-g") } : {};
  if (user.uid) await chown(folder, user.uid, user.gid);
  const data = join(folder, "data");
  const initialize = spawn(program("initdb"), ["--pgdata", data, "--username", "postgres", "--auth", "trust", "--no-sync"], { cwd: folder, stdio: ["ignore", "ignore", "inherit"], ...user });
  const [code] = await once(initialize, "exit");
  if (code !== 0) throw new Error(`initdb ended with ${code}`);
  const settings = ["listen_addresses=", `unix_socket_directories=${folder}`, "fsync=off"];
  const server = spawn(program("postgres"), ["-D", data, ...settings.flatMap((setting) => ["-c", setting])], { cwd: folder, stdio: ["ignore", "ignore", "pipe"], ...user });
  const said = [];
  server.stderr.on("data", (text) => said.push(text));
  t.after(async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    // Ends the sessions of clients.
    server.kill("SIGINT");
    await once(server, "exit");
  });
  await seen(() => said.join("").includes("ready to accept connections"), "PostgreSQL serves", () => said.join(""));
  return { PGHOST: folder, PGUSER: "postgres", PGDATABASE: "postgres" };
}

async function s3(t, workshop) {
  const env = await startS3(t, workshop);
  const server = await start(t, workshop, await stage(workshop, "s3"), { env });
  const address = `${await server.address()}/files/letter`;
  await staleWrite({
    address,
    lock: "s3-file:letter",
    body: (number) => `letter ${number}`,
    stored: async () => {
      const { text, token } = (await call("GET", address)).body;
      return { value: Number(text.replace("letter ", "")), token };
    },
  });
}

/** Starts moto's S3 with one bucket; returns the variables by which clients find it. */
async function startS3(t, workshop) {
  const folder = join(workshop.folder, "s3");
  await mkdir(folder);
  const moto = workshop.launch(required("EDGELATCH_MOTO"), ["-m", "moto.server", "--host", "127.0.0.1", "--port", "0"], folder, { PYTHONUNBUFFERED: "1" });
  t.after(moto.close);
  const text = () => moto.said.join("");
  const [, address] = await seen(() => text().match(/Running on (http:\S+)/), "moto serves", text, moto.ended);
  const bucket = "files";
  await until(async () => (await fetch(`${address}/moto-api/data.json`).catch(() => null))?.ok, "moto responds");
  const { S3Client, CreateBucketCommand } = await import(join(workshop.folder, "node_modules/@aws-sdk/client-s3/dist-cjs/index.js"));
  const credentials = { accessKeyId: "any", secretAccessKey: "any" };
  const client = new S3Client({ endpoint: address, region: "us-east-1", credentials, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  return { BUCKET: bucket, AWS_ENDPOINT_URL: address, AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "any", AWS_SECRET_ACCESS_KEY: "any" };
}

export const examples = [
  { name: "postgres", what: "a stalled request does not overwrite a newer row", extent: "full", run: postgres },
  { name: "s3", what: "a stalled upload does not overwrite a newer file", extent: "full", run: s3 },
];
