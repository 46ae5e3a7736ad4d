import { afterAll, beforeAll, expect, test } from "vitest";
import { HOSTILE_REQUESTS } from "./hostile.ts";
import { held, HELD_HEAP_MAX_MB } from "./measure.ts";
import { openWorld, type World } from "./objects.ts";

/** Beyond this something is not bounded at all; `npm run bench -- hostile` tells what it really is. */
const STOP_MAX_MS = 1_000;
/** Bounds of sizes and rights, and what ends a request whose caller has left. */
const OUTCOMES = ["ok", "too_large", "limited", "invalid", "not_found", "syntax", "cancelled"];

let world: World;

beforeAll(async () => {
  world = await openWorld();
});

afterAll(() => world[Symbol.asyncDispose]());

test.each(HOSTILE_REQUESTS)("$name: everybody else goes on, and memory stays within its bound", async (request) => {
  const { stopMs, heapMb, outcome } = await held(world, request);
  expect(OUTCOMES).toContain(outcome);
  expect(stopMs).toBeLessThan(STOP_MAX_MS);
  expect(heapMb).toBeLessThan(HELD_HEAP_MAX_MB);
});
