import { expect, test } from "vitest";
import { CONFIG_HISTORY_MAX_ENTRIES, CONFIG_TREE_MAX_ENTRIES, KV_PAGE_MAX_ENTRIES } from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { configWorld } from "../../../test/helpers/areas/config.ts";
import { onCluster, openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { MemoryDatabase } from "../../../test/helpers/engines/memory/engine.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import { TIMES } from "../../../test/helpers/time/times.ts";
import { mapLimited } from "../../../common/concurrency.ts";
import type { Stores } from "../../store/engine.ts";
import { encodeJson } from "../../store/format.ts";
import { fileOf } from "./file.ts";
import { ConfigHistory } from "./history.ts";
import { ConfigService } from "./service.ts";

const admin = testPrincipal();
const PUTS_PER_TXN = 100;
/** More than a tree may have. */
const MANY = !onCluster && TIMES > 1 ? 100_000 : CONFIG_TREE_MAX_ENTRIES + 1_000;

/** Changes of one key. */
const AGE = TIMES > 1 ? 10_000 : 2_000;

test("a key that was set thousands of times takes the place of its bounded history", async () => {
  const database = new MemoryDatabase(realClock);
  database.create("matrix");
  const engine = database.engine({ clock: realClock });
  await using world = configWorld(engine);
  const config = new ConfigService(world);
  const key = "/matrix/aged";
  for (let at = 1; at <= AGE; at += 1) await config.set(admin, { key, value: `v${at}` });
  const { kv } = await engine.tenant("matrix");
  expect((await kv.list("config")).entries.length).toBe(CONFIG_HISTORY_MAX_ENTRIES + 1);
  const versions = await new ConfigHistory(world).history(admin, key);
  expect([versions[0]?.version, versions.at(-1)?.version]).toEqual([AGE, AGE + 1 - CONFIG_HISTORY_MAX_ENTRIES]);
  await engine.close();
});

test(`of ${MANY} keys a list and an export hold no more than a page`, { timeout: 240_000 }, async () => {
  await using engine = await openTestEngine();
  const { kv } = await engine.tenant("matrix");
  const starts = Array.from({ length: MANY / PUTS_PER_TXN }, (_, at) => at * PUTS_PER_TXN);
  const keyOf = (at: number): string => `/matrix/many/${String(at).padStart(6, "0")}`;
  await mapLimited(starts, onCluster ? 2 : 8, (start) =>
    kv.txn({
      if: [],
      then: Array.from({ length: PUTS_PER_TXN }, (_, at) => ({
        kind: "put",
        key: `config${keyOf(start + at)}`,
        value: encodeJson({ n: 1, id: "", by: "a", atMs: 1, text: String(start + at) }),
      })),
    }),
  );
  const pages: number[] = [];
  const counting: Stores = {
    system: () => engine.system(),
    async tenant(name) {
      const store = await engine.tenant(name);
      const list: typeof store.kv.list = async (prefix, options) => {
        const page = await store.kv.list(prefix, options);
        pages.push(page.entries.length);
        return page;
      };
      return { ...store, kv: wrappedKv(store.kv, { list }) };
    },
  };
  await using world = configWorld(counting);
  const config = new ConfigService(world);

  let after: string | undefined;
  let listed = 0;
  do {
    const { records, next } = await config.list(admin, { key: "/", limit: KV_PAGE_MAX_ENTRIES, after });
    expect(records.length).toBeLessThanOrEqual(KV_PAGE_MAX_ENTRIES);
    for (const { key } of records) expect(key).toBe(keyOf(listed++));
    after = next;
  } while (after !== undefined);
  expect(listed).toBe(MANY);

  pages.length = 0;
  const signal = new AbortController().signal;
  const file = fileOf(await config.exported(admin, "/matrix/many", signal), { key: "/matrix/many", relative: true });
  for (let taken = 0; taken < KV_PAGE_MAX_ENTRIES * 2; taken += 1) await file.next();
  expect(pages.length).toBeLessThanOrEqual(3);
  expect(Math.max(...pages)).toBeLessThanOrEqual(KV_PAGE_MAX_ENTRIES);
  await file.return(undefined);

  pages.length = 0;
  await expect(config.tree(admin, "/")).rejects.toMatchObject({ code: "too_large" });
  expect(pages.length).toBeLessThanOrEqual(CONFIG_TREE_MAX_ENTRIES / KV_PAGE_MAX_ENTRIES + 1);
});
