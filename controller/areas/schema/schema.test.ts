import { afterAll, beforeAll, expect, test } from "vitest";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/areas/http-app.ts";
import { slicesOfOneStep } from "../../../test/helpers/time/slices.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { AuditEntry } from "../audit/index.ts";
import { ObjectService } from "../objects/index.ts";
import { QueryService } from "../query/index.ts";
import { stepsOf } from "./actions.ts";
import { schemaRoutes, SchemaService } from "./index.ts";
import { VisibleSchema } from "./records.ts";

const FORM = "application/x-www-form-urlencoded";
const principal = testPrincipal();
const runtime = testRuntime(realClock);
const audited: AuditEntry[] = [];
let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;
let http: TestHttp;
let admin: string;
let viewer: string;
/** May read only below /matrix/ent, except /matrix/ent/box and the column `secret`; may write /matrix/ent/app. */
let narrow: string;

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ stores: engine, runtime });
  objects.registerSystemClass({
    path: "/system/vault",
    columns: [
      { name: "name", type: "varchar", title: "Name" },
      { name: "password", type: "varchar", sealed: true },
    ],
    keys: ["name"],
    guard: { reading: { permission: "objects:read" } },
  });
  const audit = {
    ready: () => Promise.resolve(),
    record: (entry: AuditEntry) => (audited.push(entry), Promise.resolve()),
  };
  query = new QueryService({ objects, runtime, audit });
  http = await openTestHttp({ endpoints: schemaRoutes(new SchemaService({ objects, query, runtime })) });
  admin = await http.signIn("admin");
  viewer = await http.signIn("viewer");
  const data = [
    { class: "/matrix/ent", access: "read" as const, hidden: ["secret"] },
    { class: "/matrix/ent/box", access: "none" as const },
    { class: "/matrix/ent/box/rack", access: "read" as const, hidden: ["secret"] },
    { class: "/matrix/ent/app", access: "write" as const, where: "host != 'forbidden'", hidden: ["secret"] },
  ];
  await http.users.create(testPrincipal(), {
    username: "narrow",
    password: PASSWORD,
    rights: { grants: ["*:read"], data },
  });
  narrow = (
    await http.users.signIn({
      company: "matrix",
      username: "narrow",
      password: PASSWORD,
      remote: "test",
      traceparent: "",
    })
  ).session;
  await query.run(
    principal,
    `
    create class /matrix/ent (host varchar "Host", secret varchar) with alias='entity', remedy='all of it';
    create class /matrix/ent/box (state enum {"1":["up","running"],"0":["down","stopped"]}, labels map<varchar,varchar>, size bigint, seen timestamp,
      keys(host), index(size)) with ttl=1 day, autosearch=true, version=true, key=md5, time_zone='Europe/Berlin', partition='day';
    create class /matrix/ent/box/rack (slots int);
    create class /matrix/ent/app (host varchar, port int, keys(host));
    create edge type contain 'holds'`,
  );
});
afterAll(async () => {
  await http[Symbol.asyncDispose]();
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const get = (url: string, session = admin) => http.call(session, { method: "GET", url: `/mxobject/${url}` });
const post = (
  url: string,
  payload: string | object,
  options: { readonly session?: string; readonly type?: string } = {},
) =>
  http.call(options.session ?? admin, {
    method: "POST",
    url: `/mxobject/${url}`,
    payload: typeof payload === "string" ? payload : JSON.stringify(payload),
    headers: { "content-type": options.type ?? "application/json" },
  });
const form = (members: Record<string, string>) => new URLSearchParams(members).toString();
const names = (answer: { readonly message: unknown }) => (answer.message as { name: string }[]).map(({ name }) => name);
const cidOf = async (path: string) => (await objects.catalog(principal)).get(path)?.cid;

test("a class record has what clients read", async () => {
  const answer = await get("schema/class/list?id=/matrix/ent/box/");
  expect(answer).toMatchObject({ status: "ok" });
  expect((answer.message as unknown[])[0]).toEqual({
    cid: await cidOf("/matrix/ent/box"),
    pid: await cidOf("/matrix/ent"),
    name: "/matrix/ent/box",
    alias: "",
    nickname: "",
    remedy: "",
    child: ["/matrix/ent/box/rack"],
    subclass: ["/matrix/ent/box/rack"],
    fields: [
      "id",
      "class",
      "day",
      "vtime",
      "ctime",
      "mtime",
      "tags",
      "host",
      "secret",
      "state",
      "labels",
      "size",
      "seen",
    ],
    keys: ["host"],
    keymode: "md5",
    keymethod: 2,
    kind: "entity",
    autosearch: 1,
    version: 1,
    versionttl: -1,
    time_zone: "Europe/Berlin",
    loption: { partition: "day" },
    mtime: expect.any(Number) as number,
    tags: [],
    ttl: 86_400,
    vtimebase: "",
  });
  expect(names(answer)).toEqual(["/matrix/ent/box", "/matrix/ent/box/rack"]);
});

test("a list is of the classes below a number, of a path with those below, or of the root", async () => {
  for (const url of ["schema/class/list", "schema/class/list?id=-1"])
    expect((await get(url)).message).toMatchObject([{ cid: 1, pid: -1, name: "/matrix" }]);
  expect(names(await get("schema/class/list?id=1"))).toEqual(["/matrix/ent", "/matrix/system"]);
  expect(names(await get("schema/class/list?id=/matrix/ent"))).toEqual([
    "/matrix/ent",
    "/matrix/ent/app",
    "/matrix/ent/box",
  ]);
  expect(await get("schema/class/list?id=4711")).toMatchObject({
    status: "error",
    message: "[NotExist] can't find class , cid is 4711 .",
  });
});

test("a tree includes the class that is named; its numbers make the tree", async () => {
  expect(names(await get("schema/class/tree?id=/matrix/ent"))).toEqual([
    "/matrix/ent",
    "/matrix/ent/app",
    "/matrix/ent/box",
    "/matrix/ent/box/rack",
  ]);
  const all = (await get("schema/class/tree")).message as { cid: number; pid: number; name: string }[];
  expect(all.map(({ cid }) => cid)).toEqual(
    expect.arrayContaining(all.map(({ pid }) => pid).filter((pid) => pid !== -1)),
  );
});

test("a field record has what clients read, id and class among them", async () => {
  const answer = await get(`schema/class/fields?id=${await cidOf("/matrix/ent/box/rack")}`);
  expect(names(answer).slice(0, 2)).toEqual(["id", "class"]);
  const fields = new Map((answer.message as { name: string }[]).map((field) => [field.name, field]));
  expect(fields.get("host")).toEqual({
    name: "host",
    colname: "host",
    title: "Host",
    dispname: "Host",
    type: "varchar",
    ftype: "varchar",
    loption: { type: "string" },
    fparam: [],
    isindex: false,
    iskey: true,
    isrel: false,
    note: "",
    remedy: "",
    btype: "varchar",
    mtime: expect.any(Number) as number,
    class: "/matrix/ent",
  });
  expect(fields.get("state")).toMatchObject({
    ftype: "enum",
    btype: "smallint",
    fparam: { "1": ["up", "running"], "0": ["down", "stopped"] },
  });
  expect(fields.get("labels")).toMatchObject({ ftype: "map", fparam: ["varchar", "varchar"] });
  expect(fields.get("size")).toMatchObject({ loption: { type: "long" }, isindex: true, indexing: { state: "ready" } });
  expect(fields.get("seen")).toMatchObject({
    loption: { type: "date", pattern: "timestamp" },
    class: "/matrix/ent/box",
  });
  const whole = await get("schema/class?class=/matrix/ent/box/rack");
  expect(whole).toMatchObject({ message: { name: "/matrix/ent/box/rack", fields: answer.message } });
  expect(whole).toMatchObject({ message: { autosearch: 1, indexing: { state: "ready" } } });
  expect((await get("schema/class?class=/matrix/ent")).message).not.toHaveProperty("indexing");
  expect(await get("schema/class?class=/matrix/ent/box")).toMatchObject({ message: { indexing: { state: "ready" } } });
});

test("tables are the text of a list, with meta, by both methods", async () => {
  for (const method of ["GET", "POST"] as const) {
    for (const [table, some] of [
      ["field", ["id", "host", "slots"]],
      ["ftype", ["varchar", "bitlog"]],
      ["class", ["/matrix", "/matrix/ent/app"]],
    ] as const) {
      const answer = await http.call(viewer, { method, url: `/mxobject/system/schema/${table}` });
      const records = JSON.parse(String(answer.message)) as { name: string }[];
      expect(records.map(({ name }) => name)).toEqual(expect.arrayContaining([...some]));
      expect(answer.meta).toMatchObject({
        type: "select",
        rootclass: `/system/${table}`,
        columns: {
          [`/system/${table}`]: expect.arrayContaining([{ name: "name", title: "name", type: "varchar" }]) as unknown,
        },
      });
    }
  }
  expect(await get("system/schema/secrets")).toMatchObject({ status: "error", code: "not_found" });
});

test("what its reader may not read does not exist: classes, hidden and sealed columns", async () => {
  expect(names(await get("schema/class/list", narrow))).toEqual(["/matrix/ent"]);
  const tree = await get("schema/class/tree", narrow);
  expect(names(tree)).toEqual(["/matrix/ent", "/matrix/ent/app", "/matrix/ent/box/rack"]);
  expect(JSON.stringify(tree)).not.toContain("secret");
  // The class in between is invisible, so its child is attached to the nearest visible class.
  expect((tree.message as object[])[2]).toMatchObject({ pid: await cidOf("/matrix/ent") });
  for (const id of ["/matrix/ent/box", String(await cidOf("/matrix/ent/box")), "/matrix/system"]) {
    for (const url of [`list?id=${id}`, `tree?id=${id}`, `fields?id=${id}`])
      expect(await get(`schema/class/${url}`, narrow)).toMatchObject({ code: "not_found" });
  }
  expect(String((await get("system/schema/field", narrow)).message)).not.toContain('"secret"');
  expect(JSON.stringify(await get("schema/class?class=/matrix/system/vault"))).not.toContain("password");
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
