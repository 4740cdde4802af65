import { createServer } from "node:http";
import { text } from "node:stream/consumers";

import { GetObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { connect } from "edgelatch";

import { fencedPut } from "./fenced-put.mjs";

class Stale extends Error {}

const locks = connect.fromEnv();
const s3 = new S3Client({ forcePathStyle: true });
const Bucket = process.env.BUCKET;

async function handle(request, response) {
  const Key = request.url.match(/^\/files\/(\w+)$/)?.[1];
  if (!Key) return respond(response, 404, { error: "not found" });
  if (request.method === "GET") {
    const { Body, Metadata } = await s3.send(new GetObjectCommand({ Bucket, Key }));
    return respond(response, 200, { text: await Body.transformToString(), token: Number(Metadata.fence) });
  }
  try {
    const token = await locks.lock(`s3-file:${Key}`).run((lease) => write(Key, request, lease));
    respond(response, 200, { token });
  } catch (error) {
    if (!(error instanceof Stale)) throw error;
    respond(response, 409, { error: "another request has written this file meanwhile" });
  }
}

async function write(Key, request, lease) {
  // Work that may take longer than the lease lasts; here the client takes its time.
  const Body = await text(request);
  if (!(await fencedPut(s3, { Bucket, Key, Body, token: lease.token }))) throw new Stale();
  return lease.token;
}

function respond(response, status, value) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

const server = createServer((request, response) => {
  handle(request, response).catch((error) => {
    console.error(error);
    respond(response, 500, { error: "failed" });
  });
});
server.listen(Number(process.env.PORT ?? 3000), () => console.log(`listening on http://localhost:${server.address().port}`));
