import { expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { REPAIR_DUE_MS, REPAIR_LOOK_EVERY_MS, REPAIR_OF_DERIVED_DUE_MS } from "../../../common/limits.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { TableRepair } from "../../store/scrub.ts";
import { RepairService } from "./repairs.ts";
import { repairRoutes } from "./routes.ts";

const HOUR_MS = 3_600_000;

/** Stores whose repair history is `told()` at the time of each call. */
function repaired(engine: TestEngine, told: () => readonly TableRepair[]): Stores {
  return {
    system: () => engine.system(),
    tenant: async (name) => {
      const store = await engine.tenant(name);
      const scrub = Object.create(store.scrub, {
        repairs: { value: () => Promise.resolve().then(told) },
      }) as typeof store.scrub;
      return { ...store, scrub };
    },
  };
}

test("with one copy of everything there is nothing to repair", async () => {
  await using engine = await openTestEngine();
  const repairs = new RepairService({ stores: engine, runtime: testRuntime(), bornMs: () => Promise.resolve(0) });
  await using http = await openTestHttp({ endpoints: repairRoutes(repairs) });
  const answer = await http.call(await http.signIn("viewer"), { url: "/cluster/repairs" });
  expect(answer).toEqual({ status: "ok", message: { tables: [], due: false } });
  await repairs.maintain("matrix");
  expect(repairs.overdueMs).toBe(0);
  const nobody = { ...testPrincipal(), grants: [] };
  await expect(repairs.status(nobody)).rejects.toMatchObject({ code: "denied" });
});

test("tables by which objects are found are due after three days, others after seven, never repaired ones since the tenant was made", async () => {
  await using engine = await openTestEngine();
  const clock = new TestClock();
  const madeMs = clock.nowMs();
  let tables: readonly TableRepair[] = [
    { table: "present", isDerived: false },
    { table: "postings", isDerived: true },
  ];
  const repairs = new RepairService({
    stores: repaired(engine, () => tables),
    runtime: testRuntime(clock),
    bornMs: () => Promise.resolve(madeMs),
  });
  const due = async (): Promise<readonly string[]> =>
    (await repairs.status(testPrincipal())).filter((one) => one.due).map(({ table }) => table);
  expect(await due()).toEqual([]);
  clock.advance(REPAIR_OF_DERIVED_DUE_MS + HOUR_MS);
  expect(await due()).toEqual(["postings"]);
  await repairs.maintain("matrix");
  expect(repairs.overdueMs).toBe(HOUR_MS);

  const repairedMs = clock.nowMs();
  tables = tables.map((one) => ({ ...one, repairedMs }));
  expect(await due()).toEqual([]);
  // Maintenance looks only once per `REPAIR_LOOK_EVERY_MS`.
  await repairs.maintain("matrix");
  expect(repairs.overdueMs).toBe(HOUR_MS);
  clock.advance(REPAIR_LOOK_EVERY_MS);
  await repairs.maintain("matrix");
  expect(repairs.overdueMs).toBe(0);

  clock.advance(REPAIR_DUE_MS);
  expect(await due()).toEqual(["present", "postings"]);
  await repairs.maintain("matrix");
  expect(repairs.overdueMs).toBe(REPAIR_LOOK_EVERY_MS + REPAIR_DUE_MS - REPAIR_OF_DERIVED_DUE_MS);
  repairs.leave("matrix");
  expect(repairs.overdueMs).toBe(0);
});

test("a history that cannot be read is told to who asks, and holds up no maintenance", async () => {
  await using engine = await openTestEngine();
  let asked = 0;
  const away = (): never => {
    asked += 1;
    throw new AppError("unavailable", "Cassandra's history of repairs cannot be read: no right");
  };
  const stores = repaired(engine, away);
  const repairs = new RepairService({ stores, runtime: testRuntime(), bornMs: () => Promise.resolve(0) });
  await expect(repairs.status(testPrincipal())).rejects.toMatchObject({ code: "unavailable" });
  for (let round = 0; round < 3; round += 1) await repairs.maintain("matrix");
  expect([asked, repairs.overdueMs]).toEqual([2, 0]);
});
