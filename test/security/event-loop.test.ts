import { afterAll, beforeAll, expect, test } from "vitest";
import { ARE_TIMES_BOUND } from "../helpers/time/times.ts";
import { HOSTILE_REQUESTS } from "./hostile.ts";
import { held, HELD_HEAP_MAX_MB } from "./measure.ts";
import { openWorld, type World } from "./objects.ts";
import { CountedPauses } from "./pauses.ts";

/** Beyond this, work is not bounded at all. `npm run bench -- hostile` measures the real value. */
const STOP_MAX_MS = 1_000;
/** Minimum number of pauses of a request that continues; the maximum is the number until its caller leaves. */
const PAUSES_MIN = 10;
const PAUSES_MAX = 30;
/** Codes for exceeded sizes and missing rights. */
const REFUSED = ["too_large", "limited", "invalid", "not_found", "syntax"];
/** Also includes the code of a request whose caller has left. */
const OUTCOMES = [...REFUSED, "ok", "cancelled"];

let world: World;

beforeAll(async () => {
  world = await openWorld();
});

afterAll(() => world[Symbol.asyncDispose]());

const requests = ARE_TIMES_BOUND ? [] : HOSTILE_REQUESTS;

test.each(requests)("$name: is refused or gives way, and memory stays within its bound", async (request) => {
  using pauses = new CountedPauses(PAUSES_MAX);
  const { heapMb, outcome } = await held(world, request, pauses.signal);
  expect(OUTCOMES).toContain(outcome);
  if (REFUSED.includes(outcome)) expect(pauses.count).toBeLessThan(PAUSES_MIN);
  else expect(pauses.count).toBeGreaterThanOrEqual(request.isShort ? 1 : PAUSES_MIN);
  expect(heapMb).toBeLessThan(HELD_HEAP_MAX_MB);
});

const measured = ARE_TIMES_BOUND ? HOSTILE_REQUESTS : [];

test.each(measured)("$name: everybody else goes on", async (request) => {
  const { stopMs, heapMb, outcome } = await held(world, request);
  expect(OUTCOMES).toContain(outcome);
  expect(stopMs).toBeLessThan(STOP_MAX_MS);
  expect(heapMb).toBeLessThan(HELD_HEAP_MAX_MB);
});
