import { expect, test } from "vitest";
import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { JOB_HOST_RETURN_MS, JOB_MAX_S } from "../../../../common/limits.ts";
import type { Random } from "../../../../common/time.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { onCluster } from "../../../../test/helpers/engines/engine.ts";
import { prove } from "../../../../test/helpers/runs/evidence.ts";
import {
  ADMIN,
  bytes,
  closed,
  controller,
  engine,
  execute,
  held,
  HOUR_MS,
  inserting,
  objects,
  openKeys,
  openRuns,
  outputOf,
  rowsOf,
  sleepingBefore,
  type Used,
} from "../../../../test/helpers/jobs/run-world.ts";
import { TIMES } from "../../../../test/helpers/time/times.ts";
import { Turns } from "../../../../test/helpers/time/turns.ts";
import type { Stores } from "../../../store/engine.ts";
import type { CommandOutcome, DispatchOptions } from "../../hosts/index.ts";
import type { JobRuns } from "./runs.ts";

openRuns();

test("a run whose controller is gone is taken over under the same command ids, with its whole output; when that one wakes it tells its caller the same end, and nobody a second time", async () => {
  const asleep = held<Partial<CommandOutcome>>({ state: "timeout", message: "slept" });
  const seen: string[] = [];
  const published: string[] = [];
  const a = controller("a", {
    published: (status) => published.push(`a: ${status}`),
    dispatch: async (_host, { commandId, onOutput }) => {
      seen.push(commandId);
      onOutput?.(bytes("one "));
      return asleep.wait();
    },
  });
  const { runId, finished } = await execute(a, "h1");
  await asleep.asleep;
  const b = controller("b", {
    published: (status) => published.push(`b: ${status}`),
    dispatch: async (_host, { commandId, onOutput }) => {
      seen.push(commandId);
      for (const text of ["one ", "two"]) onOutput?.(bytes(text));
      return Promise.resolve({});
    },
  });
  await b.maintain("matrix");
  await closed(runId);
  expect(await rowsOf(runId)).toMatchObject([{ status: "ok", code: 0, out: "one two" }]);
  asleep.release();
  expect(await finished).toMatchObject([{ host: "h1", state: "ok", code: 0 }]);
  expect(new Set(seen)).toEqual(new Set([`job/${runId}/h1/0`]));
  expect(seen).toHaveLength(2);
  expect(published).toEqual(["a: running", "b: ok"]);
  expect(await rowsOf(runId)).toMatchObject([{ status: "ok", out: "one two", outputsize: 7 }]);
  expect(await outputOf(runId, "h1")).toBe("one two");
  expect(await openKeys(runId)).toEqual([]);
});

test("the orderly end of a controller ends no run: its commands go on, and whichever controller is next takes the run over with its whole output", async () => {
  const asleep = held<Partial<CommandOutcome>>({ state: "timeout", message: "the connection was closed" });
  const cancels: unknown[] = [];
  let tell: DispatchOptions["onOutput"];
  const a = controller("a", {
    dispatch: async (_host, { onOutput, signal }) => {
      signal?.addEventListener("abort", () => cancels.push("cancelled"));
      tell = onOutput;
      onOutput?.(bytes("one "));
      return asleep.wait();
    },
  });
  const { runId, finished } = await execute(a, "h1");
  const told = expect(finished).rejects.toMatchObject({ code: "deadline", message: expect.stringContaining(runId) });
  await asleep.asleep;
  await a.close();
  tell?.(bytes("too late for this one"));
  asleep.release();
  await told;
  expect(cancels).toEqual([]);
  expect(await rowsOf(runId)).toMatchObject([{ status: "running" }]);
  const ids: string[] = [];
  const next = controller("next", {
    dispatch: (_host, { commandId, onOutput }) => {
      ids.push(commandId);
      for (const text of ["one ", "two"]) onOutput?.(bytes(text));
      return Promise.resolve({});
    },
  });
  await next.maintain("matrix");
  await closed(runId);
  expect(await rowsOf(runId)).toMatchObject([{ status: "ok", out: "one two" }]);
  expect(await outputOf(runId, "h1")).toBe("one two");
  expect(ids).toEqual([`job/${runId}/h1/0`]);
});

