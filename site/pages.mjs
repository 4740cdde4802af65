/**
 * The pages of the site: for each the file of the repository that has its text, its address, and
 * its title in the sidebar. Files below `site/pages` exist for the site only.
 */
export const GROUPS = [
  {
    text: "Start",
    pages: [
      ["README.md", "overview", "Overview"],
      ["site/pages/start/node.md", "start/node", "Node, Deno and Bun"],
      ["site/pages/start/workers.md", "start/workers", "Cloudflare Workers"],
      ["site/pages/start/nextjs.md", "start/nextjs", "Next.js"],
      ["site/pages/start/browsers.md", "start/browsers", "Browsers"],
      ["site/pages/start/rust.md", "start/rust", "Rust"],
      ["site/pages/start/shell.md", "start/shell", "Shell and cron"],
    ],
  },
  {
    text: "Guide",
    pages: [
      ["site/pages/concepts.md", "concepts", "Concepts"],
      ["site/pages/objects.md", "objects", "Every object"],
      ["site/pages/red-lock.md", "red-lock", "A majority of servers"],
      ["site/pages/comparison.md", "comparison", "Comparison"],
      ["pkg/README.md", "npm", "The npm package"],
      ["cli/README.md", "cli", "The command line"],
    ],
  },
  {
    text: "Recipes",
    pages: [
      ["examples/README.md", "examples", "Examples of projects"],
      ["docs/fencing.md", "fencing", "Use the fencing token"],
      ["docs/scoped-tokens.md", "scoped-tokens", "A token for a page"],
      ["docs/command-line.md", "command-line", "Recipes for the command line"],
      ["docs/testing.md", "testing", "Unit tests without a server"],
      ["docs/web-locks.md", "web-locks", "navigator.locks across machines"],
      ["docs/migrating-from-redlock.md", "migrating-from-redlock", "Coming from redlock"],
      ["docs/migrating-from-upstash-lock.md", "migrating-from-upstash-lock", "Coming from @upstash/lock"],
      ["docs/migrating-from-redis-semaphore.md", "migrating-from-redis-semaphore", "Coming from redis-semaphore"],
    ],
  },
  {
    text: "Reference",
    pages: [
      ["docs/errors.md", "errors", "Errors"],
      ["docs/methods.md", "methods", "Redisson's methods"],
      ["docs/environments.md", "environments", "Where the package works"],
      ["CHANGELOG.md", "changelog", "Changelog"],
      ["docs/renames.md", "renames", "Renamed names"],
    ],
  },
  {
    text: "Operations",
    pages: [
      ["site/pages/operations.md", "operations", "Checklist"],
      ["gateway/README.md", "gateway", "The gateway"],
      ["docs/gateway.md", "gateway-in-detail", "The gateway in detail"],
      ["docs/observability.md", "observability", "Metrics, logs and traces"],
      ["SECURITY.md", "security-policy", "Security"],
      ["docs/security.md", "security", "Security rules"],
      ["docs/threat-model.md", "threat-model", "Threat model"],
    ],
  },
  {
    text: "Evidence",
    pages: [
      ["docs/reliability.md", "reliability", "Reliability"],
      ["site/pages/benchmarks.md", "benchmarks", "Benchmarks"],
      ["docs/performance.md", "performance", "Performance"],
      ["docs/redisson.md", "redisson", "Redisson beside edgelatch"],
      ["docs/upstash.md", "upstash", "Upstash's own tests"],
    ],
  },
];

/** The group of the pages of `docs/` that no group above names. */
export const MORE = "More";
