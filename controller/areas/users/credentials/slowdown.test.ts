import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import {
  SIGN_IN_DELAY_MAX_MS,
  SIGN_IN_DELAY_MIN_MS,
  SIGN_IN_FREE_FAILURES_PER_ADDRESS,
  SIGN_IN_FREE_FAILURES_PER_USER,
} from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { AGED_CHANGES } from "../../../../test/helpers/time/times.ts";
import type { Stores } from "../../../store/engine.ts";
import type { KvStore } from "../../../store/kv.ts";
import type { CheckOutcome } from "./failures.ts";
import { SignInSlowdown } from "./slowdown.ts";

const GUESSES = onCluster ? 500 : AGED_CHANGES;
const GUESSED = 50;

let engine: TestEngine;
/**
 * The clock of all controllers goes only by this: on a busy machine a wait would be over between two guesses. It begins
 * at a whole number: with a fraction, the end of a wait could be later than now by a rounding.
 */
let aheadMs = 0;
const [startMs, monotonicStartMs] = [realClock.nowMs(), Math.ceil(realClock.monotonicMs())];
const clock: Clock = {
  ...realClock,
  nowMs: () => startMs + aheadMs,
  monotonicMs: () => monotonicStartMs + aheadMs,
};
/** A network for each test, so that failures of one test do not count in another. */
let network = 0;
let remote: string;

beforeAll(async () => {
  engine = await openTestEngine();
});
beforeEach(() => {
  remote = `192.0.2.${(network += 1)}`;
});
afterAll(() => engine[Symbol.asyncDispose]());

interface Controller {
  /** Answers the outcome, or `limited`. */
  readonly guess: (outcome: CheckOutcome, user?: string) => Promise<string>;
}

function controller(over: Partial<KvStore> = {}, sessions: readonly string[] = []): Controller {
  const system = async () => {
    const store = await engine.system();
    return { ...store, kv: wrappedKv(store.kv, over) };
  };
  const stores: Stores = { system, tenant: (name) => engine.tenant(name) };
  const slowdown = new SignInSlowdown(stores, { ...testRuntime(clock), clock });
  return {
    guess: (outcome, user = "matrix/ann") => {
      const hasSessionFrom = (from: string) => Promise.resolve(from === remote && sessions.includes(user));
      return slowdown
        .during<string>({ user, remote, hasSessionFrom }, () => Promise.resolve({ outcome, value: outcome }))
        .catch((error: { code: string }) => error.code);
    },
  };
}

const checked = (answers: readonly string[]) => answers.filter((answer) => answer !== "limited").length;

describe("who guesses through several controllers", () => {
  test("has no more tries than through one, one after the other", async () => {
    const controllers = [controller(), controller(), controller()];
    const answers: string[] = [];
    for (let at = 0; at < 12; at++) answers.push((await controllers[at % 3]?.guess("wrong")) ?? "");
    expect(checked(answers)).toBe(SIGN_IN_FREE_FAILURES_PER_USER + 1);
    expect(answers.at(-1)).toBe("limited");
    expect(await controller().guess("right")).toBe("limited");
    expect(await controller().guess("wrong", "matrix/bob")).toBe("wrong");
  });

  test("has one more for each other controller at first, all at once, and one in all from then on", async () => {
    const controllers = [controller(), controller(), controller()];
    const all = () => Promise.all(controllers.flatMap(({ guess }) => Array.from({ length: 8 }, () => guess("wrong"))));
    const first = checked(await all());
    expect(first).toBeGreaterThan(SIGN_IN_FREE_FAILURES_PER_USER);
    expect(first).toBeLessThanOrEqual(SIGN_IN_FREE_FAILURES_PER_USER + controllers.length);
    expect(checked(await all())).toBe(0);
    aheadMs += SIGN_IN_DELAY_MIN_MS * 2 ** (controllers.length - 1);
    expect(checked(await all())).toBe(1);
    expect(checked(await all())).toBe(0);
  });

  test("waits for what an address guessed of many users, too, however often one of them signs in from there", async () => {
    const controllers = [controller({}, ["matrix/known"]), controller()];
    const answers: string[] = [];
    for (let at = 0; at < SIGN_IN_FREE_FAILURES_PER_ADDRESS + 4; at++)
      answers.push((await controllers[at % 2]?.guess("wrong", `matrix/user${String(at)}`)) ?? "");
    expect(checked(answers)).toBe(SIGN_IN_FREE_FAILURES_PER_ADDRESS + 1);
    const third = controller({}, ["matrix/known"]);
    expect(await third.guess("right", "matrix/stranger")).toBe("limited");
    expect(await third.guess("right", "matrix/known")).toBe("right");
    expect(await controllers[0]?.guess("right", "matrix/known")).toBe("right");
    for (const one of [third, ...controllers]) expect(await one.guess("right", "matrix/stranger")).toBe("limited");
    aheadMs += SIGN_IN_DELAY_MIN_MS;
    expect(await third.guess("wrong", "matrix/stranger")).toBe("wrong");
    expect(await controllers[0]?.guess("right", "matrix/stranger")).toBe("limited");
  });
});

