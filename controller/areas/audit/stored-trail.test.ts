import { expect, test } from "vitest";
import { openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import { QueryService, visibleObjects } from "../query/index.ts";
import { AuditService } from "./service.ts";
import { AUDIT_CLASS, StoredTrail } from "./store.ts";
import { entry } from "../../../test/helpers/areas/audit-entries.ts";

test("entries of a tenant are objects that anyone may query and nobody may change", async () => {
  await using engine = await openTestEngine();
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  objects.registerSystemClass(AUDIT_CLASS);
  const trail = new StoredTrail({
    clock: realClock,
    stores: engine,
    objects,
    ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
  });
  const audit = new AuditService({ runtime: testRuntime(realClock), trail, keys: TEST_SECRETS });
  await audit.ready("matrix");
  await Promise.all(Array.from({ length: 1_200 }, (_, at) => audit.write(entry({ action: String(at) }))));
  await audit.write(entry({ tenant: "second" }));
  expect(await audit.verifyChain(testPrincipal())).toMatchObject({
    entries: 1_201,
    runs: 1,
    unkeyed: 0,
    anchors: 0,
    problems: [],
  });
  expect(await audit.verifyChain(testPrincipal("administrator", "second"))).toMatchObject({
    entries: 1,
    runs: 1,
    unkeyed: 0,
    anchors: 0,
    problems: [],
  });
  const read: number[] = [];
  for await (const records of trail.read("matrix")) read.push(...records.map(({ sequence }) => sequence));
  expect(read, "the newest first, also of one millisecond").toEqual(
    Array.from({ length: 1_201 }, (_, at) => 1_201 - at),
  );
  const query = new QueryService({ objects, runtime: testRuntime(realClock) });
  const found = await query.rows(
    testPrincipal("viewer"),
    "select user, action, outcome from /matrix/system/audit where action='audit opened'",
  );
  expect(found).toEqual([expect.objectContaining({ user: "system", action: "audit opened", outcome: "ok" })]);
  for (const change of [
    "insert into /matrix/system/audit user='forged'",
    "delete from /matrix/system/audit",
    "update /matrix/system/audit set user='forged'",
  ]) {
    await expect(query.rows(testPrincipal(), change)).rejects.toThrow();
  }
  expect(await audit.verifyChain(testPrincipal())).toMatchObject({ entries: 1_201, problems: [] });
  await objects.close();
});

test("no text that a caller gives keeps an entry, or those of others, from being written", async () => {
  await using engine = await openTestEngine();
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  objects.registerSystemClass(AUDIT_CLASS);
  const ospaceOf = (tenant: string) => Promise.resolve(`/${tenant}`);
  const trail = new StoredTrail({ clock: realClock, stores: engine, objects, ospaceOf });
  const audit = new AuditService({ runtime: testRuntime(realClock), trail, keys: TEST_SECRETS });
  const texts = ["a\ud800b😀", "\udc00", "a\u0000b", "x".repeat(3_000_000)];
  const entries = texts.map((text) => entry({ user: text, action: `MQL createEdgeType ${text}`, object: text }));
  await Promise.all([entry({ action: "of another" }), ...entries].map((each) => audit.write(each)));
  const { entries: kept, problems: found } = await audit.verifyChain(testPrincipal());
  expect({ kept, found }).toEqual({ kept: 5, found: [] });
  const query = new QueryService({ objects, runtime: testRuntime(realClock) });
  const told = await query.rows(testPrincipal(), "select action from /matrix/system/audit where object like 'a%'");
  expect(told.map(({ action }) => action).sort()).toEqual([
    "MQL createEdgeType a\u0000b",
    "MQL createEdgeType a\\ud800b😀",
  ]);
  await objects.close();
});

test("what belongs to no tenant lies in the system store, page after page", async () => {
  await using engine = await openTestEngine();
  const clock = new TestClock(Date.now());
  const nobody = (): never => {
    throw new Error("no tenant is asked");
  };
  const trail = new StoredTrail({ clock, stores: engine, objects: undefined as never, ospaceOf: nobody });
  const audit = new AuditService({ runtime: testRuntime(clock), trail, keys: TEST_SECRETS });
  await Promise.all(Array.from({ length: 1_500 }, (_, at) => audit.write(entry({ tenant: "", action: String(at) }))));
  expect(await audit.verifyChain(testPrincipal("administrator", ""))).toMatchObject({
    entries: 1_500,
    runs: 1,
    unkeyed: 0,
    anchors: 0,
    problems: [],
  });
});
