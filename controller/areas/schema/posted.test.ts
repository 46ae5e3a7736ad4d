import { expect, test } from "vitest";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import {
  FORM,
  principal,
  query,
  http,
  admin,
  viewer,
  useSchema,
  get,
  post,
  form,
  names,
  cidOf,
} from "../../../test/helpers/objects/schema-world.ts";

useSchema();

test("a posted class that shares its last name warns of the first, and of options that are none", async () => {
  const posted = { class: "/matrix/posting/app", fields: [{ name: "host", type: "varchar" }] };
  expect(await post("schema/class", posted)).toMatchObject({
    status: "ok",
    message: { name: "/matrix/posting/app" },
    warnings: [expect.stringContaining("as those of /matrix/ent/app do")],
  });
  expect(await post("schema/class", posted)).not.toHaveProperty("warnings");
});

test("a posted class is made, and what it lacks is added; nothing is taken away", async () => {
  const made = await post("schema/class", {
    class: "/matrix/posted",
    alias: "p'1",
    ttl: "2 day",
    remedy: "",
    fields: [
      { name: "host", type: "varchar", title: "Host's name", iskey: true },
      { name: "labels", ftype: "set", fparam: ["varchar"], isindex: 1 },
      { name: "vtime", type: "timestamp" },
    ],
  });
  expect(made).toMatchObject({
    status: "ok",
    message: { name: "/matrix/posted", alias: "p'1", keys: ["host"], ttl: 172_800 },
  });
  // As a client sends back what it read, with one field more.
  const { fields, ...rest } = made.message as { fields: object[] };
  const again = {
    ...rest,
    autosearch: 1,
    fields: [...fields, { name: "state", type: "enum", fparam: { "1": ["up", "running"] }, isindex: "true" }],
  };
  const extended = await post("schema/class", form({ classinfo: JSON.stringify(again) }), { type: FORM });
  expect(extended).toMatchObject({
    status: "ok",
    message: { autosearch: 1, alias: "p'1", ttl: 172_800, keys: ["host"] },
  });
  const shown = (await get("schema/class/fields?id=/matrix/posted")).message as { name: string }[];
  expect(shown.find(({ name }) => name === "host")).toMatchObject({ title: "Host's name", iskey: true });
  expect(shown.find(({ name }) => name === "labels")).toMatchObject({ fparam: ["varchar"], isindex: true });
  expect(shown.find(({ name }) => name === "state")).toMatchObject({
    ftype: "enum",
    isindex: true,
    fparam: { "1": ["up", "running"] },
    indexing: { state: expect.any(String) as string },
  });
  expect(await post("schema/class", { class: "/matrix/posted" })).toMatchObject({
    status: "ok",
    message: { name: "/matrix/posted", autosearch: 1 },
  });
  expect(names({ message: shown })).toEqual(names(await get("schema/class/fields?id=/matrix/posted")));
});

test("whichever form a posted class has, it is read", async () => {
  const info = JSON.stringify({ name: "/matrix/forms", fields: [{ name: "a", type: "int" }] });
  for (const body of [form({ data: info }), form({ class: info }), form({ anything: info })]) {
    expect(await post("schema/class", body, { type: FORM })).toMatchObject({
      status: "ok",
      message: { name: "/matrix/forms" },
    });
  }
  expect(await post("schema/class", info, { type: "text/plain" })).toMatchObject({ status: "ok" });
});

test("what is wrong with a posted class is said, and it is not made", async () => {
  const wrong: readonly (readonly [object, string])[] = [
    [{ class: "/matrix/w x" }, "[Valid] class"],
    [{ class: "/matrix/wrong", fields: [{ name: "a", type: "colour" }] }, "no column type colour"],
    [{ class: "/matrix/wrong", fields: [{ name: "a" }] }, "needs a name and a type"],
    [{ class: "/matrix/wrong", fields: ["unheard"] }, "needs a name and a type"],
    [{ class: "/matrix/wrong", fields: [{ name: "a", type: "set", fparam: ["varchar>"] }] }, "fparam"],
    [{ class: "/matrix/wrong", fields: [{ name: "a", type: "int) with alias='x'" }] }, "needs a name and a type"],
    [{ class: "/matrix/wrong", keymode: "sha" }, "keymode"],
    [{ class: "/elsewhere/wrong" }, "outside"],
    [{ class: "/matrix/ent", fields: [{ name: "host", type: "int" }] }, "host exists already with the type varchar"],
    [{ class: "/matrix/system/vault", alias: "x" }, "belongs to the platform"],
    [{}, "[Valid] class"],
  ];
  for (const [body, reason] of wrong)
    expect(await post("schema/class", body), JSON.stringify(body)).toMatchObject({
      status: "error",
      message: expect.stringContaining(reason) as string,
    });
  expect(await get("schema/class?class=/matrix/wrong")).toMatchObject({ code: "not_found" });
  expect(await post("schema/class", { class: "/matrix/viewed" }, { session: viewer })).toMatchObject({
    code: "denied",
  });
});

