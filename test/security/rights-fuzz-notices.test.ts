import { pathToFileURL } from "node:url";
import { afterAll, expect, test, vi } from "vitest";
import type { DataRule, Principal } from "../../controller/areas/permissions/index.ts";
import { bundle } from "../helpers/programs/bundle.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import type { Draw, DrawnCall } from "./draw.ts";
import { Listening } from "./fuzz/listening.ts";
import { MARK, TWINS } from "./fuzz/names.ts";
import type { Person, PersonName } from "./fuzz/people.ts";
import { forbidden, openRound, type Round } from "./fuzz/round.ts";
import { compared, drawOf, fuzz, look } from "./fuzz/run.ts";
import { SEARCHES, STATEMENTS } from "./fuzz/statements.ts";
import { drawerOf, isReading, SUBJECTS, WAYS, type Drawn, type Interface } from "./fuzz/ways.ts";
import { nameOf } from "./people.ts";

/**
 * The fuzzer can fail. Every kind of call that it draws tells hidden data to a caller who may see it. With any one
 * protection taken out, it notices that within the number of calls that each run makes; all other protections stay.
 */

/** Number of calls of the fuzzer in every run. */
const CALLS = 5_000;
const SEED = 1;
/** Draws of one kind of call until one of them tells. */
const DRAWS_MAX = 400;
const RECEIVERS = 30;

const scripts = pathToFileURL(await bundle("controller/script-worker.ts", `scripts/fuzz-notices-${process.pid}.mjs`));
let kept: { readonly round: Round; readonly before: unknown } | undefined;
afterAll(() => kept?.round[Symbol.asyncDispose]());

/** A round whose data no former test has changed. */
async function wholeRound(): Promise<Round> {
  if (kept) {
    const now = await forbidden(kept.round.world);
    if (JSON.stringify(now) === JSON.stringify(kept.before)) return kept.round;
    await kept.round[Symbol.asyncDispose]();
  }
  const round = await openRound(scripts);
  kept = { round, before: await forbidden(round.world) };
  return round;
}

/** From whom nothing is hidden. */
function everything(access: "read" | "write"): Person {
  const grants = ["*:read", "objects:write"];
  return {
    login: "matrix.everything",
    principal: { ...testPrincipal(), user: "everything", grants, data: [{ class: "/", access }] },
    mark: new RegExp(MARK, "i"),
    twins: [...TWINS.row, ...TWINS.column, ...TWINS.shut, ...TWINS.ruled, ...TWINS.file],
  };
}

/** True if one of the drawn calls is answered by a mark, or differently from its twin. */
async function tells(access: "read" | "write", drawn: (draw: Draw, to: Interface) => DrawnCall): Promise<boolean> {
  const round = await wholeRound();
  const draw = drawOf(SEED);
  for (let made = 0; made < DRAWS_MAX; made++) {
    const call = drawn(draw, round.to);
    const one = { by: everything(access), call, isWhole: false };
    if ((await look(round, one)) ?? (await compared(round, one))) return true;
  }
  return false;
}

test("every way and every endpoint that reads is drawn", async () => {
  const { to } = await wholeRound();
  const drawn = drawerOf(to);
  const draw = drawOf(SEED);
  const ways = new Set<string>();
  const endpoints = new Set<string>();
  for (let made = 0; made < CALLS; made++) {
    const { way, drawn: one } = drawn(draw);
    ways.add(way);
    endpoints.add("socket" in one ? one.socket.path : nameOf(one.endpoint));
  }
  expect([...ways].sort()).toEqual(Object.keys(WAYS).sort());
  expect([...endpoints]).toEqual(expect.arrayContaining(to.endpoints.filter(isReading).map(nameOf)));
  expect([...endpoints]).toEqual(expect.arrayContaining(to.sockets.map(({ path }) => path)));
});

const posted = ({ endpoints }: Interface, path: string, input: DrawnCall["input"]): DrawnCall => {
  const endpoint = endpoints.find((one) => one.method === "POST" && one.path === path);
  if (endpoint === undefined) throw new Error(`There is no POST ${path}.`);
  return { endpoint, path: {}, input };
};

/** Shapes whose answer tells only a caller who may change the data. They run last. */
const CHANGING = /update|relate|convert|insert|delete/;
const shapes = [
  ...Object.entries(STATEMENTS).map(([name, shape]) => ({
    name,
    told: (draw: Draw, to: Interface) => posted(to, "/mxobject/mql", { mql: shape(draw) }),
  })),
  ...Object.entries(SEARCHES).map(([name, shape]) => ({
    name: `search for ${name}`,
    told: (draw: Draw, to: Interface) => posted(to, "/mxobject/search", { cond: shape(draw) }),
  })),
];

test.each(shapes.filter(({ name }) => !CHANGING.test(name)))("hidden data is told by: $name", async ({ told }) => {
  expect(await tells("read", told)).toBe(true);
});

/** Ways whose answers come as frames or events, and ways that answer no data. */
const HEARD = ["socket", "notifications", "console log", "event stream"];
const UNTOLD = ["an endpoint with a password"];
const ANSWERED = Object.keys(WAYS).filter((way) => ![...HEARD, ...UNTOLD].includes(way));

test.each(ANSWERED)("hidden data is told by: %s", async (way) => {
  expect(await tells("read", (draw, to) => drawnBy(way, draw, to) as DrawnCall)).toBe(true);
});

