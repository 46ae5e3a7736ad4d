import { describe, expect, test } from "vitest";
import { isInside } from "../../../common/paths.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { accessKey, classAccess, closingOf, decidingRules, isUnrestricted, seesAll, seesWhole } from "./access.ts";
import { byRulesAlone } from "./grants.ts";
import type { ClassAccess, DataRule } from "./types.ts";

const CASES = 800;
const CLASSES = ["/", "/m", "/m/ent", "/m/entry", "/m/ent/box"];
const COLUMNS = ["name", "load", "secret", "id"];
const CONDITIONS = ["a = 1", "b = 2"];

/** All combinations of fulfilled and unfulfilled conditions. */
const ROWS: readonly ReadonlySet<string>[] = [[], ["a = 1"], ["b = 2"], CONDITIONS].map((held) => new Set(held));

describe("what several groups open adds up, value by value", () => {
  const random = seededRandom(11);
  const one = <T>(items: readonly T[]): T => items[Math.floor(random.next() * items.length)] as T;
  const some = <T>(items: readonly T[]): readonly T[] => items.filter(() => random.next() < 0.4);
  const maybe = <T extends object>(part: () => T): Partial<T> => (random.next() < 0.35 ? part() : {});
  const rule = (): DataRule => ({
    class: one(CLASSES),
    access: one(["none", "read", "write", "write"] as const),
    ...maybe(() => ({ where: one(CONDITIONS) })),
    ...maybe(() => ({ hidden: some(COLUMNS.slice(0, 3)) })),
    ...maybe(() => ({ shown: some(COLUMNS.slice(0, 3)) })),
    ...maybe(() => ({ anywhere: [{ where: one(CONDITIONS), fields: [one(["name", "ID", "absent"])] }] })),
    ...maybe(() => ({ rowsOnly: true as const })),
    ...maybe(() => ({ group: one(["g1", "g2", "g3"]) })),
  });

  test(`and nothing else is open, in ${CASES} random sets of rules`, () => {
    for (let at = 0; at < CASES; at++) {
      const data = Array.from({ length: 1 + Math.floor(random.next() * 5) }, rule);
      const target = { path: one(CLASSES.slice(1)), columns: [{ name: "Name" }, { name: "load" }, { name: "secret" }] };
      const access = classAccess({ grants: [], data }, target);
      const told = JSON.stringify({ data, target, access });
      for (const row of ROWS) {
        for (const column of COLUMNS) {
          for (const verb of ["read", "write"] as const)
            expect(opens(access, row, column, verb), `${verb} ${column} of ${[...row].join()}: ${told}`).toBe(
              data.some(
                (_, index) => firstOfGroup(data, index) && groupOpens(data, index, { target, row, column, verb }),
              ),
            );
        }
      }
      expect(access.readable, told).toBe(access.parts.length > 0);
      expect(access.writable, told).toBe(access.parts.some(({ writable }) => writable));
      for (const row of ROWS)
        expect(holds(access.where, row) && access.readable, told).toBe(
          access.parts.some(({ where }) => holds(where, row)),
        );
      for (const column of COLUMNS)
        expect(access.hidden.has(column), told).toBe(
          access.parts.length > 0 && access.parts.every(({ hidden }) => hidden.has(column)),
        );
    }
  });
});

