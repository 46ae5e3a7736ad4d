import { basename } from "node:path";
import type { OutputFile } from "esbuild";

/** A part of the command line: the body of a function with these parameters, which returns the exports. */
export const PARAMETERS = ["require", "load"] as const;

const FROM = String.raw`"((?:\.\/|node:)[^"]+)"`;
const IMPORT = new RegExp(String.raw`\bimport(?:\{([^}]*)\}from)?${FROM};`, "g");
const LATER = new RegExp(String.raw`\bimport\(${FROM}\)`, "g");
const EXPORT = /export\{([^}]*)\};\s*$/;
const UNKNOWN = /\bimport[{"*]|\bimport\b[^;]*\bfrom"|\bimport\.meta\b|\bexport[{*]/;

/**
 * Texts of the parts, by the names by which they import each other: `./<name>`. The parts are modules as esbuild splits
 * them, without white space. Their imports become constants, which is right because a part runs after those that it
 * imports, and none changes an export later. The general way from modules to CommonJS takes longer at each start.
 */
export function partsOf(files: readonly OutputFile[]): Readonly<Record<string, string>> {
  return Object.fromEntries(files.map(({ path, text }) => [nameOf(path), partOf(text, nameOf(path))]));
}

export function nameOf(path: string): string {
  return `./${basename(path)}`;
}

function partOf(text: string, name: string): string {
  const exported = EXPORT.exec(text)?.[1] ?? "";
  const body = text.replace(EXPORT, "").replaceAll(IMPORT, importOf).replaceAll(LATER, `load("$1")`);
  if (UNKNOWN.test(body)) throw new Error(`The form of the part ${name} is not known.`);
  return `"use strict";${body}return{${renamed(exported, (own, theirs) => `${theirs}:${own}`)}}`;
}

function importOf(_all: string, names: string | undefined, from: string): string {
  const required = `require("${from}");`;
  return names === undefined ? required : `const{${renamed(names, (theirs, own) => `${theirs}:${own}`)}}=${required}`;
}

/** Names such as `a as b,c`, each in another form. */
function renamed(names: string, form: (before: string, after: string) => string): string {
  return names
    .split(",")
    .filter((one) => one !== "")
    .map((one) => {
      const [before = "", after = before] = one.split(" as ");
      return form(before, after);
    })
    .join(",");
}
