import { readFileSync } from "node:fs";

import { defineConfig } from "vitepress";

import { anchorOf } from "../links.mjs";
import { layOut } from "../markdown.mjs";
import { withPolicy } from "../policy.mjs";

const { version, repository, sidebar, api } = JSON.parse(readFileSync(new URL("../contents.json", import.meta.url), "utf8"));

export default defineConfig({
  srcDir: "src",
  outDir: "dist",
  cacheDir: "cache",
  base: "/docs/",
  lang: "en",
  title: "edgelatch",
  description: "Distributed locks over HTTP, compatible with Redisson.",
  cleanUrls: true,
  head: [["link", { rel: "icon", href: "/docs/icon.svg", type: "image/svg+xml" }]],
  // The pages of the types are many; the list of them is one file.
  vite: { build: { chunkSizeWarningLimit: 2_000 } },
  markdown: {
    config: layOut,
    languageAlias: { caddyfile: "nginx" },
    anchor: { slugify: anchorOf },
    theme: { light: "github-light-high-contrast", dark: "github-dark" },
  },
  transformHtml: withPolicy,
  themeConfig: {
    logo: "/icon.svg",
    nav: [
      { text: "Guide", link: "/overview" },
      { text: "API", items: [{ text: "npm package", link: "/api/" }, { text: "Rust crate (docs.rs)", link: "https://docs.rs/edgelatch" }] },
      { text: "Demo", link: "/../", target: "_self" },
      { text: version, items: [{ text: "Changelog", link: "/changelog" }, { text: "Source", link: repository }] },
    ],
    sidebar: { "/": sidebar, "/api/": api },
    outline: [2, 3],
    search: { provider: "local" },
    footer: { message: "MIT or Apache-2.0, at your choice." },
  },
});
