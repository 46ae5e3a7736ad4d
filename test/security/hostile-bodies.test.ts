import { afterAll, beforeAll, expect, test } from "vitest";
import { BodySender } from "./body-sender.ts";
import { HOSTILE_BODIES, HOSTILE_TARGETS } from "./hostile-bodies.ts";
import { HELD_HEAP_MAX_MB, heldBy } from "./measure.ts";
import { openWorld, type World } from "./world.ts";

/** Beyond this something is not done in slices at all; `npm run bench -- hostile` tells what it really is. */
const STOP_MAX_MS = 1_000;
const OUTCOMES = ["ok", "too_large", "limited", "invalid", "not_found", "syntax", "signin"];
/** In every run; the bench has all. */
const BODIES = HOSTILE_BODIES.filter(({ always }) => always);
const TARGETS = HOSTILE_TARGETS.filter(({ always }) => always);

let world: World;
let sender: BodySender;
let address: string;
let session: string;

beforeAll(async () => {
  world = await openWorld();
  sender = new BodySender();
  session = await world.signIn();
  address = await world.app.listen({ port: 0, host: "127.0.0.1" });
});
afterAll(async () => {
  await sender?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

const cases = TARGETS.flatMap((target) => BODIES.map((body) => [body.name, target.name, { body, target }] as const));

test.each(cases)("%s to %s: everybody else goes on", async (_body, _target, { body, target }) => {
  const { path, member, isSignedIn } = target;
  const url = `${address}${path}${isSignedIn ? `?sessionid=${session}` : ""}`;
  await sender.prepare({ url, method: "POST", type: body.type, payload: body.payload(member) });
  const { stopMs, heapMb, outcome } = await heldBy(() => sender.send());
  expect(OUTCOMES).toContain(outcome);
  expect(stopMs).toBeLessThan(STOP_MAX_MS);
  expect(heapMb).toBeLessThan(HELD_HEAP_MAX_MB);
});
