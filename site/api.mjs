/** The pages of the npm package's interface, which TypeDoc writes from `pkg/*.d.ts`. */

import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { Application } from "typedoc";

const COMPILER_OPTIONS = {
  lib: ["es2022", "dom", "esnext.disposable"],
  module: "esnext",
  moduleResolution: "bundler",
  // Packages whose types ours import are among the site's.
  paths: { "*": ["./node_modules/*"] },
  strict: true,
  types: [],
};

/** Writes the pages into `folder`; fails on a broken link in a comment. */
export async function writeApi(root, folder, stage) {
  const entries = await entriesOf(root);
  const entryPoints = entries.map(({ file }) => join(root, `pkg/${file}.d.ts`));
  const tsconfig = join(stage, "tsconfig.json");
  await writeFile(tsconfig, JSON.stringify({ compilerOptions: COMPILER_OPTIONS, files: entryPoints }));
  const app = await Application.bootstrapWithPlugins({
    entryPoints,
    tsconfig,
    basePath: join(root, "pkg"),
    name: "npm package",
    out: folder,
    plugin: ["typedoc-plugin-markdown"],
    readme: "none",
    entryFileName: "index",
    disableSources: true,
    excludeInternal: true,
    hideBreadcrumbs: true,
    hidePageHeader: true,
    parametersFormat: "table",
    interfacePropertiesFormat: "list",
    typeDeclarationFormat: "table",
    treatWarningsAsErrors: false,
    validation: { invalidLink: true, notExported: false, notDocumented: false },
    treatValidationWarningsAsErrors: true,
    logLevel: "Warn",
  });
  const project = await app.convert();
  if (project === undefined) throw new Error("TypeDoc could not read the types");
  app.validate(project);
  // A module is named after its file, and "index" is no name of a folder of pages.
  for (const { file, folder: name } of entries) project.getChildByName([file]).name = name;
  await app.generateOutputs(project);
  if (app.logger.hasErrors() || app.logger.hasWarnings()) throw new Error("TypeDoc found faults in the types");
}

/** Returns the sidebar of the pages in `folder`: a group for each entry point. */
export async function apiSidebar(root, folder) {
  const groups = (await entriesOf(root)).map(async ({ folder: module, text }) => {
    const files = await readdir(join(folder, module), { recursive: true });
    const pages = files.filter((file) => file.endsWith(".md") && !file.endsWith("index.md")).map((file) => file.slice(0, -3));
    const items = pages.sort((a, b) => nameOf(a).localeCompare(nameOf(b))).map((page) => ({ text: nameOf(page), link: `/api/${module}/${page}` }));
    return { text, link: `/api/${module}/`, collapsed: module !== "edgelatch", items };
  });
  return Promise.all(groups);
}

/**
 * Returns the entry points that the package's manifest exports: the folder of the pages, the file
 * of the types, and the name to import. A path with an extension is a file and no entry point.
 */
export async function entriesOf(root) {
  const { name, exports } = JSON.parse(await readFile(join(root, "pkg/package.json"), "utf8"));
  const modules = Object.entries(exports).filter(([path]) => !/\.\w+$/.test(path));
  return modules.map(([path, conditions]) => {
    const [, file] = /^\.\/([\w-]+)\.d\.ts$/.exec(conditions.default?.types) ?? [];
    if (file === undefined) throw new Error(`the entry ${path} of the npm package has no types`);
    return { folder: file === "index" ? name : file, file, text: `${name}${path.slice(1)}` };
  });
}

function nameOf(page) {
  return page.split("/").at(-1);
}