describe("a part that another one covers is left out", () => {
  const whole: DataRule = { class: "/", access: "write", group: "whole" };
  test.each<[what: string, narrower: Partial<DataRule>]>([
    ["of fewer rows", { where: "a = 1" }],
    ["that only reads", { access: "read" }],
    ["of fewer columns", { hidden: ["secret"] }],
    ["of columns by name", { shown: ["name"] }],
  ])("%s, in whichever order they come", (_, narrower) => {
    const other: DataRule = { ...whole, ...narrower, group: "narrower" };
    for (const data of [
      [whole, other],
      [other, whole],
    ])
      expect(classAccess({ grants: [], data }, "/m").parts).toMatchObject([{ writable: true, where: undefined }]);
  });

  test.each<[what: string, one: Partial<DataRule>, other: Partial<DataRule>]>([
    ["rows of other conditions", { where: "a = 1" }, { where: "b = 2" }],
    ["other hidden columns", { hidden: ["a"] }, { hidden: ["b"] }],
    ["other shown columns", { shown: ["a"] }, { shown: ["b"] }],
    ["more columns to read, and fewer to write", { access: "read" }, { hidden: ["b"] }],
    ["columns by name beside all but some", { shown: ["a"], access: "write" }, { hidden: ["a"] }],
  ])("but not %s", (_, one, other) => {
    const data = [
      { ...whole, ...one, group: "one" },
      { ...whole, ...other, group: "other" },
    ];
    expect(classAccess({ grants: [], data }, "/m").parts).toHaveLength(2);
  });

  test("and of equal ones there is one", () => {
    for (const access of ["read", "write"] as const) {
      const data = ["one", "other"].map((group) => ({ ...whole, access, shown: ["a"], where: "a = 1", group }));
      expect(classAccess({ grants: [], data }, "/m").parts).toHaveLength(1);
    }
  });
});

test("columns shown by name leave those that every object has, and what is hidden as well stays hidden", () => {
  const { hidden } = classAccess(
    { grants: [], data: [{ class: "/", access: "read", shown: ["a", "b"], hidden: ["b"] }] },
    "/m",
  );
  expect(["id", "class", "day", "vtime", "ctime", "mtime", "a"].filter((name) => hidden.has(name))).toEqual([]);
  expect(hidden.has("b") && hidden.has("c")).toBe(true);
});

test("a condition on fields is asked of classes that have them all, in any case, and of one whose fields are unknown", () => {
  const data: readonly DataRule[] = [
    {
      class: "/",
      access: "read",
      rowsOnly: true,
      anywhere: [{ where: "owner = 'bob' and CTIME > 1", fields: ["owner", "CTIME"] }],
    },
  ];
  expect(classAccess({ grants: [], data }, { path: "/m", columns: [{ name: "OWNER" }] }).where).toBe(
    "owner = 'bob' and CTIME > 1",
  );
  expect(classAccess({ grants: [], data }, { path: "/m", columns: [{ name: "other" }] }).readable).toBe(false);
  expect(classAccess({ grants: [], data }, "/m").readable).toBe(true);
});

test("the deciding rules are one of each group, and of those of none", () => {
  const data: readonly DataRule[] = [
    { class: "/", access: "read" },
    { class: "/m/ent", access: "write" },
    { class: "/m", access: "read", group: "g" },
    { class: "/other", access: "write", group: "h" },
  ];
  expect(decidingRules({ data }, "/m/ent/box")).toEqual([data[1], data[2]]);
});

describe("all rows and columns of a class are seen", () => {
  const read: DataRule = { class: "/", access: "read", group: "g" };
  const seen = (...data: readonly DataRule[]): boolean[] => {
    const seesClass = seesWhole(classAccess({ grants: [], data }, "/m"));
    expect(seesAll({ ...testPrincipal(), data }, [{ path: "/m" }])).toBe(seesClass);
    return [seesClass, seesWhole(classAccess({ grants: [], data: [...data].reverse() }, "/m"))];
  };

  test("by one group alone, beside others that open less or write a part", () => {
    expect(seen(read)).toEqual([true, true]);
    const part: DataRule = { ...read, access: "write", where: "a = 1", group: "h" };
    expect(seen(read, part)).toEqual([true, true]);
    expect(seen(read, { ...part, where: "b = 2", hidden: ["a"] })).toEqual([true, true]);
  });

  test("never by all rows of one group and all columns of another one", () => {
    const rows: DataRule = { ...read, hidden: ["remote"] };
    const columns: DataRule = { ...read, where: "a = 1", group: "h" };
    expect(classAccess({ grants: [], data: [rows, columns] }, "/m")).toMatchObject({
      where: undefined,
      hidden: { size: 0 },
    });
    expect(seen(rows, columns)).toEqual([false, false]);
    expect(seen(rows, { ...columns, where: undefined as never, hidden: ["a"] })).toEqual([false, false]);
  });

  test("not with a restriction, and not of a class that may not be read", () => {
    for (const less of [{ where: "a = 1" }, { hidden: ["a"] }, { shown: ["a"] }, { access: "none" as const }])
      expect(seen({ ...read, ...less })).toEqual([false, false]);
    expect(seen()).toEqual([false, false]);
    const data = [read, { ...read, class: "/m", hidden: ["a"] }];
    expect(seesAll({ ...testPrincipal(), data }, [{ path: "/n" }, { path: "/m" }])).toBe(false);
  });

  test("not of a class of which its owner closes objects to the principal", () => {
    const limited = (closes: boolean) => ({
      path: "/m",
      guard: { limit: { columns: ["a"], of: () => (closes ? () => false : undefined) } },
    });
    const bob = { ...testPrincipal(), data: [read] };
    expect([true, false].map((closes) => seesAll(bob, [limited(closes)]))).toEqual([false, true]);
  });
});

