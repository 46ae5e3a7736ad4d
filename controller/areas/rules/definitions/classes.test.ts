import { expect, test } from "vitest";
import type { ClassCatalog } from "../../objects/index.ts";
import { requireTimedRecords } from "./classes.ts";
import { readRuleText } from "./options.ts";

/** Paths that begin with `/o` are of objects, with `/r` of records. */
const catalog = {
  get: (path: string) =>
    path.startsWith("/none") ? undefined : { path, columns: [], kind: path.startsWith("/o") ? "entity" : "record" },
} as unknown as Pick<ClassCatalog, "get">;

const check = (options: string, body: string) => () =>
  requireTimedRecords(readRuleText(`--parser=json\n${options}\n\n${body}`), catalog);

test("--time is refused where all classes that a body sends to are of objects", () => {
  expect(check("--time=at", 'setClass("/o1")')).toThrow("--time=at is for classes of records: objects of /o1");
  expect(check("--time=at", "setClass(\"/o1\") setClass( '/o2/' )")).toThrow("objects of /o1");
  for (const body of [
    'setClass("/o1") setClass("/r1")',
    "setClass(path)",
    'setClass("/none") setClass("/o1")',
    "x = 1",
  ])
    expect(check("--time=at", body), body).not.toThrow();
  expect(check("--class=/r1\n--time=at", 'setClass("/o1")')).not.toThrow();
  expect(check("--time_zone=UTC", 'setClass("/o1")')).not.toThrow();
});
