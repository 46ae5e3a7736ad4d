import { expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { AUDIT_RUN_ENTRIES_WAITING_MAX } from "../../../common/limits.ts";
import { MemoryTrail } from "../../../test/helpers/http/http-app.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { AuditRecord } from "./chain.ts";
import { entryWritten } from "./run-entries.ts";
import { audited } from "./runs.ts";
import { AuditService } from "./service.ts";
import type { AuditEntry } from "./types.ts";

/** A trail that stores nothing before `release`. */
class HeldTrail extends MemoryTrail {
  readonly #released: Promise<void>;
  release = (): void => undefined;

  constructor() {
    super();
    this.#released = new Promise((resolve) => (this.release = resolve));
  }

  override async append(tenant: string, records: readonly AuditRecord[]): Promise<void> {
    await this.#released;
    await super.append(tenant, records);
  }
}

function open() {
  const trail = new HeldTrail();
  const audit = new AuditService({ runtime: testRuntime(new TestClock()), trail, keys: TEST_SECRETS });
  const done: string[] = [];
  const principal = { ...testPrincipal() };
  const calls = {
    principal,
    changed: new Set<string>(),
    /** A service that records its changes. */
    call: async (name: string): Promise<string> => {
      done.push(`${name} begins`);
      await entryWritten(principal, audit.record(entry(name)));
      return name;
    },
  };
  const run = { principal: testPrincipal(), kind: "SCRIPT", object: "/a.js", permission: "scripts:read" } as const;
  return { trail, audit, done, host: calls, run: { ...run, host: calls } };
}

function entry(action: string): AuditEntry {
  const who = { tenant: "matrix", user: "u", permission: "objects:write" };
  return { ...who, action, outcome: "ok", code: "ok", remote: "", traceparent: "" };
}

function actions({ records }: MemoryTrail): readonly string[] {
  return records.map(({ action }) => action);
}

/** Long enough for everything that waits for nothing external. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test("a host call is answered before its entry is written, and the run ends after it", async () => {
  const { trail, audit, done, run } = open();
  const whole = audited(audit, run, async ({ call }) => {
    done.push(`${await call("one")} is answered`);
  }).then(() => done.push(`the run ends after ${actions(trail).length}`));
  await turns();
  expect([done, actions(trail)]).toEqual([["one begins", "one is answered"], []]);
  trail.release();
  await whole;
  expect(done.at(-1)).toBe("the run ends after 1");
});

test("the next host call begins when the entries of the one before are written", async () => {
  const { trail, audit, done, run } = open();
  const whole = audited(audit, run, async ({ call }) => [await call("one"), await call("two")]);
  await turns();
  expect(done).toEqual(["one begins"]);
  trail.release();
  expect(await whole).toEqual(["one", "two"]);
  expect([done, actions(trail)]).toEqual([
    ["one begins", "two begins"],
    ["one", "two"],
  ]);
});

test("a run that fails ends after its entries, too, and after the one of its own", async () => {
  const { trail, audit, host, run } = open();
  const whole = audited(audit, run, async ({ call }) => {
    host.changed.add(await call("dfs.write"));
    throw new Error("thrown by the text");
  });
  const ended = whole.catch((error: Error) => `${error.message} after ${actions(trail).join(", ")}`);
  await turns();
  expect(actions(trail)).toEqual([]);
  trail.release();
  expect(await ended).toBe("thrown by the text after dfs.write, SCRIPT /a.js dfs.write");
});

test.each([
  [new AppError("denied", "no"), { outcome: "denied", code: "denied" }],
  [new AppError("not_found", "none"), { outcome: "failed", code: "not_found" }],
  [new Error("thrown by the text"), { outcome: "failed", code: "internal" }],
])("the entry of a run that ended by %s says how", async (error, outcome) => {
  const { trail, audit, host, run } = open();
  trail.release();
  const whole = audited(audit, run, async ({ call }) => {
    host.changed.add(await call("dfs.write"));
    throw error;
  });
  await expect(whole).rejects.toBe(error);
  expect(trail.records.at(-1)).toMatchObject(outcome);
});

test("a host call does not go on beyond so many unwritten entries", async () => {
  const { trail, audit, host, run } = open();
  let recorded = 0;
  const many = async (): Promise<string> => {
    for (; recorded < 2 * AUDIT_RUN_ENTRIES_WAITING_MAX; recorded += 1)
      await entryWritten(host.principal, audit.record(entry(String(recorded))));
    return "done";
  };
  const whole = audited(audit, { ...run, host: { ...run.host, call: many } }, ({ call }) => call("many"));
  await turns();
  expect(recorded).toBe(AUDIT_RUN_ENTRIES_WAITING_MAX);
  trail.release();
  expect([await whole, trail.records.length]).toEqual(["done", 2 * AUDIT_RUN_ENTRIES_WAITING_MAX]);
});

test("work that a host call began and that goes on after it waits for its own entries", async () => {
  const { trail, audit, done, host, run } = open();
  let goOn = (): void => undefined;
  const answered = new Promise<void>((resolve) => (goOn = resolve));
  let background: Promise<unknown> = Promise.resolve();
  const call = (name: string): Promise<string> => {
    background = answered
      .then(() => entryWritten(host.principal, audit.record(entry("later"))))
      .then(() => done.push("later is written"));
    return Promise.resolve(name);
  };
  await audited(audit, { ...run, host: { ...run.host, call } }, ({ call: asked }) => asked("one"));
  goOn();
  await turns();
  expect(done).toEqual([]);
  trail.release();
  await background;
  expect([done, actions(trail)]).toEqual([["later is written"], ["later"]]);
});

test("a copy of the principal waits for its own entries", async () => {
  const { trail, audit, done, host, run } = open();
  const call = async (name: string): Promise<string> => {
    await entryWritten({ ...host.principal }, audit.record(entry(name)));
    done.push("the copy goes on");
    return name;
  };
  const whole = audited(audit, { ...run, host: { ...host, call } }, (recorded) => recorded.call("one"));
  await turns();
  expect(done).toEqual([]);
  trail.release();
  expect([await whole, done]).toEqual(["one", ["the copy goes on"]]);
});
