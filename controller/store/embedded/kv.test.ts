import { expect, test } from "vitest";
import { openTestEngine } from "../../../test/helpers/engine.ts";

test("quick", async () => {
  await using engine = await openTestEngine();
  const { kv } = await engine.tenant("matrix");
  const r = await kv.put("a/1", new Uint8Array([1]), { ifRevision: 0 });
  expect(r.ok).toBe(true);
  expect((await kv.put("a/1", new Uint8Array([1]), { ifRevision: 0 })).ok).toBe(false);
  expect((await kv.get("a/1"))?.value).toEqual(new Uint8Array([1]));
  const abort = new AbortController();
  const got: string[] = [];
  const lease = await kv.lease(5000);
  await kv.put("a/2", new Uint8Array(3), { lease: lease.id });
  await lease.revoke();
  expect(lease.lost.aborted).toBe(true);
  for await (const events of kv.watch("a/", { sinceRevision: 0, signal: abort.signal })) {
    for (const e of events) got.push(e.kind + (e.kind === "put" ? e.entry.key : e.key));
    if (got.length >= 3) abort.abort();
  }
  expect(got).toEqual(["puta/1", "puta/2", "deletea/2"]);
  expect((await kv.list("a/")).entries.length).toBe(1);
});