test("an orderly end while a taken-over run waits for its host leaves the run open, too", async () => {
  const asleep = held<Partial<CommandOutcome>>({});
  const a = controller("a", { dispatch: asleep.wait });
  const { runId } = await execute(a, "h1");
  await asleep.asleep;
  await a.close();
  const tried = held<Partial<CommandOutcome>>({ state: "unreachable" });
  const b = controller("b", { dispatch: tried.wait });
  await b.maintain("matrix");
  await tried.asleep;
  const closing = b.close();
  tried.release();
  await closing;
  expect(await rowsOf(runId)).toMatchObject([{ status: "running" }]);
  await controller("c").maintain("matrix");
  await closed(runId);
  expect(await rowsOf(runId)).toMatchObject([{ status: "ok" }]);
});

test("runs of a controller that is there are left alone", async () => {
  const asleep = held<Partial<CommandOutcome>>({});
  const { runId, finished } = await execute(controller("a", { dispatch: asleep.wait }), "h1");
  await asleep.asleep;
  await controller("b", { sees: ["a"], dispatch: () => Promise.reject(new Error("not b's")) }).maintain("matrix");
  expect(await rowsOf(runId)).toMatchObject([{ status: "running" }]);
  asleep.release();
  expect(await finished).toMatchObject([{ state: "ok" }]);
});

test("a run that was taken over waits for its host, which has to find the way to another controller first", async () => {
  const asleep = held<Partial<CommandOutcome>>({ state: "timeout", message: "slept" });
  const { runId, finished } = await execute(controller("a", { dispatch: asleep.wait }), "h1");
  await asleep.asleep;
  let tries = 0;
  const b = controller("b", { dispatch: () => Promise.resolve(++tries < 4 ? { state: "unreachable" } : {}) });
  await b.maintain("matrix");
  asleep.release();
  expect(await finished).toMatchObject([{ state: "ok" }]);
  expect(await rowsOf(runId)).toMatchObject([{ status: "ok" }]);
});

test("a host that does not come back is told as unreachable, also if the pause before the deadline ends after it", async () => {
  const asleep = held<Partial<CommandOutcome>>({ state: "timeout", message: "slept" });
  const { runId } = await execute(controller("a", { dispatch: asleep.wait }), "h1");
  await asleep.asleep;
  const away = { state: "unreachable", message: "h1 is away" } as const;
  const b = controller("b", { lateMs: 1_000 * JOB_MAX_S, dispatch: () => Promise.resolve(away) });
  await b.maintain("matrix");
  await closed(runId);
  expect(await rowsOf(runId)).toMatchObject([{ status: "unreachable", message: "h1 is away" }]);
  asleep.release();
});

test("a host that does not come back to a run that was taken over is told as unreachable, also where the deadline comes before its time to return is over", async () => {
  const asleep = held<Partial<CommandOutcome>>({ state: "timeout", message: "slept" });
  // Pauses are skipped, but a busy machine takes seconds as well.
  const param = JSON.stringify({ cmd: "x", "HOST!": ["h1"], timeout: JOB_HOST_RETURN_MS / 1_000 - 1 });
  const { runId } = await controller("a", { dispatch: asleep.wait }).execute(ADMIN, "remote_command@system/common", {
    param,
  });
  await asleep.asleep;
  const b = controller("b", { dispatch: () => Promise.resolve({ state: "unreachable", message: "h1 is away" }) });
  await b.maintain("matrix");
  await closed(runId);
  expect(await rowsOf(runId)).toMatchObject([{ status: "unreachable", message: "h1 is away" }]);
  asleep.release();
});

test("an end that was decided before its controller fell asleep is put on record by another one, and stays", async () => {
  const asleep = held(undefined);
  const a = controller("a", {
    dispatch: () => Promise.resolve({ state: "failed", code: 3, message: "exit code 3" }),
    objects: sleepingBefore((status) => status !== "running", asleep),
  });
  const { runId, finished } = await execute(a, "h1");
  await asleep.asleep;
  await controller("b", { aheadMs: HOUR_MS, dispatch: () => Promise.reject(new Error("it has ended")) }).maintain(
    "matrix",
  );
  expect(await rowsOf(runId)).toMatchObject([{ status: "failed", code: 3, message: "exit code 3" }]);
  asleep.release();
  expect(await finished).toMatchObject([{ state: "failed", code: 3 }]);
  expect(await rowsOf(runId)).toMatchObject([{ status: "failed", code: 3 }]);
});

