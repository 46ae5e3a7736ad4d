import { expect, test } from "vitest";
import { columnsOnly } from "./reading.ts";

test.each([
  [
    "select a, b as c from /x where d = ? order by a limit -1",
    "SELECT a, b AS c FROM /x WHERE d = ? ORDER BY a LIMIT 0",
  ],
  ["select count(*) from /x group by a offset 3", "SELECT count(*) FROM /x GROUP BY a LIMIT 0 OFFSET 3"],
  ["select a from /x limit ?", undefined],
  ["select a from /x; select b from /x", undefined],
  ["select a from /x union select a from /y", undefined],
  ["delete from /x", undefined],
  ["selct", undefined],
])("the columns of %s are told without its rows by %s", async (mql, columns) => {
  expect(await columnsOnly(mql)).toBe(columns);
});
