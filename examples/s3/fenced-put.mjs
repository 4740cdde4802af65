import { HeadObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";

/**
 * Writes an object unless a newer token has written it. Returns false if so: give the work up then.
 */
export async function fencedPut(s3, { Bucket, Key, Body, token }) {
  for (;;) {
    const head = await s3.send(new HeadObjectCommand({ Bucket, Key })).catch(unlessStatus(404));
    if (Number(head?.Metadata.fence ?? 0) > token) return false;
    const condition = head ? { IfMatch: head.ETag } : { IfNoneMatch: "*" };
    const put = new PutObjectCommand({ Bucket, Key, Body, Metadata: { fence: `${token}` }, ...condition });
    // 412 and 409: another client writes in between. Look again; each round means that another put
    // has succeeded.
    if (await s3.send(put).catch(unlessStatus(412, 409))) return true;
  }
}

/** Turns errors with these statuses into undefined. */
const unlessStatus = (...statuses) => (error) => {
  if (!statuses.includes(error.$metadata?.httpStatusCode)) throw error;
};
