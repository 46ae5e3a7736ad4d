import { expect, test } from "vitest";
import { keysUnder } from "../../../../test/helpers/engines/keys.ts";
import { useFileControllers } from "../../../../test/helpers/areas/file-controllers.ts";
import type { FileController } from "../../../../test/helpers/areas/files.ts";
import { onCluster, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../../test/helpers/time/times.ts";

/** A version that was pushed very often, and a path with very many versions: small in every run, large in the soak. */

const admin = testPrincipal();
const AGED = TIMES > 1 ? (onCluster ? 100 : 10_000) : 30;
const PAGE = TIMES > 1 ? 50 : 10;

let engine: TestEngine;
let one: FileController;
useFileControllers((opened) => ({ engine, one } = opened));

const write = (path: string, text: string) => one.files.write(admin, one.user(path), { text });
const push = (path: string, version: string) => one.files.versions.push(admin, one.user(path), version);

test("a version pushed very often holds the last tree, and keeps no content of earlier ones", async () => {
  const digests: string[] = [];
  await write("/often/same", "same");
  for (let round = 0; round < AGED; round++) {
    await write("/often/a", `round ${round}`);
    expect(await push("/often", "latest")).toBe(round === 0 ? 2 : 1);
    if (round % 10 === 0) digests.push((await one.files.read(admin, "/often/a")).digest);
  }
  await write("/often/a", "after");
  const { blobs } = await engine.tenant("matrix");
  await blobs.sweep(0);
  for (const digest of digests) expect(await blobs.stat(digest)).toBeUndefined();
  const keys = await keysUnder(engine, "files/");
  expect(keys.filter((key) => !key.startsWith("files/sequence/")).length).toBe(3);
  await one.files.versions.pull(admin, one.user("/often"), "latest");
  expect((await one.files.read(admin, "/often/a")).text).toBe(`round ${AGED - 1}`);
});

test("of very many versions each is listed once, restored and deleted", async () => {
  for (let round = 0; round < AGED; round++) {
    await write("/many/a", `version ${round}`);
    await push("/many", `v${round}`);
  }
  const found: string[] = [];
  let after: string | undefined;
  do {
    const page = await one.files.versions.list(admin, one.user("/many"), { limit: PAGE, after });
    found.push(...page.versions.map(({ name }) => name));
    after = page.next;
  } while (after !== undefined);
  expect(new Set(found).size).toBe(AGED);
  expect(found).toHaveLength(AGED);
  for (const round of [0, Math.floor(AGED / 2)]) {
    await one.files.versions.pull(admin, one.user("/many"), `v${round}`);
    expect((await one.files.read(admin, "/many/a")).text).toBe(`version ${round}`);
    await one.files.versions.remove(admin, one.user("/many"), `v${round}`);
  }
  expect((await keysUnder(engine, "files/versions/")).length).toBe(AGED - 2 + 1);
});