describe("a class is open without restriction", () => {
  const whole: DataRule = { class: "/m", access: "write" };
  test("by one group alone, never by what two open together", () => {
    expect(isUnrestricted({ data: [whole] }, "/m/ent")).toBe(true);
    const halves: readonly DataRule[] = [
      { ...whole, hidden: ["a"], group: "g" },
      { ...whole, hidden: ["b"], group: "h" },
    ];
    expect(isUnrestricted({ data: halves }, "/m")).toBe(false);
    expect(isUnrestricted({ data: [...halves, { ...whole, group: "i" }] }, "/m")).toBe(true);
  });

  test("by the last of several rules of one class, as everywhere", () => {
    const narrow: DataRule = { ...whole, hidden: ["a"] };
    expect(isUnrestricted({ data: [narrow, whole] }, "/m")).toBe(true);
    expect(isUnrestricted({ data: [whole, narrow] }, "/m")).toBe(false);
  });

  test.each<Partial<DataRule>>([
    { access: "read" },
    { where: "a = 1" },
    { hidden: ["a"] },
    { shown: ["a"] },
    { anywhere: [{ where: "a = 1", fields: ["a"] }] },
  ])("not with %j, there or below", (restriction) => {
    expect(isUnrestricted({ data: [{ ...whole, ...restriction }] }, "/m")).toBe(false);
    expect(isUnrestricted({ data: [whole, { ...whole, class: "/m/ent", ...restriction }] }, "/m")).toBe(false);
    expect(isUnrestricted({ data: [whole, { ...whole, class: "/m/ent", ...restriction }] }, "/m/other")).toBe(true);
  });
});

test("a rule names columns in any case, and one of just that case where there is one", () => {
  const view = {
    path: "/m",
    columns: [{ name: "Secret" }, { name: "HOST" }, { name: "host" }],
    recordColumns: [{ name: "marks" }],
  };
  const hiddenBy = (rule: Pick<DataRule, "hidden" | "shown">): readonly string[] => {
    const { hidden } = classAccess({ grants: [], data: [{ class: "/m", access: "read", ...rule }] }, view);
    return ["Secret", "HOST", "host", "marks"].filter((name) => hidden.has(name));
  };
  expect(hiddenBy({ hidden: ["secret", "host", "MARKS"] })).toEqual(["Secret", "host", "marks"]);
  expect(hiddenBy({ shown: ["secret", "host", "MARKS"] })).toEqual(["HOST"]);
  expect(hiddenBy({ shown: ["secret", "host"], hidden: ["SECRET"] })).toEqual(["Secret", "HOST", "marks"]);
});

test("a rule names columns in any case of a class of which only the path is known", () => {
  const hiddenBy = (...rules: readonly Pick<DataRule, "hidden" | "shown" | "group">[]): readonly string[] => {
    const data = rules.map((rule): DataRule => ({ class: "/m", access: "read", ...rule }));
    const { hidden } = classAccess({ grants: [], data }, "/m");
    return ["host", "port", "secret"].filter((name) => hidden.has(name));
  };
  expect(hiddenBy({ hidden: ["Secret"] })).toEqual(["secret"]);
  expect(hiddenBy({ shown: ["Host", "SECRET"] })).toEqual(["port"]);
  expect(hiddenBy({ shown: ["Host", "secret"], hidden: ["SECRET"] })).toEqual(["port", "secret"]);
  expect(hiddenBy({ hidden: ["Secret", "port"], group: "a" }, { hidden: ["SECRET"], group: "b" })).toEqual(["secret"]);
  expect(hiddenBy({ shown: ["Host"], group: "a" }, { shown: ["host", "port"], group: "b" })).toEqual(["secret"]);
});

