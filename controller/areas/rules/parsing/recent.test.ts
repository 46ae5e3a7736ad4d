import { expect, test } from "vitest";
import {
  RECENT_POLICY_MAX_CHARACTERS,
  RECENT_RECORD_CHARACTERS,
  RECENT_RECORDS_MAX,
  RECENT_TENANT_MAX_CHARACTERS,
} from "../../../../common/limits.ts";
import { RecentRecords } from "./recent.ts";
import type { RawRecord, Rule } from "../types.ts";

const raw = (text: string): RawRecord => ({ text, timeMs: 1, host: "web-1", source: "/var/log/a", groups: {} });

/** As far as it is asked for its classes. */
function ruleOf(path: string, named: readonly string[] = []): Rule {
  const classes = Object.fromEntries([path, ...named].map((one) => [one, { cid: 1, columns: [], keys: [] }]));
  return { class: path, supplements: { classes } } as unknown as Rule;
}

function taken(lines: readonly string[], more: { readonly id?: string; readonly policy?: string; rule?: Rule } = {}) {
  return { id: "web-1/s/1", policy: "p", rule: ruleOf("/m/line"), ...more, raw: lines.map(raw) };
}

const textsOf = (recent: RecentRecords, policy = "p", tenant = "matrix") =>
  recent.of(tenant, policy).records.map(({ text }) => text);

test("the latest raw records of a policy are kept, an entry that comes again not twice", () => {
  const recent = new RecentRecords();
  recent.take("matrix", taken(["a", "b"]));
  recent.take("matrix", taken(["c"], { id: "web-1/s/2" }));
  recent.take("matrix", taken(["a", "b"]));
  recent.take("matrix", taken([], { id: "web-1/s/3" }));
  expect(textsOf(recent)).toEqual(["a", "b", "c"]);
  expect(textsOf(recent, "other")).toEqual([]);
  expect(textsOf(recent, "p", "second")).toEqual([]);
  recent.leave("matrix");
  expect(textsOf(recent)).toEqual([]);
});

test("under a rule of other classes they begin anew", () => {
  const recent = new RecentRecords();
  recent.take("matrix", taken(["secret"], { rule: ruleOf("/m/vault", ["/m/line"]) }));
  expect(recent.of("matrix", "p").classes).toEqual(["/m/line", "/m/vault"]);
  recent.take("matrix", taken(["a"], { id: "web-1/s/2" }));
  expect(recent.of("matrix", "p").classes).toEqual(["/m/line"]);
  expect(textsOf(recent)).toEqual(["a"]);
});

test("10,000 entries keep what the bounds allow, and one that is too long is counted", () => {
  const recent = new RecentRecords();
  for (let at = 1; at <= 10_000; at++) recent.take("matrix", taken([`x${at}`], { id: `web-1/s/${at}` }));
  expect(textsOf(recent)).toEqual(Array.from({ length: RECENT_RECORDS_MAX }, (_, at) => `x${9_801 + at}`));
  const long = "l".repeat(RECENT_POLICY_MAX_CHARACTERS / 2);
  recent.take("matrix", taken([long, "m".repeat(RECENT_POLICY_MAX_CHARACTERS + 1), long, "z"], { id: "web-1/s/0" }));
  expect(textsOf(recent)).toEqual([long, "z"]);
  expect(recent.of("matrix", "p").leftOut).toBe(1);
});

test("of many policies those go that had none for longest, and never those of another tenant", () => {
  const recent = new RecentRecords();
  recent.take("second", taken(["theirs"]));
  const fits = RECENT_TENANT_MAX_CHARACTERS / (2 * RECENT_RECORD_CHARACTERS);
  for (let at = 0; at < fits * 2; at++) {
    recent.take("matrix", taken(["often"], { policy: "often", id: `web-1/s/${at % 2}` }));
    recent.take("matrix", taken([`x${at}`], { policy: `p${at}` }));
  }
  const kept = Array.from({ length: fits * 2 }, (_, at) => textsOf(recent, `p${at}`)).filter(
    ({ length }) => length > 0,
  );
  expect(kept.length).toBeGreaterThan(fits / 2);
  expect(kept.length).toBeLessThan(fits);
  expect(kept.at(-1)).toEqual([`x${fits * 2 - 1}`]);
  expect(textsOf(recent, "often")).toEqual(["often", "often"]);
  expect(textsOf(recent, "p", "second")).toEqual(["theirs"]);
});
