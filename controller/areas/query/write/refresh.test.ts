import { expect, test } from "vitest";
import { MemoryObjects } from "../../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { ObjectRef } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { QueryService } from "../index.ts";

const admin = testPrincipal();

class NotedRefreshes extends MemoryObjects {
  readonly refreshed: ObjectRef[] = [];

  override refresh(principal: Principal, refs: readonly ObjectRef[]): Promise<number> {
    this.refreshed.push(...refs);
    return super.refresh(principal, refs);
  }
}

test("UPDATE … REFRESH has the index entries written of all it found, and no other update has", async () => {
  const objects = new NotedRefreshes({ nowMs: () => 1 });
  const query = new QueryService({ objects, runtime: testRuntime() });
  await query.run(
    admin,
    "create class /matrix/box (host varchar, size int, keys(host)); create class /matrix/box/rack (slots int)",
  );
  await query.run(
    admin,
    "insert into /matrix/box (host, size) values ('a', 1), ('b', 9); insert into /matrix/box/rack host='r', size=2",
  );
  await query.run(admin, "update /matrix/box/ set size = 3 where size < 3");
  expect(objects.refreshed).toEqual([]);
  await query.run(admin, "update /matrix/box/ set size = 4 where size = 3 refresh");
  expect(objects.refreshed).toEqual([
    { id: "box:a", class: "/matrix/box" },
    { id: "rack:r", class: "/matrix/box/rack" },
  ]);
});