test("who falls asleep before the row of the start does not bring back a run that has ended", async () => {
  const asleep = held(undefined);
  const executing = execute(
    controller("a", {
      objects: sleepingBefore((status) => status === "running", asleep),
      dispatch: () => Promise.resolve({ state: "cancelled", message: "late" }),
    }),
    "h1",
  );
  await asleep.asleep;
  await controller("b").maintain("matrix");
  await expect.poll(async () => (await (await engine.tenant("matrix")).kv.list("jobs/open/")).entries).toEqual([]);
  asleep.release();
  const { runId, finished } = await executing;
  expect(await finished).toMatchObject([{ state: "ok" }]);
  expect(await rowsOf(runId)).toMatchObject([{ status: "ok" }]);
});

test.each([
  [0, "ok"],
  [5_000, "ok"],
  [-5_000, "ok"],
])("a clock %i ms ahead at the one that takes over changes no end", async (aheadMs, state) => {
  const asleep = held<Partial<CommandOutcome>>({ state: "timeout", message: "slept" });
  const beganMs = Date.now();
  const { runId, finished } = await execute(controller("a", { dispatch: asleep.wait }), "h1");
  await asleep.asleep;
  const left: number[] = [];
  const b = controller("b", {
    aheadMs,
    dispatch: (_host, { timeoutMs }) => (left.push(timeoutMs), Promise.resolve({})),
  });
  await b.maintain("matrix");
  await closed(runId);
  const tookMs = Date.now() - beganMs;
  asleep.release();
  expect(await finished).toMatchObject([{ state }]);
  expect(await rowsOf(runId)).toMatchObject([{ status: state }]);
  // The deadline is that of the start, read by the other clock; one of the clocks shows whole milliseconds only.
  expect(left[0]).toBeLessThanOrEqual(60_000 - aheadMs);
  expect(left[0]).toBeGreaterThanOrEqual(60_000 - aheadMs - tookMs - 1);
});

/** Seeds that once found a fault. */
const KEPT_SEEDS: readonly number[] = [];
const HISTORIES = onCluster ? 12 : TIMES > 1 ? 300 * TIMES : 120;
/** Maximum number, if the first histories had no take-over. */
const HISTORIES_MAX = HISTORIES + 100;
const HISTORIES_MAX_MS = 240_000 * TIMES;
const SIDE_BY_SIDE = 16;

test(
  `a run has one final state, which every caller is told and no row ever leaves (${HISTORIES} histories)`,
  async () => {
    const base = Number(process.env.ODP_TEST_SEED ?? Date.now() % 1_000_000_000);
    console.log(`histories of one job run: seeds from ${base} (ODP_TEST_SEED=<seed> begins with that one)`);
    const seeds = [...KEPT_SEEDS, ...Array.from({ length: HISTORIES }, (_, at) => base + at)];
    const histories = await mapLimited(seeds, SIDE_BY_SIDE, (seed) => new History(seed).run());
    const takeOvers = (): number => histories.reduce((sum, { takenOver: count }) => sum + count, 0);
    // About one history in three has a take-over, so twelve seeds in a row may have none: more are run until one has.
    for (let next = base + HISTORIES; takeOvers() === 0 && histories.length < HISTORIES_MAX; next += 1)
      histories.push(await new History(next).run());
    const takenOver = takeOvers();
    expect(takenOver).toBeGreaterThan(0);
    prove("job-one-final-state", {
      engine: engine.kind,
      histories: histories.length,
      seeds: `${base} to ${base + histories.length - KEPT_SEEDS.length - 1}`,
      takenOver,
    });
  },
  HISTORIES_MAX_MS,
);

/**
 * One run with three controllers, which appear and disappear for each other as the seed says. Each may pause before any
 * call. The host does the command once, however often it is sent, and not every sender learns the outcome.
 */
class History {
  readonly #seed: number;
  readonly #random: Random;
  readonly #turns: Turns;
  readonly #controllers: readonly JobRuns[];
  readonly #result: CommandOutcome["state"];
  #began = 0;
  #runId = "";
  #over = false;
  #told: readonly string[] = [];
  readonly #seen: string[] = [];
  takenOver = 0;

