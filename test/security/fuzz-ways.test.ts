import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundle } from "../helpers/programs/bundle.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import type { Draw, DrawnCall } from "./draw.ts";
import { Listening } from "./fuzz/listening.ts";
import { TWINS } from "./fuzz/names.ts";
import type { Person } from "./fuzz/people.ts";
import { openRound, type Round } from "./fuzz/round.ts";
import { compared, drawOf, look } from "./fuzz/run.ts";
import { SEARCHES, STATEMENTS } from "./fuzz/statements.ts";
import { drawerOf, isReading, SUBJECTS, WAYS, type Drawn } from "./fuzz/ways.ts";
import { nameOf } from "./people.ts";

/** The calls that the fuzzer draws can reveal hidden data: a caller from whom nothing is hidden is told it. */

/** Number of calls of the fuzzer in every run. */
const CALLS = 5_000;
/** Draws of one kind of call until one of them tells. */
const DRAWS_MAX = 400;
const RECEIVERS = 30;

const scripts = pathToFileURL(await bundle("controller/script-worker.ts", `scripts/fuzz-ways-${process.pid}.mjs`));
let round: Round;
/** From whom nothing is hidden. `reader` changes nothing. */
let reader: Person;
let writer: Person;

beforeAll(async () => {
  round = await openRound(scripts);
  const person = (access: "read" | "write"): Person => ({
    login: `matrix.${access}`,
    principal: {
      ...testPrincipal(),
      user: access,
      grants: ["*:read", "objects:write"],
      data: [{ class: "/", access }],
    },
    mark: /xmarkx/i,
    twins: [...TWINS.row, ...TWINS.column, ...TWINS.shut, ...TWINS.ruled, ...TWINS.file],
  });
  reader = person("read");
  writer = person("write");
});
afterAll(() => round?.[Symbol.asyncDispose]());

/** True if one of the drawn calls is answered by a mark, or differently from its twin. */
async function tells(by: Person, drawn: (draw: Draw) => DrawnCall): Promise<boolean> {
  const draw = drawOf(1);
  for (let made = 0; made < DRAWS_MAX; made++) {
    const call = drawn(draw);
    const one = { by, call, isWhole: false };
    if ((await look(round, one)) ?? (await compared(round, one))) return true;
  }
  return false;
}

test("every way and every endpoint that reads is drawn", () => {
  const drawn = drawerOf(round.to);
  const draw = drawOf(1);
  const ways = new Set<string>();
  const endpoints = new Set<string>();
  for (let made = 0; made < CALLS; made++) {
    const { way, drawn: one } = drawn(draw);
    ways.add(way);
    endpoints.add("socket" in one ? one.socket.path : nameOf(one.endpoint));
  }
  expect([...ways].sort()).toEqual(Object.keys(WAYS).sort());
  expect([...endpoints]).toEqual(expect.arrayContaining(round.to.endpoints.filter(isReading).map(nameOf)));
  expect([...endpoints]).toEqual(expect.arrayContaining(round.to.sockets.map(({ path }) => path)));
});

const mql = (text: string): DrawnCall => {
  const endpoint = round.to.endpoints.find(({ method, path }) => method === "POST" && path === "/mxobject/mql");
  if (endpoint === undefined) throw new Error("There is no endpoint for MQL.");
  return { endpoint, path: {}, input: { mql: text } };
};
const search = (cond: string): DrawnCall => {
  const endpoint = round.to.endpoints.find(({ method, path }) => method === "POST" && path === "/mxobject/search");
  if (endpoint === undefined) throw new Error("There is no endpoint for searches.");
  return { endpoint, path: {}, input: { cond } };
};

/** Shapes whose answer tells only a caller who may change the data. They run last. */
const CHANGING = /update|relate|convert|insert|delete/;
const shapes = [
  ...Object.entries(STATEMENTS).map(([name, shape]) => ({ name, told: (draw: Draw) => mql(shape(draw)) })),
  ...Object.entries(SEARCHES).map(([name, shape]) => ({
    name: `search for ${name}`,
    told: (draw: Draw) => search(shape(draw)),
  })),
];

test.each(shapes.filter(({ name }) => !CHANGING.test(name)))("hidden data is told by: $name", async ({ told }) => {
  expect(await tells(reader, told)).toBe(true);
});

/** Ways whose answers come as frames or events, and ways that answer no data. */
const HEARD = ["socket", "notifications", "console log", "event stream"];
const UNTOLD = ["an endpoint with a password"];
const ANSWERED = Object.keys(WAYS).filter((way) => ![...HEARD, ...UNTOLD].includes(way));

test.each(ANSWERED)("hidden data is told by: %s", async (way) => {
  expect(await tells(reader, (draw) => drawnBy(way, draw) as DrawnCall)).toBe(true);
});

test.each(HEARD)("hidden data is told to the receivers of: %s", async (way) => {
  const listening = new Listening();
  const draw = drawOf(1);
  for (let opened = 0; opened < RECEIVERS; opened++) {
    const drawn = drawnBy(way, draw);
    if ("socket" in drawn) listening.socket(reader, drawn);
    else listening.stream(round, reader, drawn);
  }
  const { config, notifications } = round.world.assembly;
  await config.set(testPrincipal(), { key: "/matrix/covert/key", value: "xmarkxconfig" });
  const frame = { keyspace: "/matrix", source: "fuzz", title: "t", reply: "", msg: "xmarkxrow", about: undefined };
  for (const subject of SUBJECTS) notifications.publish("matrix", { ...frame, subject });
  await expect.poll(() => listening.leaks.length).toBeGreaterThan(0);
  listening.close();
});

test.each(shapes.filter(({ name }) => CHANGING.test(name)))("hidden data is told by: $name", async ({ told }) => {
  expect(await tells(writer, told)).toBe(true);
});

function drawnBy(way: string, draw: Draw): Drawn {
  const found = WAYS[way];
  if (found === undefined) throw new Error(`There is no way ${way}.`);
  return found.draw(draw, round.to);
}