test("a class is dropped by number, not while it has objects or classes below", async () => {
  const remove = (cid: unknown, session = admin) =>
    http.call(session, { method: "DELETE", url: `/mxobject/schema/class?cid=${String(cid)}` });
  await post("schema/class", { class: "/matrix/gone/soon" });
  const [above, below] = [await cidOf("/matrix/gone"), await cidOf("/matrix/gone/soon")];
  expect(await remove(below, viewer)).toMatchObject({ code: "denied" });
  expect(await remove(above)).toMatchObject({ status: "error", code: "conflict" });
  expect(await remove(below)).toMatchObject({ status: "ok", message: "" });
  expect(await remove(below)).toMatchObject({ status: "error", code: "not_found" });
  expect(await remove(await cidOf("/matrix/system/vault"))).toMatchObject({ code: "denied" });
});

test("a posted class takes the options of the class above, but for those it says otherwise; records show what holds", async () => {
  const top = "/matrix/ent/heard";
  const options = { autosearch: true, version: true, ttl: "60", time_zone: "Asia/Tokyo" };
  expect(
    await post("schema/class", { class: top, fields: [{ name: "note", type: "text" }], ...options }),
  ).toMatchObject({ status: "ok" });
  expect(await post("schema/class", { class: `${top}/plain`, fields: [] })).toMatchObject({
    message: { autosearch: 1, version: 1, ttl: 60, time_zone: "Asia/Tokyo", indexing: { state: "ready" } },
  });
  expect(await post("schema/class", { class: `${top}/mars`, fields: [], time_zone: "Mars/Base" })).toMatchObject({
    code: "invalid",
    message: expect.stringContaining('there is no time zone "Mars/Base"') as string,
  });
  expect(
    await post("schema/class", { class: `${top}/deaf`, fields: [], autosearch: false, version: true, ttl: "-1" }),
  ).toMatchObject({ message: { autosearch: 0, version: 1, ttl: -1 } });
  await query.rows(principal, `alter class ${top} set ttl=90, version=false`);
  expect(await get(`schema/class?class=${top}/plain`)).toMatchObject({
    message: { autosearch: 1, version: 0, ttl: 90 },
  });
  expect(await get(`schema/class?class=${top}/deaf`)).toMatchObject({
    message: { autosearch: 0, version: 0, ttl: -1 },
  });
});

test("a class of records has the columns of marked records behind those of every object; sent back, they are no columns of its own", async () => {
  const platform = ["id", "class", "day", "vtime", "ctime", "mtime", "marks", "_rawbytes"];
  await query.rows(testPrincipal(), "create class /matrix/event (text varchar) with kind=record");
  const read = (await get("schema/class?class=/matrix/event")).message as { fields: { name: string; type: string }[] };
  expect(read.fields.map(({ name }) => name)).toEqual([...platform, "tags", "text"]);
  expect(read.fields.slice(6, 8)).toMatchObject([
    { name: "marks", type: "set", fparam: ["varchar"], isindex: false, class: "/matrix/event" },
    { name: "_rawbytes", type: "blob", isindex: false },
  ]);
  for (const sent of [read, { ...read, name: "/matrix/eventtoo", class: "/matrix/eventtoo" }])
    expect(await post("schema/class", sent)).toMatchObject({ status: "ok" });
  const columns = async (path: string) => ((await get(`schema/class?class=${path}`)).message as typeof read).fields;
  expect((await columns("/matrix/eventtoo")).map(({ name }) => name)).toEqual([...platform, "tags", "text"]);
  await post("schema/class", { class: "/matrix/eventtoo", fields: [{ name: "marks", type: "varchar" }] });
  expect((await columns("/matrix/eventtoo")).map(({ name }) => name)).toEqual([
    ...platform.filter((name) => name !== "marks"),
    "tags",
    "text",
    "marks",
  ]);
});
