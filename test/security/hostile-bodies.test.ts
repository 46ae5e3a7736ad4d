import { afterAll, beforeAll, expect, test } from "vitest";
import { PatientClock } from "../helpers/time/clock.ts";
import { ARE_TIMES_BOUND } from "../helpers/time/times.ts";
import { BodySender } from "./body-sender.ts";
import { HOSTILE_BODIES, HOSTILE_TARGETS, type HostileBody, type HostileTarget } from "./hostile-bodies.ts";
import { HELD_HEAP_MAX_MB, heldBy } from "./measure.ts";
import { CountedPauses } from "./pauses.ts";
import { openWorld, type World } from "./world.ts";

/** Beyond this, work is not done in slices at all. `npm run bench -- hostile` measures the real value. */
const STOP_MAX_MS = 1_000;
const OUTCOMES = ["ok", "too_large", "limited", "invalid", "not_found", "syntax", "signin"];

/** Pauses are counted at every check, so a body takes longer than its deadline on a busy machine. */
const patience = new PatientClock();
let world: World;
let sender: BodySender;
let address: string;
let session: string;

beforeAll(async () => {
  world = await openWorld(ARE_TIMES_BOUND ? {} : { clock: patience });
  sender = new BodySender();
  session = await world.signIn();
  address = await world.app.listen({ port: 0, host: "127.0.0.1" });
});
afterAll(async () => {
  patience.end();
  await sender?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

/** If an endpoint refuses bodies unread, one body is enough. */
const bodiesFor = ({ takesLarge }: HostileTarget): readonly HostileBody[] =>
  HOSTILE_BODIES.filter(({ always }) => always).slice(takesLarge ? 0 : -1);
const cases = HOSTILE_TARGETS.filter(({ always }) => always || ARE_TIMES_BOUND).flatMap((target) =>
  (ARE_TIMES_BOUND ? HOSTILE_BODIES : bodiesFor(target)).map(
    (body) => [body.name, target.name, { body, target }] as const,
  ),
);

async function prepare(target: HostileTarget, body: HostileBody): Promise<void> {
  const { path, member, isSignedIn } = target;
  const url = `${address}${path}${isSignedIn ? `?sessionid=${session}` : ""}`;
  await sender.prepare({ url, method: "POST", type: body.type, payload: body.payload(member) });
}

const counted = ARE_TIMES_BOUND ? [] : cases;

test.each(counted)("%s to %s: is refused unread or decoded in pauses", async (_body, _target, { body, target }) => {
  await prepare(target, body);
  using pauses = new CountedPauses();
  const { heapMb, outcome } = await heldBy(() => sender.send());
  expect(OUTCOMES, `${String(pauses.count)} pauses beside ${othersHere()}`).toContain(outcome);
  if (target.takesLarge) expect(pauses.count).toBeGreaterThanOrEqual(body.pauses);
  else expect([outcome, pauses.count]).toEqual([target.isSignedIn ? outcome : "too_large", 0]);
  expect(heapMb).toBeLessThan(HELD_HEAP_MAX_MB);
});

/** Work of this process that could take turns of the event loop from the body. */
function othersHere(): string {
  const counts = new Map<string, number>();
  for (const name of process.getActiveResourcesInfo()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return JSON.stringify([...counts]);
}

const measured = ARE_TIMES_BOUND ? cases : [];

test.each(measured)("%s to %s: everybody else goes on", async (_body, _target, { body, target }) => {
  await prepare(target, body);
  const { stopMs, heapMb, outcome } = await heldBy(() => sender.send());
  expect(OUTCOMES).toContain(outcome);
  expect(stopMs).toBeLessThan(STOP_MAX_MS);
  expect(heapMb).toBeLessThan(HELD_HEAP_MAX_MB);
});
