import { afterAll, beforeAll, expect, test } from "vitest";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { ForgetfulFiles } from "../../../test/helpers/engines/forgetful-files.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { AGED_CHANGES } from "../../../test/helpers/time/times.ts";
import { ObjectService } from "../objects/index.ts";
import { AnchorFile } from "./anchor-file.ts";
import { Anchoring } from "./anchoring.ts";
import { hashOf, type AuditRecord } from "./chain.ts";
import { HeadStore } from "./head-store.ts";
import { AuditService } from "./service.ts";
import { AUDIT_CLASS, StoredTrail } from "./store.ts";
import { visibleObjects } from "../query/index.ts";

/** An attacker with the store, and even with the key, against a trail of two controllers that share an anchor file. */

const ENTRIES = onCluster ? 500 : AGED_CHANGES;
const ANCHORS = "/outside/anchors";

let engine: TestEngine;
let objects: ObjectService;
let trail: StoredTrail;
const files = new ForgetfulFiles(1).boot();
const auditor = testPrincipal();

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  objects.registerSystemClass(AUDIT_CLASS);
  const ospaceOf = (tenant: string) => Promise.resolve(`/${tenant}`);
  trail = new StoredTrail({ clock: realClock, stores: engine, objects, ospaceOf });
});
afterAll(async () => {
  await objects.close();
  await engine.close();
});

function controller(seed: number) {
  const runtime = { ...testRuntime(realClock) };
  const bytes = (count: number) => Uint8Array.from({ length: count }, () => seed);
  const random = { next: () => 0.5, bytes };
  const anchoring = new Anchoring({ runtime, file: new AnchorFile(ANCHORS, files) });
  const heads = new HeadStore({ stores: engine, keys: TEST_SECRETS, random });
  const audit = new AuditService({ runtime: { ...runtime, random }, trail, keys: TEST_SECRETS, anchoring, heads });
  return { audit, anchoring };
}

const entryOf = (action: string) => ({
  tenant: "matrix",
  user: "u",
  permission: "hosts:write",
  action,
  object: "web-1",
  outcome: "ok" as const,
  code: "ok",
  remote: "r",
  traceparent: "t",
});

async function write(audit: AuditService, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, at) => audit.write(entryOf(String(at)))));
}

interface Lying {
  readonly id: string;
  readonly run: string;
  readonly sequence: number;
}

/** The place of every entry in the store. */
async function lying(): Promise<readonly Lying[]> {
  const found: Lying[] = [];
  for await (const rows of objects.unrestricted.read(auditor, { class: "/matrix/system/audit", subtree: false }))
    for (const { id, values } of rows)
      found.push({ id: id.replace(/^.*:/, ""), run: String(values["run"]), sequence: Number(values["sequence"]) });
  return found;
}

/** Removes entries directly from the store, below every check. */
async function takeOut(entries: readonly Lying[]): Promise<void> {
  const { objects: store } = await engine.tenant("matrix");
  const cid = (await objects.catalog(auditor)).get("/matrix/system/audit")?.cid ?? 0;
  await store.removeRecords(entries.map(({ id }) => ({ cid, id })));
}

/** Adds entries. They get other ids, because removed ids stay removed. */
async function putIn(records: readonly AuditRecord[]): Promise<void> {
  const rows = records.map(({ timeMs, tenant, ...values }, ordinal) => ({
    ...{ values, timeMs, tenant, ordinal },
    identity: `forged ${values.sequence}`,
  }));
  await objects.unrestricted.ingest(auditor, "/matrix/system/audit", rows);
}

test("whatever is done to a long trail is noticed, with the first entry that does not hold", async () => {
  const [one, two] = [controller(1), controller(2)];
  const [runOne, runTwo] = [`h${"01".repeat(12)}`, `h${"02".repeat(12)}`];
  await two.audit.ready("matrix");
  await write(two.audit, 20);
  await write(one.audit, ENTRIES);
  await Promise.all([one.audit.writeHeads(), two.audit.writeHeads()]);
  await Promise.all([one.anchoring.close(), two.anchoring.close()]);
  // Written after the last anchor, as by a controller that is killed before the next one.
  await one.audit.write(entryOf("not anchored"));
  const check = () => two.audit.verifyChain(auditor);
  const whole = { entries: ENTRIES + 22, runs: 2, unkeyed: 0, uncovered: 1, beforeHeads: 0, anchors: 2, problems: [] };
  expect(await check()).toMatchObject(whole);

  const made: AuditRecord[] = [];
  for await (const records of two.audit.export(auditor, {})) made.push(...records.filter(({ run }) => run === runOne));
  made.sort((a, b) => a.sequence - b.sequence);
  const places = await lying();
  const takeOutOf = (wanted: string, isWanted: (sequence: number) => boolean) =>
    takeOut(places.filter(({ run, sequence }) => run === wanted && isWanted(sequence)));

  // With the key, so that every hash and link is valid: only the anchor shows the forgery.
  let previous = made[ENTRIES - 3]?.hash ?? "";
  const anew = made.slice(ENTRIES - 2).map((record) => {
    const body = { ...record, user: "forged", previous };
    previous = hashOf(body, TEST_SECRETS);
    return { ...body, hash: previous };
  });
  await takeOutOf(runOne, (sequence) => sequence > ENTRIES - 2);
  await putIn(anew);
  const rewritten = await check();
  expect(rewritten.first).toMatchObject({ kind: "replaced", run: runOne, sequence: ENTRIES });
  expect(rewritten.problems).toHaveLength(1);

  await takeOutOf(runOne, (sequence) => [100, 101].includes(sequence));
  expect((await check()).first).toMatchObject({ kind: "missing", run: runOne, sequence: 100 });

  await takeOutOf(runOne, (sequence) => sequence === 7);
  await putIn([{ ...(made[6] as AuditRecord), object: "web-2" }]);
  expect((await check()).first).toMatchObject({ kind: "altered", run: runOne, sequence: 7 });

  await takeOutOf(runTwo, (sequence) => sequence > 15);
  expect((await check()).first).toMatchObject({ kind: "truncated", run: runTwo, sequence: 16 });

  await takeOutOf(runTwo, () => true);
  expect(await check()).toMatchObject({
    entries: ENTRIES - 1,
    runs: 1,
    first: { kind: "truncated", run: runTwo, sequence: 1 },
    problems: { length: 4 },
  });

  await takeOutOf(runOne, (sequence) => sequence < 200);
  expect((await check()).problems).toContain(`Entries 1 to 6 of run ${runOne} are missing at its beginning.`);
}, 120_000);
