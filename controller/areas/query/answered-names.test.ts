import { beforeAll, describe, expect, test } from "vitest";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { MemoryObjects } from "../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { QueryService } from "./index.ts";

const admin = testPrincipal();
let query: QueryService;

beforeAll(async () => {
  query = new QueryService({ objects: new MemoryObjects({ nowMs: () => 0 }), runtime: { clock: realClock } });
  await query.rows(admin, "create class /matrix/one (n int, keys(n)); create class /matrix/other (m int, keys(m))");
  await query.rows(admin, "insert into /matrix/one n = 2; insert into /matrix/one n = 1");
  await query.rows(admin, "insert into /matrix/other m = 3");
});

async function answered(statement: string): Promise<readonly (readonly [string, unknown][])[]> {
  return (await query.rows(admin, statement)).map((row) => Object.entries(row));
}

describe.each(["__proto__", "constructor", "toString"])("a column of an answer that is called %s", (name) => {
  const inner = `select n as ${name} from /matrix/one`;

  test("has its values, also through * of a SELECT around it", async () => {
    const rows = [[[name, 1]], [[name, 2]]];
    expect(await answered(`${inner} order by n`)).toEqual(rows);
    expect(await answered(`select * from (${inner}) x order by ${name}`)).toEqual(rows);
  });

  test("is null for rows of a UNION that have none, which come before the others", async () => {
    expect(await answered(`${inner} union all select m from /matrix/other order by ${name}`)).toEqual([
      [["m", 3]],
      [[name, 1]],
      [[name, 2]],
    ]);
  });
});
