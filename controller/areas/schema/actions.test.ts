import { expect, test } from "vitest";
import { slicesOfOneStep } from "../../../test/helpers/time/slices.ts";
import { stepsOf } from "./actions.ts";
import { VisibleSchema } from "./records.ts";
import {
  FORM,
  principal,
  audited,
  objects,
  query,
  admin,
  viewer,
  narrow,
  useSchema,
  post,
  form,
} from "../../../test/helpers/objects/schema-world.ts";

useSchema();

test("objects are inserted and updated as MQL would, found by id or keys", async () => {
  const act = (data: unknown, ctype?: string, session?: string) =>
    post("actiontoclass", form({ data: JSON.stringify(data), ...(ctype && { ctype }) }), {
      type: FORM,
      ...(session && { session }),
    });
  const app = "/matrix/ent/app";
  expect(await act({ class: app, host: "a", port: 1, vtime: 5, contain: ["app:b"] }, "insert")).toMatchObject({
    status: "ok",
    message: { count: 1, ids: ["app:a"] },
  });
  expect(
    await act([
      { class: app, host: "b" },
      { class: app, id: "app:c", host: "c" },
    ]),
  ).toMatchObject({ message: { count: 2, ids: ["app:b", "app:c"] } });
  expect(
    await act(
      [
        { id: "app:a", port: 10 },
        { class: app, host: "b", port: "11", tags: ["x"] },
      ],
      "update",
    ),
  ).toMatchObject({ status: "ok", message: { count: 2 } });
  expect(await query.rows(principal, `select id, port, tags from ${app} order by id`)).toEqual([
    { id: "app:a", port: 10, tags: null },
    { id: "app:b", port: 11, tags: ["x"] },
    { id: "app:c", port: null, tags: null },
  ]);
  expect(await act({ class: app, HOST: "b", Port: 12 }, "update")).toMatchObject({
    status: "ok",
    message: { count: 1 },
  });
  expect(await query.rows(principal, `select port from ${app} where id = 'app:b'`)).toEqual([{ port: 12 }]);
  expect(await post("actiontoclass", { data: { class: app, host: "d" }, ctype: "insert" })).toMatchObject({
    status: "ok",
  });
  expect(audited.at(-1)).toMatchObject({ action: `MQL insert ${app}`, outcome: "ok" });
});

test("the objects of an action are checked in slices", async () => {
  const { seen, slices } = slicesOfOneStep();
  const schema = new VisibleSchema(principal, await objects.catalog(principal));
  const rows = Array.from({ length: 20 }, (_, at) => ({ class: "/matrix/ent/app", host: `h${at}`, port: at }));
  const [step] = await stepsOf({ kind: "insert", objects: rows }, schema, slices);
  expect(step?.values).toHaveLength(rows.length);
  expect(seen.pauses).toBe(rows.length);
});

test("an action that cannot be done wholly says at which object, and begins nothing", async () => {
  const app = "/matrix/ent/app";
  const act = (data: unknown, ctype = "insert", session = admin) => post("actiontoclass", { data, ctype }, { session });
  const wrong: readonly (readonly [unknown, string, string])[] = [
    [
      [
        { class: app, host: "x" },
        { class: app, host: "y", speed: 1 },
      ],
      "insert",
      "data[1]: Field speed Not Exist",
    ],
    [
      [
        { class: app, host: "x" },
        { class: app, host: "y", port: "many" },
      ],
      "insert",
      "data[1]: [Format] column port",
    ],
    [[{ host: "x" }], "insert", "data[0]: [Valid] the member class is missing"],
    [[{ id: "nothing:x", port: 1 }], "update", "data[0]: [NotExist] Not Found Class For ID nothing:x"],
    [[{ class: app, port: 1 }], "update", "data[0]: [Valid] an update needs the id or the keys host"],
    [[{ class: app, host: "x" }], "update", "data[0]: [Valid] there is nothing to change"],
    [{ class: "/matrix/system/vault", name: "v" }, "insert", "cannot be inserted by MQL"],
    [[{ class: app, host: "x", "port = 1, `secret": 1 }], "insert", "Not Exist"],
    [{ class: app, host: "unknown", port: 1 }, "update", "[NotExist] There is no object of data[0]"],
  ];
  for (const [data, ctype, reason] of wrong)
    expect(await act(data, ctype), reason).toMatchObject({
      status: "error",
      message: expect.stringContaining(reason) as string,
    });
  expect(await query.rows(principal, `select id from ${app} where host in ('x', 'y')`)).toEqual([]);
  expect(await act({ class: app, host: "v" }, "insert", viewer)).toMatchObject({ code: "denied" });
  expect(await act({ class: app, host: "forbidden" }, "insert", narrow)).toMatchObject({ code: "denied" });
  expect(await act({ class: app, host: "v", secret: "s" }, "insert", narrow)).toMatchObject({ code: "not_found" });
  expect(await act({ class: app, host: "v", SECRET: "s" }, "insert", narrow)).toMatchObject({ code: "not_found" });
  expect(await act({ class: app, host: "allowed" }, "insert", narrow)).toMatchObject({ status: "ok" });
  expect(await act({ class: "/matrix/ent/box", host: "v" }, "insert", narrow)).toMatchObject({ code: "not_found" });
});
