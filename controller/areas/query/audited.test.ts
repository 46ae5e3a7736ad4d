import { expect, test } from "vitest";
import { openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { audited, type AuditEntry } from "../audit/index.ts";
import { ObjectService } from "../objects/index.ts";
import { QueryService } from "./service.ts";
import { visibleObjects } from "./index.ts";

test("a statement of a script is answered before its audit entry is written, and the script ends after it", async () => {
  await using engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  const told: string[] = [];
  let written = (): void => undefined;
  let begun = (): void => undefined;
  const recording = new Promise<void>((resolve) => (begun = resolve));
  const record = ({ action }: AuditEntry): Promise<void> => {
    told.push(action);
    begun();
    return new Promise((resolve) => (written = resolve));
  };
  const query = new QueryService({ objects, runtime, audit: { ready: () => Promise.resolve(), record } });
  const principal = testPrincipal();
  const call = (text: string) => query.run(principal, text);
  const run = { principal, kind: "SCRIPT", object: "/a.js", permission: "scripts:read" } as const;
  const host = { principal, changed: new Set<string>(), call };
  try {
    const whole = audited({ record }, { ...run, host }, async (recorded) => {
      await recorded.call("create class /matrix/cmdb/host (n int)");
      told.push("answered");
    }).then(() => told.push("ended"));
    await recording;
    await new Promise((resolve) => setImmediate(resolve));
    expect(told.slice(1)).toEqual(["answered"]);
    written();
    await whole;
    expect(told.slice(1)).toEqual(["answered", "ended"]);
  } finally {
    await objects.close();
  }
});
