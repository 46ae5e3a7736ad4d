import { afterAll, beforeAll, expect, test } from "vitest";
import { pino } from "pino";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import { QueryService, visibleObjects } from "../query/index.ts";
import { publishChanges, wantsChanges } from "./changes.ts";
import { NotificationRights } from "./rights.ts";
import { NotificationHub } from "./service.ts";
import type { Notification } from "./types.ts";

const ADMIN = testPrincipal();
const PATH = "/matrix/raw";
const hub = new NotificationHub({ log: pino({ level: "silent" }) });
let engine: TestEngine;
let objects: ObjectService;

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  objects.unrestricted.onChange(
    (changes) =>
      publishChanges(
        hub,
        changes.map((change) => ({ ...change, announced: true })),
      ),
    (tenant) => wantsChanges(hub, tenant),
  );
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

test("a condition about raw bytes, which frames do not hold, lets no frame of the class through", async () => {
  const query = new QueryService({ objects, runtime: testRuntime(realClock) });
  await query.rows(ADMIN, `create class ${PATH} (owner varchar, note_rawbytes varchar) with kind='record'`);
  const frames: Notification[] = [];
  hub.subscribe(ADMIN, { subject: "datachange" }, (frame) => frames.push(frame));
  const at = { timeMs: realClock.nowMs(), values: { owner: "bob" } };
  await objects.unrestricted.ingest(ADMIN, PATH, [
    { ...at, identity: "whole" },
    { ...at, identity: "malformed", marked: { marks: ["malformed"], rawBytes: "/w==" } },
  ]);
  await query.rows(ADMIN, `delete from ${PATH}`);
  expect(frames).toHaveLength(4);
  expect(await actionsFor("_rawbytes is null or _RawBytes = ''", frames)).toEqual([]);
  expect(await actionsFor("marks is null", frames)).toEqual(["INSERT", "DELETE"]);
  const all = ["INSERT", "INSERT", "DELETE", "DELETE"];
  expect(await actionsFor("owner='bob' and owner<>'_rawbytes'", frames), "only a text says so").toEqual(all);
  expect(await actionsFor("note_rawbytes is null", frames), "another column").toEqual(all);
});

/** Actions of the frames that a reader with the row condition gets. */
async function actionsFor(where: string, frames: readonly Notification[]): Promise<readonly unknown[]> {
  const rights = new NotificationRights({ objects });
  const reader = { ...ADMIN, data: [{ class: PATH, access: "read", where }] } as const;
  const seen: unknown[] = [];
  for (const frame of frames) {
    const visible = await rights.visible(reader, frame);
    if (visible) seen.push((JSON.parse(visible.msg) as { action: unknown }).action);
  }
  return seen;
}
