import { expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { MemoryObjects } from "../../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { QueryService } from "../index.ts";

const admin = testPrincipal();
/** So many that the first ones are sorted out before the last ones come. */
const ROWS = 3_000;

test("different rows are different among all, also among those that a small limit leaves out", async () => {
  const objects = new MemoryObjects({ nowMs: () => 0 });
  const query = new QueryService({ objects, runtime: { clock: realClock } });
  await query.rows(admin, "create class /matrix/box (host varchar, size int)");
  const plain = Array.from({ length: ROWS }, (_, n) => ({ host: `h${n}`, size: n }));
  // Met first where it is far behind: the second one, which would be the first of all, is the same row once more.
  await objects.unrestricted.insert(admin, "/matrix/box", [
    ...plain,
    { host: "twice", size: ROWS },
    { host: "twice", size: -1 },
  ]);
  const text = "select distinct host from /matrix/box order by size";
  const all = await query.rows(admin, `${text} limit -1`);
  expect(all).toHaveLength(ROWS + 1);
  expect(await query.rows(admin, `${text} limit 2`)).toEqual(all.slice(0, 2));
});
