import { afterAll, describe, expect, it } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import type { Random } from "../../../../common/time.ts";
import type { CommandOutput, CommandResult } from "../../../../proto/gen/agent/v1/agent.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { prove } from "../../../../test/helpers/runs/evidence.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { CommandRecords } from "./records.ts";
import { CommandWait, endingOf } from "./wait.ts";

const ROUNDS = 2_000;
const TARGET = { tenant: "matrix", host: "web-1", traceparent: "" };

/** The stored data of one command. Reads yield between steps, see data stored in the meantime, and sometimes fail. */
class StoredCommand {
  readonly pieces: CommandOutput[] = [];
  end: CommandResult | undefined;
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  async result(): Promise<CommandResult | undefined> {
    await turns(this.#random, 3);
    return this.end;
  }

  async *output(_target: unknown, _commandId: string, offset: number): AsyncGenerator<CommandOutput> {
    await turns(this.#random, 3);
    const found = this.pieces.filter((piece) => piece.offset + piece.data.length > offset);
    for (const piece of found.sort((a, b) => a.offset - b.offset)) {
      await turns(this.#random, 1);
      yield piece;
    }
  }
}

describe("a command that is waited for", () => {
  let rounds = 0;
  afterAll(() => rounds === ROUNDS && prove("command-output-once", { rounds, seeds: [`1 to ${ROUNDS}`] }));

  it("has every byte once and in order and ends after the last, whatever is told twice, late or never", async () => {
    for (let seed = 1; seed <= ROUNDS; seed++) {
      const { heard, expected, state } = await history(seed);
      expect(heard, `seed ${seed}`).toBe(expected);
      expect(state, `seed ${seed}`).toBe("ok");
      rounds++;
    }
  });

  it("is not held up by a store that is away for a moment", async () => {
    const stored = new StoredCommand(seededRandom(1));
    let away = true;
    const result = (): Promise<CommandResult | undefined> => {
      if (!away) return stored.result();
      away = false;
      return Promise.reject(new AppError("unavailable", "The store is away."));
    };
    stored.end = resultOf();
    const { wait } = waitFor({ result, output: () => stored.output(TARGET, "c", 0) });
    wait.catchUp();
    expect(await wait.outcome).toMatchObject({ state: "ok", code: 0 });
  });

  it("passes bytes over that are missing when its end is stored, and waits for them before", async () => {
    const stored = new StoredCommand(seededRandom(1));
    const piece = (offset: number, text: string): CommandOutput => {
      return { commandId: "c", stderr: false, offset, data: Buffer.from(text) };
    };
    stored.pieces.push(piece(0, "a"), piece(5, "b"));
    const early = waitFor(stored);
    early.wait.catchUp();
    await turns({ ...seededRandom(1), next: () => 1 }, 50);
    expect(early.heard()).toBe("a");
    stored.end = resultOf();
    const { wait, heard } = waitFor(stored);
    wait.catchUp();
    await wait.outcome;
    expect(heard()).toBe("ab");
  });

  it("ends by what is stored when its time is over, else by the deadline", async () => {
    const stored = new StoredCommand(seededRandom(1));
    const late = waitFor(stored);
    late.wait.ranOut({ state: "timeout", message: "late" });
    await late.wait.finishUnlessStored();
    expect(await late.wait.outcome).toMatchObject({ state: "timeout", message: "late" });
    stored.end = resultOf();
    const unread = waitFor({
      result: () => Promise.reject(new AppError("unavailable", "The store is away.")),
      output: () => stored.output(TARGET, "c", 0),
    });
    unread.wait.catchUp();
    unread.wait.result(resultOf());
    unread.wait.ranOut({ state: "timeout", message: "late" });
    await unread.wait.finishUnlessStored();
    expect(await unread.wait.outcome).toMatchObject({ state: "ok", message: "(its output could not be read whole)" });
    const told = waitFor(stored);
    told.wait.ranOut({ state: "timeout", message: "late" });
    await told.wait.finishUnlessStored();
    expect(await told.wait.outcome).toMatchObject({ state: "ok" });
  });

  it("has run out when its agent ended it because it was told to at the deadline, unless somebody cancelled it before", async () => {
    const timeout = { state: "timeout", message: "late" } as const;
    const cancelled = { ...resultOf(), state: "cancelled", code: 143 };
    const late = waitFor(new StoredCommand(seededRandom(1)));
    late.wait.ranOut(timeout);
    const ended = late.wait.finishUnlessStored();
    late.wait.result(cancelled);
    await ended;
    expect(await late.wait.outcome).toMatchObject(timeout);
    const stopped = waitFor(new StoredCommand(seededRandom(1)), AbortSignal.abort());
    stopped.wait.ranOut(timeout);
    const stopping = stopped.wait.finishUnlessStored();
    stopped.wait.result(cancelled);
    await stopping;
    expect(await stopped.wait.outcome).toMatchObject({ state: "cancelled" });
  });

  it("ends by what is stored when a report was lost", async () => {
    const stored = new StoredCommand(seededRandom(1));
    const { wait } = waitFor(stored);
    stored.end = resultOf();
    wait.lost();
    expect(await wait.outcome).toMatchObject({ state: "ok" });
  });

  it("ends at its deadline by what is stored, without a report and before the grace of its agent", async () => {
    const stored = new StoredCommand(seededRandom(1));
    const { wait } = waitFor(stored);
    stored.end = resultOf();
    wait.ranOut({ state: "timeout", message: "late" });
    expect(await wait.outcome).toMatchObject({ state: "ok" });
  });

  it("passes nothing on after its end, though more is being read", async () => {
    const piece = (offset: number, text: string): CommandOutput => {
      return { commandId: "c", stderr: false, offset, data: Buffer.from(text) };
    };
    const { wait, heard } = waitFor({
      result: () => Promise.resolve(undefined),
      async *output() {
        yield await Promise.resolve(piece(0, "a"));
        wait.finish({ state: "cancelled", message: "" });
        yield piece(1, "b");
      },
    });
    wait.catchUp();
    await wait.outcome;
    await turns({ ...seededRandom(1), next: () => 1 }, 50);
    expect(heard()).toBe("a");
  });

  it("ends once", async () => {
    const { wait, ends } = waitFor(new StoredCommand(seededRandom(1)));
    wait.result(resultOf());
    wait.finish({ state: "failed", message: "later" });
    expect(await wait.outcome).toMatchObject({ state: "ok" });
    expect(ends()).toBe(1);
  });

  it("was cancelled when it arrived after that with no time left, and has expired when nothing cancelled it", async () => {
    const expired = { ...resultOf(), state: "expired", message: "no time left" };
    const of = async (signal?: AbortSignal) => {
      const { wait } = waitFor(new StoredCommand(seededRandom(1)), signal);
      wait.result(expired);
      return wait.outcome;
    };
    const cancelled = { state: "cancelled", message: "It was cancelled before it began." };
    expect(await of(AbortSignal.abort())).toMatchObject(cancelled);
    expect(await of()).toMatchObject({ state: "expired", message: "no time left" });
  });

  it("goes on when an agent refuses it for an epoch that has passed", async () => {
    const { wait } = waitFor(new StoredCommand(seededRandom(1)));
    wait.state({ commandId: "c", state: "refused", message: "conflict: Epoch 3 has passed: 4 was seen." });
    expect(wait.over).toBe(false);
    wait.state({ commandId: "c", state: "refused", message: "limited: full" });
    expect(await wait.outcome).toMatchObject({ state: "failed", message: "limited: full" });
  });

  it("says that an agent is too old, if it found nothing to do in the command", async () => {
    const { wait } = waitFor(new StoredCommand(seededRandom(1)));
    wait.state({ commandId: "c", state: "refused", message: "invalid: The command has no id or nothing to do." });
    expect(await wait.outcome).toMatchObject({
      state: "failed",
      message: "The agent is older than commands of this kind, and ran nothing. Update it.",
    });
  });
});

/**
 * Stores pieces in order, two at a time, so that a reader may see the later one without the earlier. Reports them
 * through one of two channels that lose, repeat and delay. After a switch of channels, or when a channel reports a
 * loss, the stored data is read, as the callers do.
 */
async function history(
  seed: number,
): Promise<{ readonly heard: string; readonly expected: string; readonly state: string }> {
  const random = seededRandom(seed);
  const stored = new StoredCommand(random);
  const { wait, heard } = waitFor(stored);
  const ways = [new Way(wait, random), new Way(wait, random)];
  let way = 0;
  let expected = "";
  wait.catchUp();
  for (let left = 1 + Math.floor(random.next() * 8); left > 0; left--) {
    const batch: CommandOutput[] = [];
    for (let count = 1 + Math.floor(random.next() * 2); count > 0; count--) {
      const text = `${seed}-${left}-${count};`;
      batch.push({ commandId: "c", stderr: false, offset: expected.length, data: Buffer.from(text) });
      expected += text;
    }
    if (random.next() < 0.5) for (const piece of batch) wait.coming(piece);
    for (const piece of random.next() < 0.5 ? batch : batch.toReversed()) {
      stored.pieces.push(piece);
      await turns(random, 2);
    }
    for (const piece of batch) ways[way]?.tell((to) => to.output(piece));
    if (random.next() < 0.2) ways[way]?.lose();
    if (random.next() < 0.3) {
      way = 1 - way;
      wait.catchUp();
    }
    await turns(random, 3);
  }
  const result = resultOf();
  stored.end = result;
  ways[way]?.tell((to) => to.result(result));
  for (const one of ways) one.flush();
  const { state } = await wait.outcome;
  return { heard: heard(), expected, state };
}

/** Keeps the order of its reports. Reports a loss before anything later. */
class Way {
  readonly #wait: CommandWait;
  readonly #random: Random;
  readonly #queue: ((to: CommandWait) => void)[] = [];
  #losing = false;

  constructor(wait: CommandWait, random: Random) {
    this.#wait = wait;
    this.#random = random;
  }

  tell(event: (to: CommandWait) => void): void {
    if (this.#losing && this.#random.next() < 0.7) return;
    if (this.#losing) this.#queue.push((to) => to.lost());
    this.#losing = false;
    this.#queue.push(event);
    if (this.#random.next() < 0.2) this.#queue.push(event);
    if (this.#random.next() < 0.6) this.#deliver();
  }

  lose(): void {
    this.#losing = true;
  }

  flush(): void {
    this.#queue.push((to) => to.lost());
    this.#deliver();
  }

  #deliver(): void {
    for (const event of this.#queue.splice(0)) event(this.#wait);
  }
}

function waitFor(
  stored: Pick<StoredCommand, "result"> & { output: StoredCommand["output"] },
  signal = new AbortController().signal,
) {
  let text = "";
  let ends = 0;
  const records = { result: () => stored.result(), output: stored.output.bind(stored) } as unknown as CommandRecords;
  const onOutput = ({ data }: { readonly data: Uint8Array }): void => void (text += Buffer.from(data).toString());
  const options = { commandId: "c", timeoutMs: 60_000, onOutput, signal };
  const wait = new CommandWait({
    target: TARGET,
    options,
    runtime: testRuntime(realClock),
    records,
    over: () => void (ends += 1),
  });
  return { wait, heard: () => text, ends: () => ends };
}

it.each(["pid", "outDropped", "errDropped"] as const)("%s is what the agent says where that can be one", (member) => {
  expect(endingOf({ ...resultOf(), [member]: 71 })).toMatchObject({ [member]: 71 });
  for (const none of [resultOf(), { ...resultOf(), [member]: 0 }, { ...resultOf(), [member]: -5 }])
    expect(endingOf(none)).not.toHaveProperty(member);
});

it.each([
  ["ok", ""],
  ["failed", "The command ended with code 3."],
  ["interrupted", "The agent was interrupted while the command ran."],
  ["timeout", "The command ended as timeout."],
])("an end as %s that its agent says nothing about is explained: %s", (state, message) => {
  expect(endingOf({ ...resultOf(), state, code: 3 }).message).toBe(message);
  expect(endingOf({ ...resultOf(), state, code: 3, message: "as it is" }).message).toBe("as it is");
});

function resultOf(): CommandResult {
  return { commandId: "c", state: "ok", code: 0, message: "", startedMs: 1, endedMs: 2 };
}

async function turns(random: Random, max: number): Promise<void> {
  for (let left = Math.floor(random.next() * (max + 1)); left > 0; left--) await Promise.resolve();
}
