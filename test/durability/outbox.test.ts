import { expect } from "vitest";
import { emitWhenRoom } from "../../agent/policies/host.ts";
import { Journal } from "../../agent/commands/journal.ts";
import { Outbox, type Emission } from "../../agent/outbox/outbox.ts";
import type { Random } from "../../common/time.ts";
import type { Entry } from "../../proto/gen/agent/v1/agent.ts";
import { histories } from "./histories.ts";
import { liveThrough, type Life } from "./lives.ts";

const PRODUCERS = ["a", "b", "c"];
const RECORDS_MAX = 12;
const COMMANDS_MAX = 6;

histories({
  promise: "agent-power-cut",
  part: "the agent's outbox and journal",
  count: 120,
  found: [
    ["a folder whose name was never durable", 1],
    ["an unsynced write of a killed agent, taken over and sent", 287],
    ["a file of a killed agent whose name was not durable", 134],
    ["a write whose sync failed, read by the next agent and never on the disk", 289_739_391],
    ["a deleted file that came back although one behind it did not", 308_691_913],
  ],
  history: async (seed) => {
    const world = new World();
    await liveThrough({ seed, lives: 5, operationsMax: 160, live: (life) => world.live(life) });
    world.conclude();
  },
});

/** Data of the controllers, and answers that the agent's parts got: the memory that survives everything. */
class World {
  /** Contents of entries by stream, then by sequence. */
  readonly #received = new Map<string, Map<number, string>>();
  readonly #acknowledged = new Map<string, number>();
  readonly #answered = new Map<string, number>();
  readonly #started = new Set<string>();
  #commands = 0;

