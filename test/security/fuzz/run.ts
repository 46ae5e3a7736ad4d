import { allows } from "../../../controller/areas/permissions/index.ts";
import { answerOf, requested } from "../answering.ts";
import { isDear, type Draw, type DrawnCall } from "../draw.ts";
import { seededRandom } from "../../helpers/time/clock.ts";
import type { Listening } from "./listening.ts";
import type { People, Person } from "./people.ts";
import type { Round } from "./round.ts";
import { plainAnswer, twinOf } from "./twins.ts";
import { drawerOf } from "./ways.ts";

/** One call in this many uses HTTP. The others skip it, because it causes most of the cost. */
const BY_HTTP = 25;
const AT_ONCE = 8;
/** Maximum wait for a call; after that the call counts as one that revealed nothing. */
const CALL_MAX_MS = 10_000;

export interface Fuzzing {
  readonly people: People;
  readonly seed: number;
  readonly calls: number;
  readonly listening: Listening;
  /** Ends after this many leaks. */
  readonly leaksMax: number;
}

/** Makes random calls. Returns the answers that tell their callers too much. */
export async function fuzz(
  round: Round,
  { people, seed, calls, listening, leaksMax }: Fuzzing,
): Promise<readonly string[]> {
  const draw = drawOf(seed);
  const callers = Object.values(people).map((by) => ({ by, drawers: drawersOf(by, round) }));
  const leaks: string[] = [];
  for (let made = 0; made < calls && leaks.length < leaksMax; ) {
    const batch = Array.from({ length: AT_ONCE }, () => {
      const { by, drawers } = draw(callers);
      return { by, drawn: draw(drawers)(draw).drawn };
    });
    const looks: Look[] = [];
    for (const one of batch) {
      if ("socket" in one.drawn) listening.socket(one.by, one.drawn);
      else if (one.drawn.endpoint.events === true) listening.stream(round, one.by, one.drawn);
      else looks.push({ by: one.by, call: one.drawn, isWhole: (made + looks.length) % BY_HTTP === 0 });
    }
    made += AT_ONCE;
    leaks.push(...defined(await Promise.all(looks.map((one) => look(round, one)))), ...listening.leaks.splice(0));
    // Other calls change data, so a call and its twin are made while no other call is.
    const pair = looks.find(({ by, call }) => isComparable(call) && twinOf(call, by.twins) !== undefined);
    if (pair === undefined) continue;
    leaks.push(...defined([await compared(round, pair)]));
    made += 2;
  }
  return leaks;
}

/** One call in this many is of any endpoint; the others are of endpoints whose permission the caller has. */
const ANY_ENDPOINT = 4;

function drawersOf({ principal }: Person, { to }: Round): readonly ReturnType<typeof drawerOf>[] {
  const preferred = to.endpoints.filter(({ permission }) => permission === "public" || allows(principal, permission));
  const permitted = drawerOf({ ...to, preferred });
  return [drawerOf(to), ...Array.from({ length: ANY_ENDPOINT - 1 }, () => permitted)];
}

function defined(leaks: readonly (string | undefined)[]): readonly string[] {
  return leaks.filter((leak) => leak !== undefined);
}

export function drawOf(seed: number): Draw {
  const random = seededRandom(seed);
  return (list) => list[Math.floor(random.next() * list.length)] as never;
}

interface Look {
  readonly by: Person;
  readonly call: DrawnCall;
  readonly isWhole: boolean;
}

export async function look({ app, folder }: Round, { by, call, isWhole }: Look): Promise<string | undefined> {
  const signal = AbortSignal.timeout(CALL_MAX_MS);
  const told = isWhole
    ? await requested(app, call, { login: by.login, signal })
    : await answerOf(call, { principal: by.principal, signal, folder });
  return by.mark.test(told) ? `${by.login}: ${textOf(call)} was answered ${told.slice(0, 2_000)}` : undefined;
}

/**
 * Failed sign-ins are counted by name, so a name that was tried before is answered differently. Logs contain the texts
 * of earlier calls.
 */
function isComparable({ endpoint }: DrawnCall): boolean {
  return !isDear(endpoint) && !LOGS.test(endpoint.path);
}

const LOGS = /\/audit|consolelog/;

/** Characters shown of each of two different answers, and those of them before the first difference. */
const [SHOWN, SHOWN_BEFORE] = [1_000, 300];

function firstDifference(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}

/**
 * Compares the answers to a call and to its twin. A difference counts only if both are answered the same again: some
 * answers contain times, and some calls change what the next one is answered.
 */
export async function compared({ folder }: Round, { by, call }: Look): Promise<string | undefined> {
  const twin = twinOf(call, by.twins);
  if (twin === undefined || !isComparable(call)) return undefined;
  const answers = async (): Promise<readonly [string, string]> => {
    const caller = { principal: by.principal, signal: AbortSignal.timeout(CALL_MAX_MS), folder };
    const one = await answerOf(call, caller);
    return [plainAnswer(one, by.twins), plainAnswer(await answerOf(twin, caller), by.twins)];
  };
  const [one, other] = await answers();
  if (one === other || LOGS.test(one + other)) return undefined;
  const [oneAgain, otherAgain] = await answers();
  if (one !== oneAgain || other !== otherAgain) return undefined;
  const from = Math.max(0, firstDifference(one, other) - SHOWN_BEFORE);
  const both = [one, other].map((answer) => answer.slice(from, from + SHOWN)).join("\nand about what does not exist\n");
  return `${by.login}: ${textOf(call)} was answered, from character ${from} on,\n${both}`;
}

function textOf({ endpoint: { method, path }, ...sent }: DrawnCall): string {
  return `${method} ${path} ${JSON.stringify(sent)}`;
}
