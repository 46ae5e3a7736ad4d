import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { build, type Plugin } from "esbuild";
import * as LIMITS from "../../common/limits.ts";
import packageJson from "../../package.json" with { type: "json" };
import { emptyPackage, packedFile, runStep } from "../package-folder.ts";

/**
 * `npm run pack-client [-- <folder>]`: makes the npm package of the typed client in the folder, and beside it the file
 * that npm installs. Nothing is published.
 */
const folder = resolve(process.argv[2] ?? ".builds/client");
const ENTRY = "common/client/index.ts";
const NAME = "odp-client";

/** Gives each limit as its value. esbuild keeps an unused limit that is computed from others. */
const LIMITS_AS_VALUES: Plugin = {
  name: "limits",
  setup: ({ onLoad }) =>
    onLoad({ filter: /common\/limits\.ts$/ }, () => ({
      contents: Object.entries(LIMITS)
        .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};`)
        .join("\n"),
    })),
};

await emptyPackage(folder, NAME);
await Promise.all([bundle(), declare(), describe()]);
const { file, bytes } = await packedFile(folder);
const code = await readFile(join(folder, "index.js"));
console.error(`index.js: ${code.length} bytes, ${gzipSync(code).length} compressed; package: ${bytes} bytes`);
console.log(file);

/** One module for Node and browsers. Names stay readable in errors and profiles. */
async function bundle(): Promise<void> {
  const { warnings } = await build({
    entryPoints: [ENTRY],
    outfile: join(folder, "index.js"),
    bundle: true,
    // Without a platform, an import of a module of Node is an error.
    platform: "neutral",
    format: "esm",
    target: "es2022",
    minifySyntax: true,
    minifyWhitespace: true,
    // Node shows the line at which an error was thrown that no program catches.
    lineLimit: 160,
    legalComments: "none",
    plugins: [LIMITS_AS_VALUES],
    logLevel: "warning",
  });
  if (warnings.length > 0) throw new Error("The bundle has warnings.");
}

/** The types that the entry reaches, and no others. */
async function declare(): Promise<void> {
  const all = `${folder}.types`;
  const options = ["--ignoreConfig", "--declaration", "--emitDeclarationOnly", "--outDir", all, "--rootDir", "common"];
  const language = ["--target", "es2022", "--module", "nodenext", "--lib", "es2023,dom"];
  const strict = [
    "--strict",
    "--exactOptionalPropertyTypes",
    "false",
    "--allowImportingTsExtensions",
    "--skipLibCheck",
  ];
  await runStep("node_modules/.bin/tsc", [...options, ...language, ...strict, ENTRY]);
  await copyReached(join(all, "client/index.d.ts"), all, new Set());
  await rm(all, { recursive: true });
}

/** Copies a file of types and those that it imports. */
async function copyReached(file: string, root: string, done: Set<string>): Promise<void> {
  if (done.has(file)) return;
  done.add(file);
  const text = await readFile(file, "utf8");
  const target = join(folder, "types", relative(root, file));
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, text.replaceAll(/((?:from |import\()"\.[^"]*)\.ts"/g, '$1.js"'));
  const imported = [...text.matchAll(/(?:from |import\()"(\.[^"]*)\.ts"/g)].map(([, path = ""]) => path);
  for (const path of imported) await copyReached(join(dirname(file), `${path}.d.ts`), root, done);
}

async function describe(): Promise<void> {
  const { version, license, engines } = packageJson;
  const described = {
    name: NAME,
    version,
    description: "Typed client of the HTTP interface of odp, for Node and browsers",
    license,
    type: "module",
    sideEffects: false,
    exports: { ".": { types: "./types/client/index.d.ts", default: "./index.js" } },
    types: "./types/client/index.d.ts",
    files: ["index.js", "types"],
    engines,
  };
  await writeFile(join(folder, "package.json"), `${JSON.stringify(described, undefined, 2)}\n`);
  await cp("LICENSE", join(folder, "LICENSE"));
  await cp("deploy/client/README.md", join(folder, "README.md"));
}