test("a rule that hides a column shows no raw bytes of records, even if it lists them", () => {
  const view = { path: "/m", columns: [{ name: "n" }, { name: "secret" }], recordColumns: [{ name: "_rawbytes" }] };
  const isHidden = (rule: Pick<DataRule, "hidden" | "shown">): boolean =>
    classAccess({ grants: [], data: [{ class: "/m", access: "read", ...rule }] }, view).hidden.has("_rawbytes");
  expect(isHidden({ shown: ["n", "_rawbytes"] })).toBe(false);
  expect(isHidden({ shown: ["n", "_rawbytes"], hidden: ["secret"] })).toBe(true);
  expect(isHidden({ hidden: ["secret"] })).toBe(true);
  expect(isHidden({})).toBe(false);
});

test("a condition about any class that has its fields does not mean columns of the platform", () => {
  const anywhere = [{ where: "marks > 50", fields: ["marks"] }];
  const data: readonly DataRule[] = [{ class: "/m", access: "read", anywhere }];
  const recordColumns = [{ name: "marks" }];
  const whereOf = (view: Parameters<typeof classAccess>[1]) => classAccess({ grants: [], data }, view).where;
  expect(whereOf({ path: "/m/line", columns: [{ name: "n" }], recordColumns })).toBeUndefined();
  expect(whereOf({ path: "/m/exam", columns: [{ name: "Marks" }] })).toBe("marks > 50");
});

function opens(access: ClassAccess, row: ReadonlySet<string>, column: string, verb: "read" | "write"): boolean {
  return access.parts.some(
    ({ writable, where, hidden }) => (verb === "read" || writable) && holds(where, row) && !hidden.has(column),
  );
}

/** True if the row fulfils a condition: `a`, or joined ones as in `(a) OR (b)`. */
function holds(where: string | undefined, row: ReadonlySet<string>): boolean {
  return where === undefined || where.split(" OR ").some((text) => row.has(text.replace(/[()]/g, "")));
}

function firstOfGroup(data: readonly DataRule[], index: number): boolean {
  return data.findIndex(({ group }) => group === data[index]?.group) === index;
}

interface Value {
  readonly target: { readonly path: string; readonly columns: readonly { readonly name: string }[] };
  readonly row: ReadonlySet<string>;
  readonly column: string;
  readonly verb: "read" | "write";
}

/** The documented meaning of the rules of a group, without any shortcut. */
function groupOpens(data: readonly DataRule[], index: number, { target, row, column, verb }: Value): boolean {
  const deciding = data
    .filter(({ group, class: path }) => group === data[index]?.group && isInside(path, target.path))
    .reduce<DataRule | undefined>(
      (best, rule) => (rule.class.length >= (best?.class.length ?? 0) ? rule : best),
      undefined,
    );
  if (deciding === undefined || deciding.access === "none" || (verb === "write" && deciding.access !== "write"))
    return false;
  const has = (name: string): boolean =>
    ["id", ...target.columns.map((field) => field.name.toLowerCase())].includes(name.toLowerCase());
  const asked = (deciding.anywhere ?? []).filter(({ fields }) => fields.every(has)).map(({ where }) => where);
  const conditions = [...(deciding.where === undefined ? [] : [deciding.where]), ...asked];
  const hasRow = conditions.length === 0 ? !deciding.rowsOnly : conditions.some((text) => row.has(text));
  const isHidden = (deciding.hidden ?? []).includes(column);
  const isShown = deciding.shown === undefined || deciding.shown.includes(column) || column === "id";
  return hasRow && isShown && !isHidden;
}

