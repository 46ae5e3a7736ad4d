import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import document from "../../../deploy/docs/openapi.json" with { type: "json" };
import { AUDIT_NAMES_MAX } from "../../../common/limits.ts";
import { changedBy } from "./changed.ts";

test("names what is changed by the path and by the members that name things, and never tells a value", () => {
  expect(changedBy({ path: { name: "web-1" } })).toBe("web-1");
  expect(changedBy({ path: {}, input: { host: "web-1", secret: "s3cret" } })).toBe("web-1");
  expect(changedBy({ path: {}, input: { name: "backup", dir: "nightly", host: "web-1", arg: "x" } })).toBe(
    "backup, nightly",
  );
  expect(changedBy({ path: { domain: "vm" }, input: { domain: "vm", tag: "/a", id: ["host:1", "host:2"] } })).toBe(
    "vm, host:1, host:2, /a",
  );
  expect(changedBy({ path: {}, input: { jobs: [{ name: "one", param: "p" }, { name: "two" }] } })).toBe("one, two");
  expect(changedBy({ path: {}, input: { name: "probe", key: "s3cret" }, secrets: ["key"] })).toBe("probe");
  expect(changedBy({ path: {}, input: { value: "v" } })).toBe("");
  const upload = { field: "file", filename: "objects.mql", path: "/tmp/x", size: 1 };
  expect(changedBy({ path: {}, files: [upload] })).toBe("objects.mql");
});

test("of very many names it tells how many there are", () => {
  const id = Array.from({ length: AUDIT_NAMES_MAX + 5 }, (_, at) => String(at));
  expect(changedBy({ path: {}, input: { id } })).toMatch(/, 19, and 5 more$/);
});

/** They change the tenant, or the user who calls; an upload changes the file. */
const WITHOUT_NAME = [
  "DELETE /cluster/scrub",
  "DELETE /consolelog/rule/truncate",
  "DELETE /consolelog/serverjs/truncate",
  "DELETE /consolelog/trigger/truncate",
  "POST /admin/perms/app/refresh",
  "POST /admin/signinpolicy",
  "POST /cluster/scrub",
  "POST /fs",
  "POST /fs/import",
  "POST /fs/index",
  "POST /key/reload",
  "POST /license/import",
  "POST /mxobject/importclass",
];

interface Operation {
  readonly parameters?: readonly { readonly name: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: unknown }>> };
}

test("every endpoint that changes something names it by one of these members", async () => {
  // Who may call what, a line for each endpoint: method, path, permission.
  const table = await readFile(new URL("../../../test/security/matrix.txt", import.meta.url), "utf8");
  const changes = table
    .split("\n")
    .map((line) => line.split(/\s+/))
    .filter(([, , permission]) => /:(write|run)$/.test(permission ?? ""));
  expect(changes.length).toBeGreaterThan(80);
  const nameless = changes
    .filter(([method, path = ""]) => method !== "GET" && !/[:*]/.test(path))
    .filter(([method = "", path = ""]) => {
      const input = membersOf(PATHS[path]?.[method.toLowerCase()] ?? {}).map((name) => [name, "x"]);
      return changedBy({ path: {}, input: Object.fromEntries(input) }) === "";
    })
    .map(([method, path]) => `${method} ${path}`);
  expect(nameless.sort()).toEqual(WITHOUT_NAME);
});

const PATHS = document.paths as Readonly<Record<string, Readonly<Record<string, Operation>>>>;

function membersOf({ parameters = [], requestBody }: Operation): readonly string[] {
  const schemas = Object.values(requestBody?.content ?? {}).map(({ schema }) => schema as { properties?: object });
  return [...parameters.map(({ name }) => name), ...schemas.flatMap(({ properties = {} }) => Object.keys(properties))];
}
