import { expect, test } from "vitest";
import type { Row } from "../../../../common/value.ts";
import { noClasses } from "../../../../test/helpers/objects/memory/objects.ts";
import { MemoryStores } from "../../../../test/helpers/engines/memory/stores.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { CommandOutcome } from "../../hosts/index.ts";
import { JobRuns } from "./runs.ts";
import { JobService } from "../service.ts";
import { NAMED_HOSTS } from "../../../../test/helpers/hosts/named-hosts.ts";

const ADMIN = testPrincipal();
const DAY_MS = 86_400_000;
const OK = { state: "ok", code: 0 } as const;

type Outcome = Pick<CommandOutcome, "state" | "code">;
/** The agent's stored outcome of each command of a run; undefined if it has none. */
type Said = readonly (Outcome | undefined)[];

/** Controllers that share a store, and the job `three` with three commands, which none of them has run yet. */
async function world(said: Said = []) {
  const [stores, clock] = [new MemoryStores(), new TestClock()];
  const jobs = new JobService({ targets: NAMED_HOSTS, stores, runtime: testRuntime(clock), objects: noClasses() });
  await jobs.save(ADMIN, { name: "three", dir: "", exec: ["one", "two", "three"], host: ["h1"] });
  const written: Row[] = [];
  const asked: string[] = [];
  const insert = (_principal: unknown, path: string, rows: readonly Row[]) =>
    Promise.resolve(rows.map((row) => (path.endsWith("/jobrun") ? `id${written.push(row)}` : "")));
  const told = (host: string, outcome: Outcome) => ({ host, message: "", startedMs: 1, endedMs: 2, ...outcome });
  const silence = new Promise<never>(() => {});
  const controller = (own: string, { at = clock, result = silence }: Controller = {}) =>
    new JobRuns({
      targets: NAMED_HOSTS,
      secrets: TEST_SECRETS,
      stores,
      jobs,
      runtime: testRuntime(at),
      hosts: { dispatch: async (_principal, host) => told(host, await result) },
      objects: {
        catalog: (principal) => noClasses().catalog(principal),
        visible: noClasses().visible,
        unrestricted: { insert, get: () => Promise.resolve([]) },
      },
      stored: {
        outcome: ({ host }, commandId) => {
          const outcome = said[asked.push(commandId) - 1];
          return Promise.resolve(outcome && told(host, outcome));
        },
      },
      notifications: { publish: () => undefined },
      controllers: { own, has: (id) => id === own },
    });
  return { controller, written, asked, openKeys: () => stores.keys("matrix", "jobs/open/") };
}

interface Controller {
  readonly at?: TestClock;
  /** The outcome of each command; absent: it never ends. */
  readonly result?: Promise<Outcome>;
}

test.each<[what: string, said: Said, status: string, code: number | undefined, asked: readonly string[]]>([
  ["all of its commands ended well", [OK, OK, OK], "ok", 0, ["0", "1", "2"]],
  ["one failed, and nothing is asked of those behind it", [OK, { state: "failed", code: 3 }], "failed", 3, ["0", "1"]],
  ["nothing is known of one, whatever became of those before it", [OK, undefined], "expired", undefined, ["0", "1"]],
  ["nothing is known at all", [], "expired", undefined, ["0"]],
])("a run whose controller went away, and of which %s", async (_what, said, status, code, asked) => {
  const all = await world(said);
  const { runId } = await all.controller("gone").execute(ADMIN, "three", {});
  const tomorrow = new TestClock(new TestClock().nowMs() + DAY_MS);
  await all.controller("next", { at: tomorrow }).maintain("matrix");
  const end = all.written.at(-1);
  expect([end?.["status"], end?.["code"]]).toEqual([status, code]);
  expect(all.asked.map((id) => id.replace(`job/${runId}/h1/`, ""))).toEqual(asked);
  expect(all.openKeys()).toEqual([]);
});

test("a run that is worked on here is ended by nothing but its work, however far the clock is set ahead", async () => {
  const all = await world();
  let end: (outcome: Outcome) => void = () => undefined;
  const at = new WallClock();
  const runs = all.controller("here", { at, result: new Promise((resolve) => (end = resolve)) });
  const { finished } = await runs.execute(ADMIN, "three", {});
  at.aheadMs = DAY_MS;
  await runs.maintain("matrix");
  expect(all.written.map((row) => row["status"])).toEqual(["running"]);
  end(OK);
  expect(await finished).toMatchObject([{ host: "h1", state: "ok" }]);
  await runs.maintain("matrix");
  expect(all.written.map((row) => row["status"])).toEqual(["running", "ok"]);
});

/** A clock whose wall time may be set ahead; its monotonic time stands still. */
class WallClock extends TestClock {
  aheadMs = 0;

  override nowMs(): number {
    return super.nowMs() + this.aheadMs;
  }
}
