import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { openTestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../../objects/index.ts";
import { QueryService } from "../index.ts";
import { visibleObjects } from "../index.ts";

/** Tests that need versions, and an engine that keeps them. */
const admin = testPrincipal();
const runtime = testRuntime(realClock);
const T0 = Date.UTC(2024, 0, 1);

let engine: Awaited<ReturnType<typeof openTestEngine>>;
let objects: ObjectService;
let query: QueryService;

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  query = new QueryService({ objects, runtime });
  await query.rows(
    admin,
    "create edge type holds; create class /matrix/box (host varchar, keys(host)) with version=true; create class /matrix/note (host varchar, keys(host))",
  );
  await objects.unrestricted.insert(
    admin,
    "/matrix/box",
    [{ host: "a" }, { host: "b" }, { host: "c" }, { host: "d" }],
    {
      atMs: T0,
    },
  );
});

afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

interface Lists {
  readonly nodes: readonly { readonly id: string }[];
  readonly edges: readonly { readonly id: string }[];
}

interface Graph extends Lists {
  readonly diff?: { readonly add: Lists; readonly del: Lists };
}

async function graphOf(text: string): Promise<Graph> {
  const [row] = await query.rows(admin, text);
  return row?.graph as unknown as Graph;
}

function ids({ nodes, edges }: Lists): readonly string[] {
  return [...nodes, ...edges].map((one) => one.id).sort();
}

describe("over versions", () => {
  test("AS OF shows the graph of that time, DIFF what has come and gone since", async () => {
    await objects.unrestricted.insert(
      admin,
      "/matrix/box",
      [
        { host: "a", holds: "box:b" },
        { host: "b", holds: "box:c" },
      ],
      { atMs: T0 + 10_000 },
    );
    await query.rows(
      admin,
      "update /matrix/box set holds = 'box:d' where host = 'a'; delete from /matrix/box where host = 'c'",
    );
    expect(ids(await graphOf("match ('box:a','box:b')-[*]->()"))).toEqual([
      "box:a",
      "box:a holds box:d",
      "box:b",
      "box:d",
    ]);
    expect(ids(await graphOf("match ('box:a')-[*]->() as of '2024-01-01 00:00:10'"))).toEqual([
      "box:a",
      "box:a holds box:b",
      "box:b",
      "box:b holds box:c",
      "box:c",
    ]);
    expect(ids(await graphOf("match ('box:a')-[*]->() as of '2024-01-01 00:00:05'"))).toEqual(["box:a"]);
    const { diff } = await graphOf("match ('box:a')-[*]->() diff '2024-01-01 00:00:10'");
    expect(diff && ids(diff.add)).toEqual(["box:a holds box:d", "box:d"]);
    expect(diff && ids(diff.del)).toEqual(["box:a holds box:b", "box:b", "box:b holds box:c", "box:c"]);
  });

  test("a class without versions has no earlier graph", async () => {
    await expect(graphOf("match (:note)-[*]->() as of '2024-01-01'")).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("/matrix/note") as unknown,
    });
    await expect(graphOf("match (:note) diff 'yesterday'")).rejects.toMatchObject({ code: "invalid" });
  });

  test("edges of an object that is removed are gone, and neither its own nor those to it come back with it", async () => {
    await query.rows(admin, "insert into /matrix/note (host, holds) values ('x', 'note:y'), ('y', 'note:x')");
    await query.rows(admin, "delete from /matrix/note where host = 'y'");
    expect(ids(await graphOf("match ('note:x','note:y')-[*]-()"))).toEqual(["note:x"]);
    await query.rows(admin, "insert into /matrix/note host = 'y'");
    expect(ids(await graphOf("match ('note:x','note:y')-[]-()"))).toEqual(["note:x", "note:y"]);
  });
});