  constructor(seed: number) {
    this.#seed = seed;
    this.#random = seededRandom(seed);
    this.#turns = new Turns(this.#random);
    this.#result = this.#random.next() < 0.5 ? "ok" : "failed";
    this.#controllers = ["a", "b", "c"].map((own, at) =>
      controller(`${own}${seed}`, {
        objects: this.#objects(),
        stores: this.#stores(),
        dispatch: () => this.#dispatch(),
        aheadMs: at === 2 ? HOUR_MS : 0,
      }),
    );
  }

  async run(): Promise<this> {
    this.#turns.begin(() => this.#caller());
    this.#turns.begin(() => this.#reader());
    for (const at of [1, 2]) this.#turns.begin(() => this.#maintain(at));
    await this.#turns.finished();
    const rows = await rowsOf(this.#runId);
    const states = new Set([...this.#seen, ...this.#told, ...rows.map((row) => String(row["status"]))]);
    expect(
      [...states].filter((state) => state !== "running"),
      `seed ${this.#seed}: seen ${this.#seen.join(" ")}; told ${this.#told.join(" ")}`,
    ).toHaveLength(1);
    expect(rows, `seed ${this.#seed}`).toHaveLength(1);
    expect(this.#seen.lastIndexOf("running"), `seed ${this.#seed}: seen ${this.#seen.join(" ")}`).toBeLessThan(
      Math.max(1, this.#seen.length - this.#seen.filter((state) => state !== "running").length),
    );
    expect(await openKeys(this.#runId), `seed ${this.#seed}`).toEqual([]);
    return this;
  }

  async #caller(): Promise<void> {
    const execution = await this.#patiently(() =>
      this.#controllers[0] ? execute(this.#controllers[0], "h1") : Promise.reject(new Error("nobody")),
    );
    this.#runId = execution.runId;
    this.#told = (await execution.finished).map(({ state }) => state);
    this.#over = true;
  }

  async #maintain(at: number): Promise<void> {
    // The controller that is an hour ahead finds every run past its deadline.
    for (let rounds = 0; rounds < 4 || (!this.#over && rounds < 40); rounds++) {
      const pause = this.#random.next() * 12;
      for (let turns = 0; turns < pause; turns++) await this.#pause();
      await this.#controllers[at]?.maintain("matrix").catch(() => undefined);
    }
  }

  async #reader(): Promise<void> {
    while (!this.#over) {
      await this.#pause();
      if (this.#runId === "") continue;
      for (const row of await rowsOf(this.#runId)) this.#seen.push(String(row["status"]));
    }
  }

  async #dispatch(): Promise<Partial<CommandOutcome>> {
    this.#began += 1;
    if (this.#began > 1) this.takenOver += 1;
    const pause = this.#random.next() * 20;
    for (let turns = 0; turns < pause; turns++) await this.#pause();
    return this.#random.next() < 0.6
      ? { state: this.#result, code: this.#result === "ok" ? 0 : 1 }
      : { state: "timeout", message: "no word" };
  }

  #pause(): Promise<void> {
    return this.#turns.turn(() => Promise.resolve());
  }

  /** Repeats a refused call to begin the run; the last run counts. */
  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
      }
    }
  }

  /** Its controllers see only runs of this history. */
  #stores(): Stores {
    return {
      system: () => engine.system(),
      tenant: async (name) => {
        const store = await engine.tenant(name);
        const { kv } = store;
        const call = <T>(action: () => Promise<T>) => this.#turns.turn(action);
        const list = async (prefix: string, options?: Parameters<typeof kv.list>[1]) => {
          const mine =
            prefix === "jobs/open/" ? `jobs/open/${this.#runId === "" ? "none" : this.#runId}/` : "jobs/none/";
          return kv.list(mine, options);
        };
        return {
          ...store,
          kv: Object.assign(Object.create(kv) as typeof kv, {
            list,
            get: (key: string) => call(() => kv.get(key)),
            watch: (...wanted: Parameters<typeof kv.watch>) => kv.watch(...wanted),
            txn: (request: Parameters<typeof kv.txn>[0]) => call(() => kv.txn(request)),
            delete: (...wanted: Parameters<typeof kv.delete>) => call(() => kv.delete(...wanted)),
          }),
        };
      },
    };
  }

  #objects(): Used {
    return inserting((...call) => this.#turns.turn(() => objects.unrestricted.insert(...call)));
  }
}
