import { expect, test } from "vitest";
import { INGEST_STREAMS_KNOWN_MAX } from "../../../common/limits.ts";
import { EVERYTHING_SENT } from "../../../test/helpers/ingest.ts";
import { MemoryStores } from "../../../test/helpers/memory-stores.ts";
import { testRuntime } from "../../../test/helpers/runtime.ts";
import { wrappedKv } from "../../../test/helpers/wrapped-kv.ts";
import { IngestService } from "./index.ts";

const sourceOf = (at: number) => ({
  tenant: "matrix",
  host: `h${at}`,
  streamId: `stream-${String(at).padStart(5, "0")}`,
});

test("so many streams are held and no more: the one claimed longest ago goes, and is claimed again when it sends", async () => {
  const stores = new MemoryStores();
  const claimed: string[] = [];
  const { kv, ...rest } = await stores.tenant("matrix");
  const counted = wrappedKv(kv, {
    put: (...call) => {
      if (call[0].startsWith("ingest/")) claimed.push(call[0].replace("ingest/", ""));
      return kv.put(...call);
    },
  });
  const unused = undefined as never;
  const service = new IngestService({
    stores: { system: () => stores.system(), tenant: () => Promise.resolve({ ...rest, kv: counted }) },
    runtime: testRuntime(),
    rules: unused,
    records: unused,
    commands: unused,
    sent: EVERYTHING_SENT,
    ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
  });
  for (let at = 0; at < INGEST_STREAMS_KNOWN_MAX; at++) await service.acknowledged(sourceOf(at));
  await service.acknowledged(sourceOf(1));
  claimed.splice(0);
  for (const at of [0, 1, 2]) expect(await service.accept(sourceOf(at), [])).toBe(0);
  expect(claimed, "all held").toEqual([]);
  await service.acknowledged(sourceOf(INGEST_STREAMS_KNOWN_MAX));
  claimed.splice(0);
  for (const at of [1, 2, 0]) expect(await service.accept(sourceOf(at), [])).toBe(0);
  expect(claimed, "gone for the last one").toEqual([sourceOf(0).streamId]);
});
