export async function fencedPut(bucket, key, body, token) {
  for (;;) {
    const head = await bucket.head(key);
    if (head && Number(head.customMetadata?.fence ?? 0) > token) return null; // stale: give the work up
    const onlyIf = head ? { etagMatches: head.etag } : new Headers({ "If-None-Match": "*" });
    const put = await bucket.put(key, body, { onlyIf, customMetadata: { fence: String(token) } });
    if (put) return put;
    // Another client has written in between: look again. Each round means that another put has
    // succeeded.
  }
}
