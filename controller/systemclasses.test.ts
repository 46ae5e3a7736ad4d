import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { realClock } from "../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../test/helpers/time/runtime.ts";
import { isAppError } from "../common/errors.ts";
import type { Row, Value } from "../common/value.ts";
import { meaningsOf, type ClassView, type Column } from "./areas/objects/index.ts";
import { assemble, type Assembly } from "./assembly.ts";
import { openSecretKey } from "./secrets/index.ts";
import { storeFolder } from "../test/helpers/runs/folders.ts";

const admin = testPrincipal();
const viewer = testPrincipal("viewer");
let engine: TestEngine;
let folder: string;
let assembly: Assembly;
let systemClasses: readonly ClassView[];

beforeAll(async () => {
  engine = await openTestEngine();
  folder = await storeFolder("odp-classes-");
  const secrets = await openSecretKey({ file: join(folder, "secret.key"), create: true });
  assembly = await assemble({
    engine,
    secrets,
    version: "test",
    runtime: testRuntime(realClock),
    controllerId: "classes",
    publicNames: ["127.0.0.1"],
    dataDir: folder,
    agentPort: () => 0,
  });
  await assembly.tenants.ensureTenant({ name: admin.tenant, ospace: admin.ospace });
  systemClasses = (await assembly.objects.catalog(admin)).tree("/").filter((view) => view.system);
});

