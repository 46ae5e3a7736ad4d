import { expect } from "vitest";
import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../helpers/programs/programs.ts";
import type { Blow } from "./exactly-once.ts";
import type { Installation } from "./installation.ts";

/**
 * Effects of triggers on objects while controllers are killed. One trigger runs before each write and counts in the
 * object itself. The other runs after it and creates an object for each change that it receives.
 */

const BOX = "/matrix/effect/box";
const SEEN = "/matrix/effect/seen";
const CUT = "/matrix/effect/cut";
const SEEN_DEADLINE_MS = 120_000;
const CALL_AGAIN_MS = 50;
const CLIENTS = 4;
const CUT_ROWS = 60;
const CUT_DEADLINE_MS = 60_000;

const BEFORE = `if ACTION ~= "DELETE" then OBJECT.writes = ((OLD and OLD.writes) or 0) + 1 end`;
const AFTER = `odb.mql("insert into ${SEEN} change=?", ACTION .. " " .. OBJECT.name .. " " .. OBJECT.n)`;

/** Creates the classes, both triggers, and the object that is written repeatedly. */
export async function prepareEffects(odp: Installation): Promise<void> {
  await odp.mql(`create class ${BOX} (name varchar, n int, writes int, keys(name), index(name))`);
  await odp.mql(`create class ${SEEN} (change varchar, keys(change))`);
  await odp.mql(`create class ${CUT} (name varchar, n int, writes int, keys(name), index(name))`);
  for (const [path, name, script, before] of [
    [BOX, "count", BEFORE, "true"],
    [BOX, "tell", AFTER, "false"],
    [CUT, "count", BEFORE, "true"],
  ] as const)
    await odp.ok("PUT", "/mxobject/trigger", JSON.stringify({ class: path, name, script, attr: { before } }));
  await odp.mql(`insert into ${BOX} name='hot', n=0`);
}

