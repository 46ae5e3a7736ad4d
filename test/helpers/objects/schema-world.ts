import { afterAll, beforeAll } from "vitest";
import { realClock } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../http/http-app.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import type { AuditEntry } from "../../../controller/areas/audit/index.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { ClassChanges, QueryService } from "../../../controller/areas/query/index.ts";
import { schemaRoutes, SchemaService } from "../../../controller/areas/schema/index.ts";

/** The schema of a tenant by HTTP, for users of different rights. */

export const FORM = "application/x-www-form-urlencoded";
export const principal = testPrincipal();
export const runtime = testRuntime(realClock);
export const audited: AuditEntry[] = [];
export let engine: TestEngine;
export let objects: ObjectService;
export let query: QueryService;
export let classes: ClassChanges;
export let http: TestHttp;
export let admin: string;
export let viewer: string;
/** May read only below /matrix/ent, except /matrix/ent/box and the column `secret`; may write /matrix/ent/app. */
export let narrow: string;

/** Opens the interface, with classes and users, for all tests of the calling file. */
export function useSchema(): void {
  beforeAll(async () => {
    engine = await openTestEngine();
    objects = new ObjectService({ stores: engine, runtime });
    objects.registerSystemClass({
      path: "/system/vault",
      columns: [
        { name: "name", type: "varchar", meaning: "Name" },
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
    classes = new ClassChanges({ objects, audit });
    http = await openTestHttp({ endpoints: schemaRoutes(new SchemaService({ objects, query, classes, runtime })) });
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
}

/** Calls a GET of `/mxobject`, as administrator unless a session is given. */
export const get = (url: string, session = admin) => http.call(session, { method: "GET", url: `/mxobject/${url}` });
/** Calls a POST of `/mxobject`, with JSON as administrator unless the options say otherwise. */
export const post = (
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
/** Body of a form with these members. */
export const form = (members: Record<string, string>) => new URLSearchParams(members).toString();
/** Names of the records of an answer. */
export const names = (answer: { readonly message: unknown }) =>
  (answer.message as { name: string }[]).map(({ name }) => name);
/** Number of a class; `undefined` if there is none. */
export const cidOf = async (path: string) => (await objects.catalog(principal)).get(path)?.cid;
