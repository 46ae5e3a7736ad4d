import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const AREAS = "controller/areas";
const NAME = /^(?:export )?const [A-Z_]+ = "([a-z-]+)\/[a-z/]*";$/gm;

/** A watch of a shared prefix would receive another area's entries and treat them as its own. */
test("no two areas keep entries of the KvStore below the same name", () => {
  const areasOf = new Map<string, Set<string>>();
  for (const path of readdirSync(AREAS, { recursive: true, encoding: "utf8" }).filter((file) =>
    /(?<!\.test)\.ts$/.test(file),
  )) {
    const [area = ""] = path.split("/");
    for (const [, name = ""] of readFileSync(`${AREAS}/${path}`, "utf8").matchAll(NAME))
      areasOf.set(name, (areasOf.get(name) ?? new Set()).add(area));
  }
  expect([...areasOf.keys()]).toEqual(expect.arrayContaining(["usersessions", "objects", "tenants", "jobs"]));
  expect([...areasOf].filter(([, areas]) => areas.size > 1).map(([name, areas]) => [name, ...areas])).toEqual([]);
});
