import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { InjectOptions } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundle } from "../helpers/programs/bundle.ts";
import { openWorld, type World } from "../security/world.ts";

interface Case {
  readonly given?: string;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly lines?: readonly string[];
  readonly class?: string;
  /** MQL statements, each with a part of its expected error; empty: it must succeed. */
  readonly steps?: readonly (readonly [string, string])[];
  readonly then?: Readonly<Record<string, readonly unknown[]>>;
}

interface Answer {
  readonly status: string;
  readonly message: unknown;
}

const FORM = { "content-type": "application/x-www-form-urlencoded" };

let world: World;
let session: string;

beforeAll(async () => {
  const file = await bundle("controller/script-worker.ts", `real-scripts-${process.pid}.mjs`);
  world = await openWorld({ scripts: pathToFileURL(file) });
  session = await world.signIn();
});
afterAll(() => world[Symbol.asyncDispose]());

async function call(method: "GET" | "POST" | "PUT", url: string, body: InjectOptions = {}): Promise<Answer> {
  const address = `${url}${url.includes("?") ? "&" : "?"}sessionid=${session}`;
  return (await world.app.inject({ method, url: address, ...body })).json();
}

async function ok(...of: Parameters<typeof call>): Promise<unknown> {
  const answer = await call(...of);
  expect([answer.status, answer.status === "ok" ? "" : answer.message]).toEqual(["ok", ""]);
  return answer.message;
}

const form = (fields: Readonly<Record<string, string>>): InjectOptions => ({
  headers: FORM,
  payload: new URLSearchParams(fields).toString(),
});
const mql = (text: string) => call("POST", "/mxobject/mql", form({ mql: text }));

function casesOf(folder: string): readonly (readonly [string, string, Case])[] {
  const at = join(import.meta.dirname, folder);
  return readdirSync(at)
    .filter((file) => !file.endsWith(".json"))
    .map((file) => {
      const name = file.slice(0, file.lastIndexOf("."));
      const text = readFileSync(join(at, `${name}.json`), "utf8");
      return [name, readFileSync(join(at, file), "utf8"), JSON.parse(text) as Case];
    });
}

async function prepare({ given = "" }: Case): Promise<void> {
  for (const text of given.split(";")) if (text.trim() !== "") await ok("POST", "/mxobject/mql", form({ mql: text }));
}

async function check({ then = {} }: Case): Promise<void> {
  for (const [text, rows] of Object.entries(then)) expect(await mql(text), text).toMatchObject({ message: rows });
}

describe("programs", () => {
  test.each(casesOf("programs"))("%s", async (name, source, one) => {
    await prepare(one);
    await ok("PUT", `/fs/script/ops/${name}.js`, { payload: { data: source } });
    const input = one.input === undefined ? "" : encodeURIComponent(JSON.stringify(one.input));
    const answer = await call("POST", `/script/exec/js?filepath=/ops/${name}.js`, form({ input, isfile: "true" }));
    expect(answer).toEqual({ status: "ok", message: one.output });
    await check(one);
  });
});

describe("rules", () => {
  test.each(casesOf("rules"))("%s", async (name, source, one) => {
    await prepare(one);
    const key = `/matrix/rules/ops/${name}`;
    await ok("PUT", "/mxobject/rule", form({ key, value: source }));
    const filename = `/home/${name}.txt`;
    await ok("PUT", `/fs${filename}`, { payload: { data: `${(one.lines ?? []).join("\n")}\n` } });
    await ok("GET", `/action/parsefile?rule=${encodeURIComponent(key)}&filename=${encodeURIComponent(filename)}`);
    await check(one);
  });
});

describe("triggers", () => {
  test.each(casesOf("triggers"))("%s", async (name, script, one) => {
    await prepare(one);
    const payload = { class: one.class, name, script, attr: { before: "true" } };
    await ok("PUT", "/mxobject/trigger", { payload });
    for (const [text, error] of one.steps ?? []) {
      const { status, message } = await mql(text);
      expect([text, status, error === "" ? "" : message]).toEqual(
        error === "" ? [text, "ok", ""] : [text, "error", expect.stringContaining(error)],
      );
    }
    await check(one);
  });
});