describe("a class of the platform", () => {
  const closed = { path: "/m/trail", guard: { reading: { permission: "audit:read" as const } } };
  const open = {
    path: "/m/runs",
    guard: { reading: { permission: "jobs:read" as const, isOpenToGroups: true as const, withheld: ["out"] } },
  };
  const own: readonly DataRule[] = [{ class: "/", access: "read" }];
  const byGroup: readonly DataRule[] = [{ class: "/", access: "read", group: "g", hidden: ["err"] }];
  const hiddenIn = (access: ClassAccess): string[] => ["out", "err", "host"].filter((name) => access.hidden.has(name));

  test("is read by who has its permission and a rule", () => {
    for (const grants of [["audit:read", "jobs:read"], ["*:read"]])
      for (const view of [closed, open]) {
        expect(classAccess({ grants, data: own }, view).readable).toBe(true);
        expect(hiddenIn(classAccess({ grants, data: byGroup }, view))).toEqual(["err"]);
        expect(classAccess({ grants, data: [] }, view).readable).toBe(false);
        expect(closingOf({ grants }, view)).toBeUndefined();
      }
  });

  test("is read by a group's rule without the permission where it says so, without what is withheld", () => {
    expect(classAccess({ grants: ["objects:read"], data: byGroup }, closed).readable).toBe(false);
    const access = classAccess({ grants: ["objects:read"], data: byGroup }, open);
    expect(access.readable).toBe(true);
    expect(hiddenIn(access)).toEqual(["out", "err"]);
    const shown: readonly DataRule[] = [{ class: "/", access: "read", group: "g", shown: ["out", "host"] }];
    expect(hiddenIn(classAccess({ grants: [], data: shown }, open))).toEqual(["out", "err"]);
  });

  test("is not read by one's own rule, nor by a part token, without the permission", () => {
    expect(classAccess({ grants: ["objects:read"], data: own }, open).readable).toBe(false);
    expect(classAccess({ grants: ["objects:read"], data: byGroup, byToken: "part" }, open).readable).toBe(false);
    expect(classAccess({ grants: [], data: byGroup, byToken: "whole" }, open).readable).toBe(true);
    expect(closingOf({ grants: [], byToken: "part" }, open)).toBe(open.guard.reading);
  });

  test("is open to its owner's reads by the rules alone", () => {
    const caller = { ...testPrincipal(), grants: ["jobs:run"], data: byGroup };
    expect(hiddenIn(classAccess(byRulesAlone(caller, "jobs:read"), open))).toEqual(["err"]);
  });
});

test("what is kept of a class for some rules is not given to principals of other permissions or tokens", () => {
  const reading = { permission: "hosts:read", isOpenToGroups: true, withheld: ["secret"] } as const;
  const view = { path: "/m/host", columns: [{ name: "secret" }], guard: { reading } };
  const data: readonly DataRule[] = [{ class: "/m", access: "read", group: "g" }];
  const [may, mayNot] = [["hosts:read"], ["files:read"]];
  const hides = (grants: readonly string[], byToken?: "part" | "whole") =>
    classAccess({ data, grants, ...(byToken && { byToken }) }, view).hidden.has("secret");
  const isReadable = (grants: readonly string[], byToken?: "part" | "whole") =>
    classAccess({ data, grants, ...(byToken && { byToken }) }, view).readable;
  for (let round = 0; round < 2; round += 1) {
    expect(hides(may)).toBe(false);
    expect(hides(mayNot)).toBe(true);
    expect(hides(mayNot, "whole")).toBe(true);
    expect(isReadable(mayNot, "part")).toBe(false);
    expect(isReadable(mayNot)).toBe(true);
  }
  expect(classAccess({ data: [], grants: may }, view).readable, "other rules").toBe(false);
  expect(classAccess({ data, grants: may }, { ...view, path: "/other" }).readable, "another class").toBe(false);
});

test("principals of other permissions, or of a part token, have another key", () => {
  const keys = [
    { grants: ["a:read"] },
    { grants: ["a:read", "b:read"] },
    { grants: ["a:read"], byToken: "part" as const },
  ];
  expect(new Set(keys.map(accessKey)).size).toBe(3);
});
