import { describe, expect, test } from "vitest";
import type { Objects, UnrestrictedObjects } from "../../../controller/areas/objects/index.ts";
import { callSites, loweredFiles, unrestrictedComplaints } from "./unrestricted.ts";

const SERVICE = "controller/areas/shifts/service.ts";

/** An endpoint that counts by a plain read: it also counts rows that are hidden from its caller. */
const COUNTING = `
export async function count(principal: Principal, { objects }: Dependencies): Promise<number> {
  requirePermission(principal, "objects:read");
  let count = 0;
  for await (const rows of objects.unrestricted.read(principal, { class: "/matrix/shift", subtree: false }))
    count += rows.length;
  return count;
}
`;

const found = (text: string, path = SERVICE) => callSites([{ path, text }]);
const listed = (sites: number, reason = "Its records are answered by the platform.") => ({
  [SERVICE]: { sites, reason },
});

describe("an unrestricted call", () => {
  test("has no second name on the objects", () => {
    const isNever: [keyof Objects & keyof UnrestrictedObjects] extends [never] ? true : false = true;
    expect(isNever).toBe(true);
  });

  test("of a new endpoint is refused, and the message says what answers users instead", () => {
    expect(unrestrictedComplaints(found(COUNTING), {})).toEqual([
      "unrestricted: controller/areas/shifts/service.ts has 1 calls (0 in the list). They skip the rules for rows and columns: answer users by VisibleObjects (controller/areas/objects/visible). A call that must not follow these rules is added to test/tools/ratchets/unrestricted.json, with its reason.",
    ]);
  });

  test("is refused beside listed ones of the same file", () => {
    expect(unrestrictedComplaints(found(COUNTING + COUNTING), listed(1))).toEqual([
      expect.stringContaining("service.ts has 2 calls (1 in the list)"),
    ]);
  });

  test("is allowed with its reason in the list, and not without", () => {
    expect(unrestrictedComplaints(found(COUNTING), listed(1))).toEqual([]);
    expect(unrestrictedComplaints(found(COUNTING), listed(1, "needed"))).toEqual([
      expect.stringContaining("service.ts has no reason"),
    ]);
  });

  test("that is gone is taken off the list, and cannot come back", () => {
    const none = found("export const nothing = 1;\n");
    expect(unrestrictedComplaints(none, listed(1))).toEqual([expect.stringContaining("npm run ratchets lowers it")]);
    expect(loweredFiles(none, listed(1))).toEqual({});
    expect(loweredFiles(found(COUNTING), listed(3))).toEqual(listed(1));
    expect(loweredFiles(found(COUNTING), {})).toEqual({});
  });

  test("in a test or in the area of objects is not counted", () => {
    for (const path of [
      "controller/areas/shifts/service.test.ts",
      "controller/areas/objects/ends.ts",
      "test/bench/x.ts",
    ])
      expect(found(COUNTING, path)).toEqual({ counts: {}, misuses: [] });
  });

  test("through optional access and over several lines is counted", () => {
    expect(found("void this.#objects?.unrestricted\n  .get(principal, refs);\n").counts).toEqual({ [SERVICE]: 1 });
  });
});

describe("the unrestricted calls themselves are not handed on", () => {
  test.each([
    "const raw = objects.unrestricted;",
    "const { unrestricted } = objects;",
    "const { unrestricted: raw } = objects;",
    'const raw = objects["unrestricted"];',
    'const raw = Reflect.get(objects, "unrestricted");',
    "helper(objects.unrestricted);",
    "const read = objects.unrestricted.read;",
    "const read = objects.unrestricted.read.bind(objects.unrestricted);",
    "const over = { unrestricted: other };",
    'const { "unrestricted": raw } = objects;',
    "const { [`unrestricted`]: raw } = objects;",
    "for (const { unrestricted: raw } of [objects]) raw.read();",
    "function read({ unrestricted }: Objects) { return unrestricted.read(); }",
    "const raw = objects?.unrestricted ?? none;",
    "void objects.unrestricted!.read(principal, request);",
    'void objects.unrestricted["read"](principal, request);',
    "void objects.unrestricted.read.call(objects.unrestricted, principal, request);",
    "void (objects.unrestricted).read(principal, request);",
  ])("%s", (text) => {
    const complaints = unrestrictedComplaints(found(text), {});
    expect(complaints).toContainEqual(expect.stringContaining(`unrestricted: ${SERVICE}:1 does not call it.`));
  });

  test("a type names them", () => {
    expect(found("const use = (one: Objects['unrestricted'], parts: Unrestricted<'read'>) => one;\n")).toEqual({
      counts: {},
      misuses: [],
    });
    expect(
      found("// objects.unrestricted.read()\n/** `unrestricted` */ const text = 'an unrestricted call';\n"),
    ).toEqual({
      counts: {},
      misuses: [],
    });
    expect(found('type Used = Pick<Objects, "unrestricted" | "catalog">;\n')).toEqual({ counts: {}, misuses: [] });
  });
});
