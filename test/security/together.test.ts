import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openWorld, type World } from "./world.ts";

/** Rules for members that must be given together: the page lists them, and what it calls refused must be refused. */
const PAGE = "deploy/docs/together.md";

const rows = readFileSync(PAGE, "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| `"))
  .flatMap((line) => {
    const [calls = "", rule = "", example = "", says = ""] = line.slice(2, -2).split(" | ");
    return calls.split(", ").map((call) => ({ call: bare(call), rule, example: bare(example), says }));
  });

let world: World;
let session: string;
beforeAll(async () => {
  world = await openWorld();
  session = await world.signIn();
  await ok({ method: "POST", url: "/mxobject/mql", payload: { mql: "create class /matrix/together (name varchar)" } });
  for (const file of ["folder/file"]) await ok({ method: "PUT", url: `/fs/${file}`, payload: { data: "x" } });
});
afterAll(() => world[Symbol.asyncDispose]());

function bare(text: string): string {
  return text.replace(/^`|`$/g, "");
}

interface Sent {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly url: string;
  readonly payload?: object;
}

interface Envelope {
  readonly status: string;
  readonly message: unknown;
  readonly code?: string;
}

async function send({ url, ...sent }: Sent): Promise<Envelope> {
  const signed = `${url}${url.includes("?") ? "&" : "?"}sessionid=${session}`;
  return (await world.app.inject({ ...sent, url: signed })).json<Envelope>();
}

async function ok(sent: Sent): Promise<void> {
  expect(await send(sent)).toMatchObject({ status: "ok" });
}

test("the page has rows", () => {
  expect(rows.length).toBeGreaterThan(20);
});

test.each(rows)("$call refuses $example: $rule", async ({ call, example, says }) => {
  const [method = "", path = ""] = call.split(" ");
  const query = example.startsWith("?") ? `?${new URLSearchParams(example).toString()}` : "";
  const before = world.written();
  const answer = await send({
    method: method as Sent["method"],
    url: path + query,
    ...(query === "" && { payload: JSON.parse(example) as object }),
  });
  expect(answer).toMatchObject({ status: "error", code: "invalid", message: expect.stringContaining(says) as unknown });
  expect(world.written()).toBe(before);
});
