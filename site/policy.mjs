/** The Content Security Policy of a page, which allows only its own inline scripts. */

import { createHash } from "node:crypto";

/** Returns the page with a policy in its head, before the first script. */
export function withPolicy(html) {
  const scripts = [...html.matchAll(/<script\b(?![^>]*\bsrc=)[^>]*>([^]*?)<\/script>/g)].map(([, text]) => text);
  const hashes = scripts.map((text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`);
  const policy = [
    // Firefox applies it to the scripts of other pages that VitePress prefetches.
    "default-src 'self'",
    "object-src 'none'",
    `script-src ${["'self'", ...new Set(hashes)].join(" ")}`,
    // Shiki and VitePress write styles into the markup.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
  ];
  return html.replace(/<head>/, `<head><meta http-equiv="Content-Security-Policy" content="${policy.join("; ")}">`);
}
