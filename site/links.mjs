/** Links between the files of the repository, as links of the site. */

import { posix } from "node:path";

/** A fence of a block of code. */
const FENCE = /^\s*(```|~~~)/;

/**
 * Returns the text of a page with each relative link replaced: by the address of the page that has
 * the linked file's text, else by the file's address in the repository.
 *
 * `file` is the page's own path in the repository; `addresses` maps such paths to addresses.
 */
export function withSiteLinks(text, { file, addresses, repository }) {
  const toSite = (target) => {
    if (/^[a-z]+:/.test(target) || target.startsWith("#") || target.includes("::")) return target;
    const [path, anchor] = target.split("#");
    const linked = posix.normalize(posix.join(posix.dirname(file), path)).replace(/\/$/, "");
    const address = addresses.get(linked);
    const start = address === undefined ? `${repository}/tree/main/${linked}` : `/${address}`;
    return anchor === undefined ? start : `${start}#${anchor}`;
  };
  return outsideOfCode(text, (line) => line.replace(/\]\(([^)\s]+)\)/g, (_, target) => `](${toSite(target)})`));
}

/** Returns the text with `change` applied to each line outside of blocks of code. */
export function outsideOfCode(text, change) {
  let isCode = false;
  const lines = text.split("\n").map((line) => {
    const isFence = FENCE.test(line);
    if (isFence) isCode = !isCode;
    return isCode || isFence ? line : change(line);
  });
  return lines.join("\n");
}

/** Returns the anchor of a heading, as GitHub makes it, so that one link fits both. */
export function anchorOf(heading) {
  return heading.toLowerCase().trim().replace(/[^\p{Alphabetic}\p{N} _-]/gu, "").replaceAll(" ", "-");
}
