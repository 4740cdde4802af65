/**
 * Signs a token; `key` is a line of the gateway's `--scope-key-file`. `claims` has at least
 * `maxLeaseMs` and `prefix`, the beginning of the names of locks; the gateway's README lists the
 * others.
 */
export async function scopedToken(key, { livesSeconds, ...claims }) {
  const exp = Math.floor(Date.now() / 1000) + livesSeconds;
  const message = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ ...claims, exp })}`;
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const secret = await crypto.subtle.importKey("raw", new TextEncoder().encode(key), algorithm, false, ["sign"]);
  const signature = await crypto.subtle.sign("HMAC", secret, new TextEncoder().encode(message));
  return `${message}.${base64url(new Uint8Array(signature))}`;
}

const encode = (value) => base64url(new TextEncoder().encode(JSON.stringify(value)));

const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
