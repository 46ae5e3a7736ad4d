import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../objects/index.ts";
import type { DataRule } from "../permissions/index.ts";
import { QueryService, visibleObjects } from "../query/index.ts";
import { NotificationRights } from "./rights.ts";
import type { Notification } from "./types.ts";

/** A controller on which no class has an owner that limits its rows, so that rules alone decide. */

const admin = testPrincipal();
const ALL: DataRule = { class: "/", access: "read" };
let engine: TestEngine;
let objects: ObjectService;

beforeAll(async () => {
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  await new QueryService({ objects, runtime }).rows(
    admin,
    `create edgetype uplink;
     create class /matrix/ent/box (host varchar, owner varchar, keys(host));
     create class /matrix/vault (code varchar, keys(code));
     insert into /matrix/ent/box (host, owner) values ('a', 'ann'), ('b', 'bob'); insert into /matrix/vault code='gold'`,
  );
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

async function told(...data: readonly DataRule[]): Promise<unknown> {
  const frame: Notification = {
    ...{ keyspace: "/matrix", source: "objects", subject: "datachange", title: "", reply: "" },
    msg: JSON.stringify({ fields: { uplink: ["box:b", "vault:gold", "box:gone"] } }),
    about: {
      ...{ permission: "objects:read", class: "/matrix/ent/box", id: "box:a", vtimeMs: 1, ctimeMs: 1 },
      values: { host: "a", owner: "ann" },
      ...{ told: [], relations: ["uplink"], member: "fields" },
    },
  };
  const seen = await new NotificationRights({ objects }).visible({ ...admin, data }, frame);
  return (JSON.parse(seen?.msg ?? "{}") as { fields?: { uplink?: unknown } }).fields?.uplink;
}

test.each<readonly [string, readonly DataRule[], readonly string[]]>([
  ["sees everything", [ALL], ["box:b", "vault:gold", "box:gone"]],
  ["sees all but one class", [ALL, { class: "/matrix/vault", access: "none" }], ["box:b"]],
  ["sees some rows of one", [ALL, { class: "/matrix/ent", access: "read", where: "owner = 'ann'" }], ["vault:gold"]],
  [
    "sees rows that any class may have",
    [{ class: "/", access: "read", anywhere: [{ where: "owner = 'ann'", fields: ["owner"] }] }],
    ["vault:gold"],
  ],
])("who %s is told of related objects that exist for him", async (_who, data, ids) => {
  expect(await told(...data)).toEqual(ids);
});