describe("from a network that has to wait", () => {
  const KNOWN = "matrix/known";
  const known = () => controller({}, [KNOWN]);
  async function fill(one: Controller, count: number): Promise<void> {
    for (let at = 0; at < count; at++) expect(await one.guess("wrong", `matrix/filling${String(at)}`)).toBe("wrong");
  }

  test("a user who is known there has one try in all for each wait, through however many controllers", async () => {
    const first = known();
    await fill(first, SIGN_IN_FREE_FAILURES_PER_ADDRESS + 1);
    for (let at = 0; at <= SIGN_IN_FREE_FAILURES_PER_USER; at++)
      expect(await first.guess("wrong", KNOWN)).toBe("wrong");
    // By then the user's own wait is over, and that of the network is not.
    aheadMs += SIGN_IN_DELAY_MIN_MS;
    expect(await controller().guess("right", "matrix/stranger")).toBe("limited");
    const answers = await Promise.all([known(), known(), known()].map(({ guess }) => guess("wrong", KNOWN)));
    expect(checked(answers)).toBe(1);
    aheadMs += 2 * SIGN_IN_DELAY_MIN_MS;
    expect(await known().guess("right", KNOWN)).toBe("right");
  });

  test("a user who signed in there does not wait, and one who only tried, or gave half of a sign-in, does", async () => {
    const one = controller();
    for (const outcome of ["right", "half", "wrong"] as const)
      expect(await one.guess(outcome, `matrix/${outcome}`)).toBe(outcome);
    await fill(one, SIGN_IN_FREE_FAILURES_PER_ADDRESS);
    expect(await one.guess("right", "matrix/right")).toBe("right");
    for (const user of ["half", "wrong"]) expect(await one.guess("right", `matrix/${user}`), user).toBe("limited");
  });

  test("a right password of one user forgives no failures of others", async () => {
    await fill(controller(), SIGN_IN_FREE_FAILURES_PER_ADDRESS);
    expect(await controller().guess("right", KNOWN)).toBe("right");
    expect(await controller().guess("wrong", "matrix/last")).toBe("wrong");
    expect(await controller().guess("right", "matrix/stranger")).toBe("limited");
  });

  test("strangers have one try in all when it begins to wait", async () => {
    await fill(controller(), SIGN_IN_FREE_FAILURES_PER_ADDRESS);
    const others = ["a", "b", "c"].map((name) => controller().guess("wrong", `matrix/${name}`));
    expect(checked(await Promise.all(others))).toBe(1);
  });
});

test("a right password forgives the user's failures at all controllers, and half of a sign-in itself alone", async () => {
  const [one, other] = [controller(), controller()];
  for (let at = 0; at < SIGN_IN_FREE_FAILURES_PER_USER; at++) expect(await one.guess("wrong")).toBe("wrong");
  for (let at = 0; at < 3; at++) expect(await other.guess("half")).toBe("half");
  expect(await other.guess("right")).toBe("right");
  for (let at = 0; at < SIGN_IN_FREE_FAILURES_PER_USER; at++) expect(await other.guess("wrong")).toBe("wrong");
  expect(await controller().guess("wrong")).toBe("wrong");
  expect(await other.guess("right")).toBe("limited");
});