test.each(HEARD)("hidden data is told to the receivers of: %s", async (way) => {
  const round = await wholeRound();
  const listening = new Listening();
  const draw = drawOf(SEED);
  for (let opened = 0; opened < RECEIVERS; opened++) {
    const drawn = drawnBy(way, draw, round.to);
    if ("socket" in drawn) listening.socket(everything("read"), drawn);
    else listening.stream(round, everything("read"), drawn);
  }
  const { config, notifications } = round.world.assembly;
  await config.set(testPrincipal(), { key: "/matrix/covert/key", value: "xmarkxconfig second" });
  const frame = { keyspace: "/matrix", source: "fuzz", title: "t", reply: "", msg: "xmarkxrow", about: undefined };
  for (const subject of SUBJECTS) notifications.publish("matrix", { ...frame, subject });
  await expect.poll(() => listening.leaks.length).toBeGreaterThan(0);
  listening.close();
});

interface Protection {
  readonly of: PersonName;
  /** The rights without the protection. */
  readonly without: (principal: Principal) => Partial<Principal>;
}

const VAULT = "/matrix/vault";

/** Changes the rules of one class. `undefined`: there is no such rule any more. */
function rules(path: string, change: (rule: DataRule) => DataRule | undefined): Protection["without"] {
  return ({ data }) => ({ data: data.flatMap((rule) => (rule.class === path ? (change(rule) ?? []) : [rule])) });
}

const withoutRows = ({ where: _where, ...rule }: DataRule): DataRule => rule;
const withoutConditions = ({ where: _where, anywhere: _anywhere, rowsOnly: _rowsOnly, ...rule }: DataRule): DataRule =>
  rule;
const withoutHidden = ({ hidden: _hidden, ...rule }: DataRule): DataRule => rule;
const withoutShown = ({ shown: _shown, ...rule }: DataRule): DataRule => rule;
const opened =
  (path: string): Protection["without"] =>
  ({ data }) => ({
    data: [...data, { class: path, access: "read", group: "opened" }],
  });
const granted =
  (...grants: readonly string[]): Protection["without"] =>
  (principal) => ({
    grants: [...principal.grants, ...grants],
  });

const PROTECTIONS: Readonly<Record<string, Protection>> = {
  "the row condition of a group that reads": { of: "few", without: rules(VAULT, withoutRows) },
  "the row condition of a group that writes": { of: "some", without: rules(VAULT, withoutRows) },
  "the row condition of records": { of: "few", without: rules("/matrix/lines", withoutRows) },
  "the hidden column of records": { of: "some", without: rules("/matrix/lines", withoutHidden) },
  "the list of shown columns of records": { of: "listed", without: rules("/matrix/lines", withoutShown) },
  "the row condition of an own rule": { of: "listed", without: rules(VAULT, withoutRows) },
  "the row condition of every class with its fields": { of: "parted", without: rules(VAULT, withoutConditions) },
  "the row condition of the platform's class": {
    of: "listed",
    without: rules("/matrix/system/config", withoutRows),
  },
  "the hidden column of a group that reads": { of: "few", without: rules(VAULT, withoutHidden) },
  "the hidden column of a group that writes": { of: "reader", without: rules(VAULT, withoutHidden) },
  "the list of shown columns": { of: "listed", without: rules(VAULT, withoutShown) },
  "the list of shown columns of one of two groups": { of: "parted", without: rules(VAULT, withoutShown) },
  "a class that no rule opens": { of: "few", without: opened("/matrix/shut") },
  ...Object.fromEntries(
    ["shut", "ldap", "jobs", "system/hostinfo", "system/policy"].map((path): [string, Protection] => [
      `the rule that closes /matrix/${path}`,
      { of: "listed", without: rules(`/matrix/${path}`, () => undefined) },
    ]),
  ),
  "the open paths": { of: "pathed", without: () => ({ paths: ["/"] }) },
  ...Object.fromEntries(
    ["appcontext", "tables"].map((area): [string, Protection] => [
      `the missing permission ${area}:read`,
      { of: "few", without: granted(`${area}:read`) },
    ]),
  ),
};

async function leakOf(name: PersonName, without: Protection["without"]): Promise<string | undefined> {
  const round = await wholeRound();
  const person = round.people[name];
  const principal = { ...person.principal, ...without(person.principal) };
  const people = { ...round.people, [name]: { ...person, principal } };
  const listening = new Listening();
  const leaks = await fuzz(round, { people, seed: SEED, calls: CALLS, listening, leaksMax: 1 });
  listening.close();
  return leaks[0];
}

test("the fuzzer notices that the owner of a class hides no objects", async () => {
  const { objects } = (await wholeRound()).world.assembly;
  const limit = (await objects.catalog(testPrincipal())).get("/matrix/filesystem")?.guard?.limit;
  if (limit === undefined) throw new Error("The class of files has no limit.");
  const off = vi.spyOn(limit, "of").mockReturnValue(undefined);
  try {
    expect(await leakOf("pathed", () => ({}))).toMatch(/xmarkxfile/);
  } finally {
    off.mockRestore();
  }
});

/** The row condition is missing, but no answer has a mark: only conditions, counts and errors tell of the hidden row. */
test("the fuzzer notices that a call about a hidden object is answered differently", async () => {
  const unmarked = ({ where: _where, ...rule }: DataRule): DataRule => ({ ...rule, hidden: ["hushed", "note"] });
  expect(await leakOf("few", rules(VAULT, unmarked))).toContain("and about what does not exist");
});

test.each(Object.entries(PROTECTIONS))(
  "the fuzzer notices that this is missing: %s",
  async (_name, { of, without }) => {
    expect(await leakOf(of, without)).toContain(of);
  },
);

test.each(shapes.filter(({ name }) => CHANGING.test(name)))("hidden data is told by: $name", async ({ told }) => {
  expect(await tells("write", told)).toBe(true);
});

function drawnBy(way: string, draw: Draw, to: Interface): Drawn {
  const found = WAYS[way];
  if (found === undefined) throw new Error(`There is no way ${way}.`);
  return found.draw(draw, to);
}