afterAll(async () => {
  await assembly.close();
  await engine[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

/**
 * Changes that MQL may make to objects of the platform's classes, through the service that owns them. Decide here for
 * every new class.
 */
const OFFERED: Readonly<Record<string, string>> = {
  "/matrix/consolelog/rule": "",
  "/matrix/consolelog/serverjs": "",
  "/matrix/consolelog/trigger": "",
  "/matrix/filesystem": "update",
  "/matrix/jobs/cmdrun": "",
  "/matrix/jobs/jobdef": "update remove",
  "/matrix/jobs/jobgroup": "",
  "/matrix/jobs/jobrun": "",
  "/matrix/ldap": "",
  "/matrix/system/audit": "",
  "/matrix/system/command": "",
  "/matrix/system/commandoutput": "",
  "/matrix/system/config": "insert update remove",
  "/matrix/system/deployment": "",
  "/matrix/system/depot": "update remove",
  "/matrix/system/filecontent": "",
  "/matrix/system/filehistory": "",
  "/matrix/system/filepassage": "",
  "/matrix/system/hostinfo": "insert update remove",
  "/matrix/system/policy": "remove",
  "/matrix/system/policygap": "",
  "/matrix/system/policystate": "",
  "/matrix/system/policyrun": "",
  "/matrix/system/ruleretry": "remove",
  "/matrix/system/tagmove": "",
  "/matrix/system/transfer": "",
  "/matrix/system/triggerevent": "update remove",
};

test("what the owners of the platform's classes offer to MQL", () => {
  const offered = systemClasses.map(({ path, guard }) => [
    path,
    (["insert", "update", "remove"] as const).filter((name) => guard?.[name]).join(" "),
  ]);
  expect(Object.fromEntries(offered)).toEqual(OFFERED);
});

test("what an owner does not offer is refused, for all classes, and changes nothing", async () => {
  for (const view of systemClasses) {
    const { path, guard } = view;
    const id = (await stored(view)) ?? `${view.label}:nobody`;
    const column = view.columns.find((candidate) => !candidate.sealed && candidate.name !== "tags")?.name ?? "tags";
    const before = await assembly.objects.unrestricted.get(admin, [{ id, class: path }]);
    const texts = [
      ...(guard?.insert
        ? []
        : [`insert into ${path} id='${id}', ${column}=1`, `insert json '{"class":"${path}","id":"${id}"}'`]),
      ...(guard?.update
        ? []
        : [
            `update ${path} set ${column}=null where id='${id}'`,
            `update ${path} tags = tags + 'x' where id='${id}'`,
            `delete ${column} from ${path} where id='${id}'`,
          ]),
      ...(guard?.remove
        ? []
        : [`delete from ${path} where id='${id}'`, `delete from /matrix/ where id='${id}' with version`]),
      `insert into ${path} (id) values ('${id}') at '2020-01-01 00:00:00'`,
      `alter class ${path} add column mine int`,
      `alter class ${path} set ttl=1`,
      `alter class ${path} drop column ${column}`,
      `drop class ${path}`,
      `create class ${path}/mine (a int)`,
    ];
    // Statements find no objects if the owner creates the rows itself and has none.
    for (const text of before[0] ? texts : texts.filter((one) => !/^(update|delete)/.test(one))) {
      await expect(assembly.query.rows(admin, text), text).rejects.toMatchObject({ code: "denied" });
    }
    expect(await assembly.objects.unrestricted.get(admin, [{ id, class: path }]), path).toEqual(before);
  }
});

test("who shares data rules with somebody of more permissions sees what the own ones open", async () => {
  const data = [{ class: "/", access: "read" as const, group: "portal" }];
  const holder = { ...admin, grants: ["objects:read", "jobs:read"], data };
  const member = { ...holder, grants: ["objects:read"] };
  const text = "select out from /matrix/jobs/jobrun";
  for (const round of [1, 2]) {
    await expect(assembly.query.rows(holder, text), String(round)).resolves.toBeDefined();
    await expect(assembly.query.rows(member, text), String(round)).rejects.toMatchObject({ code: "not_found" });
  }
});

test("who reads no class at all is told of no permission that would not help", async () => {
  const nobody = { ...admin, grants: ["objects:read"], data: [] };
  const { ospace } = admin;
  await assembly.query.rows(admin, `create class ${ospace}/own (a int)`);
  for (const [text, code] of [
    [`select id from ${ospace}/own`, "not_found"],
    [`select id from ${ospace}/`, "not_found"],
    [`select id from ${ospace}/system/audit`, "denied"],
  ] as const)
    await expect(assembly.query.rows(nobody, text), text).rejects.toMatchObject({ code });
});

test("who may not write writes nothing of the platform's", async () => {
  for (const { path } of systemClasses) {
    for (const text of [`insert into ${path} id='x'`, `update ${path} set tags=null`, `delete from ${path}`]) {
      await expect(assembly.query.rows(viewer, text), text).rejects.toMatchObject({ code: "denied" });
    }
  }
});

test("who may write objects, and lacks the permission of the owner's own service, changes nothing of what owners offer", async () => {
  const writer = { ...admin, user: "writer", grants: ["*:read", "objects:write"] };
  const offering = systemClasses.filter(({ guard }) => guard?.insert ?? guard?.update ?? guard?.remove);
  expect(offering.length).toBeGreaterThan(3);
  for (const view of offering) {
    const { path, guard, label } = view;
    const id = `${label}:x`;
    const row = { host: "x" };
    const refused = {
      code: "denied",
      message: expect.stringContaining(`writer lacks the permission ${guard?.permission}`),
    };
    if (guard?.insert) {
      await expect(guard.insert(writer, [row]), path).rejects.toMatchObject(refused);
      await expect(
        assembly.query.rows(writer, `insert into ${path} (${view.keys.join(", ")}) values ('y')`),
        path,
      ).rejects.toMatchObject(refused);
    }
    if (guard?.update) await expect(guard.update(writer, id, []), path).rejects.toMatchObject(refused);
    if (guard?.remove) await expect(guard.remove(writer, [id]), path).rejects.toMatchObject(refused);
    if (!(await assembly.objects.unrestricted.get(admin, [{ id, class: path }]))[0]) continue;
    if (guard?.update)
      await expect(
        assembly.query.rows(writer, `update ${path} tags = tags + 'y' where id='${id}'`),
        path,
      ).rejects.toMatchObject(refused);
    if (guard?.remove)
      await expect(assembly.query.rows(writer, `delete from ${path} where id='${id}'`), path).rejects.toMatchObject(
        refused,
      );
  }
});

test("sealed columns do not exist for MQL", async () => {
  const sealed = systemClasses.flatMap((view) =>
    view.columns.filter((column) => column.sealed).map((column) => ({ path: view.path, column: column.name })),
  );
  expect(sealed.length).toBeGreaterThan(0);
  for (const { path, column } of sealed) {
    for (const text of [
      `select ${column} from ${path}`,
      `select id from ${path} where ${column} is null`,
      `select id from ${path} order by ${column}`,
      `select a.id from ${path} a join (b:${path}) on b.${column} = a.id`,
    ]) {
      await expect(assembly.query.rows(admin, text), text).rejects.toMatchObject({ code: "not_found" });
    }
  }
});

test("each column of a class has a meaning of its own", () => {
  for (const definition of assembly.areas.flatMap(({ classes = [] }) => classes)) {
    const meanings = [...meaningsOf(definition)];
    for (const [name, meaning] of meanings) expect(meaning.trim(), `${definition.path} ${name}`).not.toBe("");
    expect(new Set(meanings.map(([, meaning]) => meaning)).size, definition.path).toBe(meanings.length);
  }
});

test("meanings are not stored: a column has the title that its owner states, or none", () => {
  const column = (path: string, name: string) =>
    systemClasses.find((view) => view.path === path)?.column(name) ?? expect.fail(`${path} ${name}`);
  expect(column("/matrix/jobs/jobrun", "runid")).not.toHaveProperty("title");
  expect(column("/matrix/jobs/jobrun", "runid")).not.toHaveProperty("meaning");
  expect(column("/matrix/filesystem", "size")).toMatchObject({ title: "Bytes" });
});

test("each column of a class is named by a test of the owner's area, or by one in test/ that names the class", async () => {
  const shared = await testsBelow("../test");
  const untested: string[] = [];
  for (const { name: area, classes = [] } of assembly.areas) {
    const own = classes.length === 0 ? [] : await testsBelow(`areas/${area}`);
    for (const { path, columns } of classes) {
      const words = wordsIn([...own, ...shared.filter((text) => text.includes(path))]);
      const names = columns.filter(({ sealed, name }) => !sealed && !words.has(name)).map(({ name }) => name);
      untested.push(...names.map((name) => `${path} ${name}: no test in controller/areas/${area} names it`));
    }
  }
  expect(untested).toEqual([]);
});

/** Texts of the tests in a folder, which is relative to this one. */
async function testsBelow(folder: string): Promise<readonly string[]> {
  const top = join(import.meta.dirname, folder);
  const files = (await readdir(top, { recursive: true })).filter((file) => file.endsWith(".test.ts"));
  return Promise.all(files.map((file) => readFile(join(top, file), "utf8")));
}

function wordsIn(texts: readonly string[]): ReadonlySet<string> {
  return new Set(texts.flatMap((text) => text.match(/\w+/g) ?? []));
}

/** Creates an object as its owner would; `undefined` if the owner creates the rows itself. */
async function stored(view: ClassView): Promise<string | undefined> {
  const values = Object.fromEntries(
    view.keys.flatMap((name): [string, Value][] => [[name, sample(view.column(name))]]),
  ) as Row;
  const isMade = (error: unknown): readonly string[] => {
    if (isAppError(error, "unsupported")) return [];
    throw error;
  };
  const ids =
    view.kind === "entity"
      ? await assembly.objects.unrestricted
          .insert(admin, view.path, [view.keys.length === 0 ? { id: "x", ...values } : values])
          .catch(isMade)
      : await assembly.objects.unrestricted.ingest(admin, view.path, [
          { values, timeMs: realClock.nowMs(), identity: "test/1" },
        ]);
  return ids[0];
}

function sample(column: Column | undefined): Value {
  return column?.type === "varchar" || column?.type === "text" ? "x" : 1;
}