  async live({ files, clock, random, disk, last, end }: Life): Promise<void> {
    const outbox = await Outbox.open({ folder: "/var/agent/outbox", files, clock, random, maxBytes: 32_768 });
    const journal = new Journal(outbox, clock);
    this.#checkMarks(outbox, journal);
    await this.#checkEntries(outbox);
    const fails = !last && random.next() < 0.2 ? 0.02 : 0;
    disk.faults.capacityBytes = !last && random.next() < 0.2 ? 24_096 + Math.floor(random.next() * 40_000) : Infinity;
    disk.faults.fails = () => fails > 0 && random.next() < fails;
    const writes = Promise.all([
      journal.finishInterrupted(),
      ...PRODUCERS.map((name) => this.#produce(outbox, name, random.next() * 1_500)),
      this.#command(outbox, journal),
      this.#command(outbox, journal),
    ]);
    try {
      await Promise.all([writes, this.#receive(outbox, writes, random)]);
    } catch (error) {
      if (!isBroken(error)) throw error;
      end();
    }
    disk.faults.capacityBytes = !last && random.next() < 0.2 ? 24_096 + Math.floor(random.next() * 40_000) : Infinity;
    disk.faults.fails = () => false;
    disk.faults.capacityBytes = Infinity;
    if (last) await this.#receiveAll(outbox);
  }

  conclude(): void {
    const results = this.#texts().filter((text) => text.startsWith("result "));
    for (const id of this.#started)
      expect(
        results.filter((text) => text === `result ${id}`),
        `results of ${id}`,
      ).toHaveLength(1);
    for (const name of PRODUCERS) {
      const numbers = this.#texts()
        .filter((text) => text.startsWith(`${name} `))
        .map((text) => Number(text.split(" ")[1]));
      expect(numbers, `records of ${name}`).toEqual(numbers.map((_, index) => index + 1));
      expect(numbers.length).toBeGreaterThanOrEqual(this.#answered.get(name) ?? 0);
    }
  }

  #texts(): string[] {
    return [...this.#received.values()].flatMap((entries) => [...entries.values()]);
  }

  #checkMarks(outbox: Outbox, journal: Journal): void {
    for (const [name, answered] of this.#answered)
      expect(Number(outbox.mark(`at/${name}`)), `mark of ${name}`).toBeGreaterThanOrEqual(answered);
    for (const id of this.#started) expect(journal.has(id), `${id} is in the journal`).toBe(true);
    expect(outbox.damagedFrames, "damaged frames").toBe(0);
    const acknowledged = this.#acknowledged.get(outbox.streamId) ?? 0;
    expect(outbox.nextSequence, "what was sent is still known").toBeGreaterThan(acknowledged);
  }

  /** Entries of a deleted file may come back, but without a gap after them. */
  async #checkEntries(outbox: Outbox): Promise<void> {
    const reader = outbox.reader(outbox.firstSequence);
    let expected = outbox.firstSequence;
    for (
      let entries = await reader.next(100, 1_000_000);
      entries.length > 0;
      entries = await reader.next(100, 1_000_000)
    ) {
      for (const { sequence } of entries) expect(sequence, "entries follow each other").toBe(expected++);
    }
    await reader.close();
    expect(expected, "entries go to the end").toBe(outbox.nextSequence);
  }

  /** Emits records from its own mark on, like a reader of logs. */
  async #produce(outbox: Outbox, name: string, bytes: number): Promise<void> {
    const key = `at/${name}`;
    for (let n = Number(outbox.mark(key) ?? 0) + 1, count = 0; count < RECORDS_MAX; n++, count++) {
      await persistently(() =>
        emitWhenRoom(outbox, [text(`${name} ${n}`, bytes)], { marks: [{ key, value: String(n) }] }),
      );
      this.#answered.set(name, n);
    }
  }

  async #command(outbox: Outbox, journal: Journal): Promise<void> {
    for (let count = 0; count < COMMANDS_MAX; count++) {
      const id = `command-${++this.#commands}`;
      await outbox.room(undefined, true);
      try {
        await journal.start(id, 1_000, "");
      } catch (error) {
        if (isTransient(error)) continue;
        throw error;
      }
      this.#started.add(id);
      await persistently(() => journal.finish({ commandId: id, state: "ok", code: 0, message: "" }));
    }
  }

  /** Receives entries, and delays acknowledgements while the outbox has room. */
  async #receive(outbox: Outbox, writes: Promise<unknown>, random: Random): Promise<void> {
    const reader = outbox.reader(await this.#welcome(outbox));
    let over = false;
    const ended = writes.then(
      () => (over = true),
      () => (over = true),
    );
    while (!over) {
      const seen = outbox.version;
      const entries = await reader.next(8, 4_000);
      this.#take(outbox.streamId, entries);
      if (random.next() < 0.3 || !outbox.hasRoom())
        await this.#acknowledge(outbox, this.#received.get(outbox.streamId)?.size ?? 0);
      if (entries.length === 0) await Promise.race([outbox.changed(seen), ended]);
    }
    await reader.close();
  }

  async #receiveAll(outbox: Outbox): Promise<void> {
    const reader = outbox.reader(await this.#welcome(outbox));
    for (let entries = await reader.next(8, 4_000); entries.length > 0; entries = await reader.next(8, 4_000)) {
      this.#take(outbox.streamId, entries);
      await this.#acknowledge(outbox, entries.at(-1)?.sequence ?? 0);
    }
    await reader.close();
  }

  async #welcome(outbox: Outbox): Promise<number> {
    const known = this.#acknowledged.get(outbox.streamId) ?? 0;
    await outbox.acknowledge(known);
    return Math.max(known, outbox.firstSequence - 1) + 1;
  }

  #take(stream: string, entries: readonly Entry[]): void {
    const received = this.#received.get(stream) ?? new Map<number, string>();
    this.#received.set(stream, received);
    for (const entry of entries) {
      const [known, content] = [received.get(entry.sequence), contentOf(entry)];
      if (known !== undefined) expect(content, `entry ${entry.sequence} sent again`).toBe(known);
      else expect(entry.sequence, "sequence without holes").toBe(received.size + 1);
      received.set(entry.sequence, content);
    }
  }

  async #acknowledge(outbox: Outbox, through: number): Promise<void> {
    this.#acknowledged.set(outbox.streamId, through);
    await outbox.acknowledge(through);
  }
}

/** Repeats a failed write, of which nothing may have been stored. */
async function persistently(write: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (!isTransient(error)) throw error;
    }
  }
}

function isTransient(error: unknown): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    (error.code === "EIO" || error.code === "unavailable" || error.code === "limited")
  );
}

function isBroken(error: unknown): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    (error.code === "EIO" || error.code === "unavailable" || error.code === "internal")
  );
}

function text(content: string, bytes: number): Emission {
  return {
    body: {
      $case: "output",
      value: { commandId: content, stderr: false, offset: 0, data: Buffer.alloc(Math.floor(bytes), content) },
    },
  };
}

function contentOf({ body }: Entry): string {
  if (body?.$case === "output") return body.value.commandId;
  return body?.$case === "result" ? `result ${body.value.commandId}` : String(body?.$case);
}
