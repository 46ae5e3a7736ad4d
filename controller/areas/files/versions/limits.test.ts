import { expect, test } from "vitest";
import { mapLimited } from "../../../../common/concurrency.ts";
import { FILE_SNAPSHOTS_MAX, FILE_VERSIONS_MAX } from "../../../../common/limits.ts";
import { keysUnder } from "../../../../test/helpers/engines/keys.ts";
import { useFileControllers } from "../../../../test/helpers/areas/file-controllers.ts";
import type { FileController } from "../../../../test/helpers/areas/files.ts";
import type { TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { encodeJson } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";

/** Work beyond a limit is refused, and never waits for room: waiting work would prevent every deletion of the path. */

const admin = testPrincipal();
let engine: TestEngine;
let one: FileController;
useFileControllers((opened) => ({ engine, one } = opened));

const kv = async (): Promise<KvStore> => (await engine.tenant("matrix")).kv;
const open = () => keysUnder(engine, "files/open/");

test("a path that has all its versions gets no further one, until one is deleted", async () => {
  const place = one.user("/full");
  const push = (version: string, text: string) =>
    one.files.write(admin, one.user("/full/a"), { text }).then(() => one.files.versions.push(admin, place, version));
  await push("1", "first");
  const [count = ""] = await keysUnder(engine, "files/version-counts/");
  await (await kv()).put(count, encodeJson(FILE_VERSIONS_MAX));
  await expect(push("2", "second")).rejects.toMatchObject({ code: "too_large" });
  expect(await open()).toEqual([]);
  expect(await push("1", "replaced")).toBe(1);
  await one.files.versions.remove(admin, place, "1");
  expect(await push("2", "second")).toBe(1);
});

test("a tenant that has all its snapshots gets no further one, until one is removed", async () => {
  const place = one.user("/published");
  await one.files.write(admin, one.user("/published/a"), { text: "a" });
  const store = await kv();
  const tree = { space: "user", fullname: "/elsewhere", user: "x", timeMs: 0, list: "", entries: 0, bytes: 0 };
  const numbers = Array.from({ length: FILE_SNAPSHOTS_MAX }, (_, at) => at);
  await mapLimited(numbers, 64, (at) => store.put(`files/snapshots/${at}`, encodeJson(tree)));
  await expect(one.files.versions.snapshot(admin, place)).rejects.toMatchObject({ code: "too_large" });
  expect(await open()).toEqual([]);
  await (await kv()).delete("files/snapshots/0");
  await one.files.versions.snapshot(admin, place);
});
