import { expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { MemoryObjects } from "../../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { QueryService } from "../index.ts";

const admin = testPrincipal();
const ruled = {
  ...admin,
  user: "ruled",
  data: [{ class: "/matrix", access: "write" as const, where: "owner != 'other'" }],
};

test.each(["manu", "md5"])(
  "who has a row condition overwrites only what it sees, found by its id and not by a scan: key=%s",
  async (mode) => {
    const objects = new MemoryObjects({ nowMs: () => 0 });
    const query = new QueryService({ objects, runtime: { clock: realClock } });
    await query.run(
      admin,
      `create class /matrix/box (code varchar, part int, owner varchar, keys(code, part)) with key=${mode}`,
    );
    await query.run(admin, "insert into /matrix/box (code, part, owner) values ('a', 1, 'other'), ('b', 1, 'me')");
    await expect(query.run(ruled, "insert into /matrix/box code='a', part='1', owner='me'")).rejects.toMatchObject({
      code: "denied",
    });
    await expect(query.run(ruled, "insert into /matrix/box code='c', part=1, owner='other'")).rejects.toMatchObject({
      code: "denied",
    });
    await expect(
      query.run(ruled, "insert into /matrix/box (code, part, owner) values ('d', 1, 'me'), ('a', 1, 'me')"),
    ).rejects.toMatchObject({ code: "denied" });
    await query.run(ruled, "insert into /matrix/box code='b', part=1, owner='us'");
    expect(objects.reads).toEqual([]);
    expect(await query.rows(admin, "select code, owner from /matrix/box order by code")).toEqual([
      { code: "a", owner: "other" },
      { code: "b", owner: "us" },
    ]);
  },
);

test("a row condition on the id holds for ids that key columns make", async () => {
  const query = new QueryService({ objects: new MemoryObjects({ nowMs: () => 0 }), runtime: { clock: realClock } });
  await query.run(admin, "create class /matrix/box (code varchar, keys(code))");
  const some = { ...admin, data: [{ class: "/matrix", access: "write" as const, where: "id != 'box:b'" }] };
  await query.run(some, "insert into /matrix/box code='a'");
  await expect(query.run(some, "insert into /matrix/box code='b'")).rejects.toMatchObject({ code: "denied" });
  expect(await query.rows(admin, "select id from /matrix/box")).toEqual([{ id: "box:a" }]);
});
