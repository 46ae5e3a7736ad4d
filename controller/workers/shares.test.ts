import { describe, expect, test } from "vitest";
import { type Busy, type ShareLimits, Shares } from "./shares.ts";
import type { Stand } from "./types.ts";

const POOL = { threads: 32, standingThreads: 32 };
const WAITING = { tasks: 9, tasksLimit: "ANY" };
const LIMITS: readonly ShareLimits[] = [
  { threads: 12, standingThreads: 24, leavesRoom: true, ...WAITING },
  { threads: 4, standingThreads: 8, leavesRoom: false, ...WAITING },
  { threads: 2, standingThreads: 4, leavesRoom: true, ...WAITING },
];
const KINDS = ["script", "trigger", "rule"] as const;

/** The threads of a pool, given to paths in order, as many as each may have. */
class Threads {
  readonly #busy: Busy[];
  readonly #limits: readonly ShareLimits[];

  constructor(busy: readonly Busy[] = [], limits = LIMITS) {
    this.#busy = [...busy];
    this.#limits = limits;
  }

  /** Starts as many tasks as the path may have; they never end. Returns their number. */
  take(...path: readonly string[]): number {
    let taken = 0;
    while (this.#mayBegin(path)) {
      this.#busy.push({ path, stands: false });
      taken += 1;
    }
    return taken;
  }

  #mayBegin(path: readonly string[]): boolean {
    const shares = new Shares(POOL, this.#limits, this.#busy);
    return shares.hasRoom && path.every((_, at) => shares.mayBegin(path.slice(0, at + 1)));
  }
}

function busy(count: number, path: readonly string[], stands: Stand = false): readonly Busy[] {
  return Array.from({ length: count }, () => ({ path, stands }));
}

describe("threads", () => {
  test("of a kind go to three users at least, however many each wants", () => {
    const threads = new Threads();
    const users = ["anna", "ben", "cleo", "dora"].map((user) => threads.take("a", "script", user));
    expect(users).toEqual([2, 1, 1, 0]);
  });

  test("of each kind go to three users, though each user wants all of every kind", () => {
    const threads = new Threads();
    for (const user of ["anna", "ben", "cleo"])
      for (const kind of KINDS) expect(threads.take("a", kind, user)).toBeGreaterThan(0);
  });

  test("are left for each kind of a tenant, whatever its users want of the others", () => {
    for (const last of KINDS) {
      const threads = new Threads();
      for (const kind of KINDS.filter((one) => one !== last))
        for (const user of ["anna", "ben", "cleo", "dora"]) threads.take("a", kind, user);
      expect(threads.take("a", last, "eve")).toBeGreaterThan(0);
    }
  });

  test("are left for other tenants, whatever all users of two want", () => {
    const threads = new Threads();
    for (const tenant of ["a", "b"])
      for (const kind of KINDS) for (const user of ["anna", "ben", "cleo"]) threads.take(tenant, kind, user);
    const others = KINDS.map((kind) => threads.take("c", kind, "anna"));
    expect(Math.min(...others)).toBeGreaterThan(0);
  });

  test("of tasks that stand still count for nobody, as far as the limit goes", () => {
    const path = ["a", "script", "anna"];
    expect(new Threads(busy(2, path, true)).take(...path)).toBe(2);
    expect(new Threads(busy(6, path, true)).take(...path)).toBe(0);
  });

  test("of tasks that stand still are bounded for each, and in all", () => {
    const path = ["a", "script", "anna"];
    const [tenant, kind, user] = LIMITS as readonly [ShareLimits, ShareLimits, ShareLimits];
    const roomy = [{ ...tenant, standingThreads: 99 }, { ...kind, standingThreads: 99 }, user];
    expect(new Threads(busy(5, path, true), roomy).take(...path)).toBe(1);
    expect(new Threads(busy(64, ["b"], true)).take(...path)).toBe(0);
  });

  test("of tasks that stand still briefly count for nobody up to a limit of their own", () => {
    const [tenant, kind, user] = LIMITS as readonly [ShareLimits, ShareLimits, ShareLimits];
    const limits = [tenant, kind, { ...user, brieflyThreads: 2 }];
    const anna = ["a", "script", "anna"];
    const taken = (briefly: number): number => new Threads(busy(briefly, anna, "briefly"), limits).take(...anna);
    expect([taken(1), taken(2), taken(3), taken(4)]).toEqual([2, 2, 1, 0]);
    const others = new Threads(busy(4, anna, "briefly"), limits);
    expect([others.take("a", "script", "ben"), others.take("a", "script", "cleo")]).toEqual([1, 1]);
    expect(new Threads(busy(1, anna, "briefly")).take(...anna)).toBe(1);
  });

  test("of tasks that stand still are left for others, too", () => {
    const [tenant, kind, user] = LIMITS as readonly [ShareLimits, ShareLimits, ShareLimits];
    const narrow = [tenant, { ...kind, standingThreads: 4 }, user];
    const threads = new Threads(busy(4, ["a", "script", "anna"], true), narrow);
    expect([threads.take("a", "script", "anna"), threads.take("a", "script", "ben")]).toEqual([0, 2]);
  });

  test("of tasks that stood still and go on take nothing from the share of others", () => {
    const threads = new Threads(busy(5, ["a", "script", "anna"]));
    expect(threads.take("a", "script", "anna")).toBe(0);
    expect(threads.take("a", "script", "ben")).toBe(1);
    expect(threads.take("a", "script", "cleo")).toBe(1);
    expect(threads.take("a", "trigger", "anna")).toBe(2);
  });

  test("that end count until they are gone", () => {
    expect(new Threads(busy(64, [])).take("a", "script", "anna")).toBe(0);
    expect(new Threads(busy(32, [])).take("a", "script", "anna")).toBe(0);
  });

  test("without a share go to whoever asks first", () => {
    expect(new Threads([], []).take("a", "script", "anna")).toBe(32);
    const endless = { threads: Number.POSITIVE_INFINITY, standingThreads: 0, leavesRoom: false, ...WAITING };
    expect(new Threads([], [endless]).take("a")).toBe(32);
  });
});