test("half of a sign-in forgives no failures before it", async () => {
  for (let at = 0; at < SIGN_IN_FREE_FAILURES_PER_USER; at++) expect(await controller().guess("wrong")).toBe("wrong");
  expect(await controller().guess("half")).toBe("half");
  expect(await controller().guess("wrong")).toBe("wrong");
  expect(await controller().guess("right")).toBe("limited");
});

test("a right password at the first try writes nothing, whatever others from there do", async () => {
  let writes = 0;
  const counting = async (): Promise<Partial<KvStore>> => {
    const { kv } = await engine.system();
    return {
      put: (...given) => ((writes += 1), kv.put(...given)),
      delete: (...given) => ((writes += 1), kv.delete(...given)),
      txn: (...given) => ((writes += 1), kv.txn(...given)),
    };
  };
  const counted = controller(await counting());
  for (const user of ["a", "b"]) await controller().guess("wrong", user);
  await Promise.all(["c", "d", "e"].map((user) => counted.guess("right", user)));
  await counted.guess("half", "f");
  expect(writes).toBe(0);
  await counted.guess("wrong", "g");
  expect(writes).toBe(2);
});

test("who was checked is told so while failures cannot be counted in the store, and has to wait at this controller", async () => {
  const put = () => Promise.reject(new AppError("unavailable", "the store is away"));
  const away = controller({ put }, ["matrix/known"]);
  const answers: string[] = [];
  for (let at = 0; at < SIGN_IN_FREE_FAILURES_PER_USER + 3; at++) answers.push(await away.guess("wrong"));
  expect(answers.slice(-3)).toEqual(["wrong", "limited", "limited"]);
  for (let at = 0; at < SIGN_IN_FREE_FAILURES_PER_ADDRESS; at++) await away.guess("wrong", `matrix/user${String(at)}`);
  for (const user of ["stranger", "known", "stranger"])
    expect(await away.guess("right", `matrix/${user}`)).toBe(user === "known" ? "right" : "limited");
  const unread = controller({ get: () => Promise.reject(new AppError("unavailable", "the store is away")) });
  expect(await unread.guess("right")).toBe("unavailable");
});

test("waits grow to a bound, and not beyond", async () => {
  const one = controller();
  for (let at = 0; at < SIGN_IN_FREE_FAILURES_PER_USER; at++) await one.guess("wrong");
  let waitedMs = 0;
  for (let waitMs = SIGN_IN_DELAY_MIN_MS; waitMs < SIGN_IN_DELAY_MAX_MS; waitMs *= 2) {
    expect(await one.guess("wrong")).toBe("wrong");
    expect(await controller().guess("right")).toBe("limited");
    aheadMs += waitMs;
    waitedMs += waitMs;
  }
  expect(waitedMs).toBeGreaterThan(SIGN_IN_DELAY_MAX_MS);
  expect(await one.guess("wrong")).toBe("wrong");
  aheadMs += SIGN_IN_DELAY_MAX_MS;
  expect(await controller().guess("right")).toBe("right");
});

test(`after ${GUESSES} guesses at ${GUESSED} users a wait is as long as ever, and the store holds as much as there are names`, async () => {
  const { kv } = await engine.system();
  const names = async () => (await kv.list("signinfailures/", { limit: 1_000 })).entries.length;
  const before = await names();
  const controllers = [controller(), controller()];
  for (let at = 0; at < GUESSES; at++) {
    aheadMs += SIGN_IN_DELAY_MAX_MS;
    const answer = await controllers[at % 2]?.guess("wrong", `matrix/guessed${String(at % GUESSED)}`);
    if (answer !== "wrong") expect.fail(`guess ${at}: ${String(answer)}`);
  }
  expect((await names()) - before).toBe(GUESSED + 1);
  expect(await controller().guess("right", "matrix/guessed1")).toBe("limited");
  aheadMs += SIGN_IN_DELAY_MAX_MS;
  expect(await controller().guess("right", "matrix/guessed1")).toBe("right");
});
