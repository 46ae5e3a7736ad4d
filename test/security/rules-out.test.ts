import { pathToFileURL } from "node:url";
import { afterAll, expect, test, vi } from "vitest";
import type { DataRule, Principal } from "../../controller/areas/permissions/index.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { bundle } from "../helpers/programs/bundle.ts";
import { Listening } from "./fuzz/listening.ts";
import type { PersonName } from "./fuzz/people.ts";
import { forbidden, openRound, type Round } from "./fuzz/round.ts";
import { fuzz } from "./fuzz/run.ts";

/**
 * The fuzzer can fail: with any one protection taken out, it notices that within the number of calls that each run
 * makes. All other protections stay.
 */

const CALLS = 5_000;
const SEED = 1;

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

const scripts = pathToFileURL(await bundle("controller/script-worker.ts", `scripts/rules-out-${process.pid}.mjs`));
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