/** Clients that write one object, each through its controller, and continue when that was killed and is back. */
export class HotWrites {
  #left: number;
  readonly #clients: Promise<void>[];
  #isHalf: () => void = () => undefined;
  /** Resolves when half of the writes have been answered. */
  readonly half = new Promise<void>((resolve) => (this.#isHalf = resolve));

  constructor(controllers: readonly Installation[], writes: number) {
    this.#left = writes;
    this.#clients = controllers.flatMap((odp) => Array.from({ length: CLIENTS }, () => this.#write(odp, writes / 2)));
    for (const client of this.#clients) client.catch(() => undefined);
  }

  async end(): Promise<void> {
    await Promise.all(this.#clients);
  }

  async #write(odp: Installation, half: number): Promise<void> {
    while (this.#left > 0) {
      // A write whose answer was lost may have taken effect; the object itself counts the writes.
      const isAnswered = await odp.mql(`update ${BOX} set n = n + 1 where name = 'hot'`).then(
        () => true,
        () => false,
      );
      if (isAnswered) this.#left -= 1;
      else await pause(CALL_AGAIN_MS);
      if (this.#left <= half) this.#isHalf();
    }
  }
}

/** Imports rows, updates all of them and removes half of them; the trigger receives each change. */
export async function manyRows(odp: Installation, rows: number): Promise<readonly string[]> {
  const names = Array.from({ length: rows }, (_, at) => `b${at}`);
  const script = names.map((name, at) => `insert into ${BOX} name='${name}', n=${at % 2}`).join(";\n");
  await odp.ok("POST", "/mxobject/import", upload(script));
  await odp.mql(`begin update ${BOX} set n = n + 10 where name like 'b%'; delete from ${BOX} where n = 11; end`);
  const left = await odp.mql(`select name, n, writes from ${BOX} where n = 10 limit -1`);
  expect(left.map(({ name }) => String(name)).sort()).toEqual(names.filter((_, at) => at % 2 === 0).sort());
  expect(left.filter(({ writes }) => writes !== 2)).toEqual([]);
  return names.flatMap((name, at) => [
    `INSERT ${name} ${at % 2}`,
    `UPDATE ${name} ${10 + (at % 2)}`,
    ...(at % 2 === 1 ? [`DELETE ${name} ${11}`] : []),
  ]);
}

/** The controller is killed in the middle of an import and of a batch; the next one completes both. */
export function cutOff(odp: Installation): Blow {
  return {
    what: "the controller is killed in the middle of an import and of a batch",
    strike: async () => {
      // A definition ends the part of an import that is written with one note.
      const rows = Array.from({ length: CUT_ROWS }, (_, at) => `insert into ${CUT} name='i${at}', n=1`);
      const script = rows.join(`;\ncreate class if not exists ${CUT} (name varchar);\n`);
      const imported = settledAs(odp.call("POST", "/mxobject/import", upload(script)));
      await written(odp, "i");
      const made = rows.map((_, at) => `insert into ${CUT} name='b${at}', n=1;`).join("\n");
      const batch = `begin ${made} update ${CUT} set n = n + 1 where name like 'b%'; end`;
      const batched = settledAs(odp.mql(batch));
      await written(odp, "b");
      await odp.controller.kill("SIGKILL");
      expect([await imported, await batched]).toEqual(["cut off", "cut off"]);
      await odp.startController();
      await cutOnce(odp);
    },
  };
}

/** A call that the controller answers before it dies was not interrupted. */
function settledAs(call: Promise<unknown>): Promise<"answered" | "cut off"> {
  return call.then(
    () => "answered",
    () => "cut off",
  );
}

function written(odp: Installation, prefix: string): Promise<unknown> {
  return eventually(`rows ${prefix} are written`, CUT_DEADLINE_MS, async () => {
    const [found] = await odp.mql(`select count(*) from ${CUT} where name like '${prefix}%'`);
    return Number(found?.["count"]) > 0 || undefined;
  });
}

async function cutOnce(odp: Installation): Promise<void> {
  const of = (prefix: string, n: number) =>
    Array.from({ length: CUT_ROWS }, (_, at) => ({ name: `${prefix}${at}`, n, writes: n }));
  const rows = await eventually("the import and the batch are made to their end", CUT_DEADLINE_MS, async () => {
    const found = await odp.mql(`select name, n, writes from ${CUT} limit -1`);
    const isWhole = found.length === 2 * CUT_ROWS && found.every(({ name, n }) => n === (isOfBatch(name) ? 2 : 1));
    return isWhole ? found : undefined;
  });
  expect(new Set(rows.map((row) => JSON.stringify(row)))).toEqual(
    new Set([...of("i", 1), ...of("b", 2)].map((row) => JSON.stringify(row))),
  );
}

function isOfBatch(name: unknown): boolean {
  return String(name).startsWith("b");
}

function upload(script: string): FormData {
  const form = new FormData();
  form.set("uploadfile", new Blob([script]), "boxes.mql");
  return form;
}

/** The object counts each of its writes once, and the trigger after it received each change and no others. */
export async function effectsOnce(odp: Installation, writes: number, others: readonly string[] = []): Promise<number> {
  const [hot] = await odp.mql(`select n, writes from ${BOX} where name = 'hot'`);
  const count = Number(hot?.["n"]);
  expect(count).toBeGreaterThanOrEqual(writes);
  // The first write is the insert.
  expect(hot).toMatchObject({ writes: count + 1 });
  const expected = new Set(["INSERT hot 0", ...others]);
  for (let n = 1; n <= count; n++) expected.add(`UPDATE hot ${n}`);
  const seen = await eventually(`${expected.size} changes are told`, SEEN_DEADLINE_MS, async () => {
    const rows = await odp.mql(`select change from ${SEEN} limit -1`);
    return rows.length >= expected.size ? rows : undefined;
  });
  expect(seen.filter(({ change }) => !expected.has(String(change)))).toEqual([]);
  expect(await odp.mql("select * from /matrix/system/triggerevent limit 5")).toEqual([]);
  return count;
}
