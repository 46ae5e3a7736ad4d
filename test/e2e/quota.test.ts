import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../helpers/programs/programs.ts";
import { form, Installation } from "./installation.ts";

const CLASS = "/matrix/quota/thing";
const DEADLINE_MS = 30_000;

let odp: Installation;
beforeAll(async () => {
  odp = await Installation.start({ ODP_STORE: "embedded" });
  await odp.mql(`create class ${CLASS} (name varchar, keys(name))`);
  await odp.mql(`insert into ${CLASS} name='kept'`);
});
afterAll(() => odp?.stop());

interface View {
  readonly use?: { readonly objects: number; readonly beyond: readonly string[] };
}
const view = async () => (await odp.ok("GET", "/companys/matrix")) as View;
const inserts = (count: number) => Array.from({ length: count }, (_, at) => `insert into ${CLASS} name='n${at}'`);
const names = async () => (await odp.mql(`select name from ${CLASS}`)).map(({ name }) => name);

test("a tenant beyond its quota is refused batches and imports whole, and sees why in its view", async () => {
  await odp.ok("PUT", "/companys", JSON.stringify({ name: "matrix", config: { max_objects: "3" } }));
  const had = await eventually("the objects are counted", DEADLINE_MS, async () => (await view()).use?.objects);
  const room = 3 - had;
  expect(room).toBeGreaterThan(0);

  const batch = new URLSearchParams({ mql: `begin ${inserts(room + 1).join("; ")} end` });
  expect(await odp.call("POST", "/mxobject/mql", batch)).toMatchObject({
    code: "too_large",
    message: expect.stringMatching(/max_objects/),
  });
  const script = form({}, { "things.mql": Buffer.from(`${inserts(room + 1).join(";\n")};\n`) });
  expect(await odp.call("POST", "/mxobject/import", script)).toMatchObject({ code: "too_large" });
  expect(await names()).toEqual(["kept"]);

  await odp.mql(`begin ${inserts(room).join("; ")} end`);
  expect(await names()).toHaveLength(1 + room);
  expect((await view()).use).toMatchObject({ objects: 3, beyond: [] });
  expect(
    await odp.call("POST", "/mxobject/mql", new URLSearchParams({ mql: `insert into ${CLASS} name='more'` })),
  ).toMatchObject({
    code: "too_large",
  });

  await odp.ok("PUT", "/companys", JSON.stringify({ name: "matrix", config: { max_objects: "" } }));
  await odp.mql(`insert into ${CLASS} name='more'`);
});
