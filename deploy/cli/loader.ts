import type * as vm from "node:vm";

/**
 * The first code of the command line, around its parts. It uses neither `require` nor `import`, so the file is a script
 * that runs as CommonJS, and as a module where a `package.json` beside it says so. The build replaces the declared names.
 */

/** Texts of the parts by name. Each is the body of a function with `PARAMETERS`, which returns the exports. */
declare const PARTS: Readonly<Record<string, string>>;
declare const PARAMETERS: readonly string[];
/** Name of the first part. */
declare const FIRST: string;
/** `process.getBuiltinModule`. The import rules have seen the imports of the parts. */
declare const BUILT_IN: (name: string) => unknown;

const { compileFunction } = BUILT_IN("node:vm") as typeof vm;

const loaded = new Map<string, unknown>();

/** The exports of a part, which is compiled and run at its first use, or a module of Node. */
function required(name: string): unknown {
  if (loaded.has(name)) return loaded.get(name);
  const text = PARTS[name];
  if (text === undefined) return builtIn(name);
  const run = compileFunction(text, PARAMETERS, { filename: `odp/${name.slice("./".length)}` });
  const exported: unknown = run(required, load);
  loaded.set(name, exported);
  return exported;
}

/** In place of `import()`. */
function load(name: string): Promise<unknown> {
  return Promise.resolve().then(() => required(name));
}

function builtIn(name: string): unknown {
  const found = BUILT_IN(name);
  // Bundled packages try optional packages, and expect an error for one that is not installed.
  if (found === undefined) throw Object.assign(new Error(`There is no module ${name}.`), { code: "MODULE_NOT_FOUND" });
  return found;
}

required(FIRST);
