import { cp } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createExec } from "../../../agent/commands/exec.ts";
import { createHost } from "../../../agent/policies/host.ts";
import type { Log } from "../../../agent/log.ts";
import { Outbox } from "../../../agent/outbox/outbox.ts";
import { logPolicy } from "../../../agent/plugins/log-policy/log-policy.ts";
import { Supervisor } from "../../../agent/policies/supervisor.ts";
import type { LogPolicySpec } from "../../../common/api/policies.ts";
import type { Clock } from "../../../common/time.ts";
import { realClock, seededRandom } from "../time/clock.ts";

const SPEED = 20;
const DEADLINE_MS = 30_000;

/** A clock whose waits pass faster. */
const quickClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now() * SPEED,
  after: (delayMs, callback) => realClock.after(delayMs / SPEED, callback),
};

/** The parts of an agent that follow logs. */
export class LogAgent {
  readonly #outbox: Outbox;
  readonly #supervisor: Supervisor;
  readonly #folder: string;

  private constructor(outbox: Outbox, supervisor: Supervisor, folder: string) {
    this.#outbox = outbox;
    this.#supervisor = supervisor;
    this.#folder = folder;
  }

  static async start(
    folder: string,
    outboxFolder: string,
    { spec, log, clock = quickClock }: { spec: LogPolicySpec; log: Log; clock?: Clock },
  ): Promise<LogAgent> {
    const random = seededRandom(1);
    const outbox = await Outbox.open({ folder: outboxFolder, clock, random });
    const exec = createExec({ clock, folder: join(folder, "running"), environment: {} });
    const depots = { folder: () => undefined, ensure: () => Promise.reject(new Error("no depots here")) };
    const host = createHost({ log, clock, random, exec, depots, outbox });
    const supervisor = new Supervisor({ host, plugins: [logPolicy], folder: join(folder, "policies") });
    supervisor.apply({
      revision: 1,
      policies: [{ name: "p", revision: 1, spec: JSON.stringify(spec), depot: undefined }],
    });
    return new LogAgent(outbox, supervisor, outboxFolder);
  }

  get state(): string | undefined {
    return this.#supervisor.states.get("p");
  }

  /** Waits until the log is followed. Files rotated before the policy arrived are not read. */
  following(): Promise<void> {
    return this.follows(1);
  }

  /** Resolves when at least that many lives are followed. */
  async follows(count: number): Promise<void> {
    for (
      const end = performance.now() + DEADLINE_MS;
      this.#outbox.marks("policy/p/file-").length < count;
      await pause(5)
    ) {
      if (performance.now() > end) throw new Error("The log is not followed.");
    }
  }

  /** The stored state of each life of a file, as JSON. */
  lives(): readonly string[] {
    return this.#outbox.marks("policy/p/file-").map(([, value]) => value);
  }

  /** Stops the agent; its disk at this moment is copied for the next one. */
  async kill(next: string): Promise<void> {
    await cp(this.#folder, next, { recursive: true });
    await this.stop();
  }

  async stop(): Promise<void> {
    await this.#supervisor.stop();
    await this.#outbox.close();
  }

  async lines(): Promise<string[]> {
    return (await this.records()).flatMap(({ records }) => records.map((record) => record.toString()));
  }

  records() {
    return this.#bodies("records");
  }

  gaps() {
    return this.#bodies("gap");
  }

  async #bodies<C extends "records" | "gap">(kind: C) {
    const reader = this.#outbox.reader(1);
    const found = [];
    for (
      let entries = await reader.next(1_000, 1 << 20);
      entries.length > 0;
      entries = await reader.next(1_000, 1 << 20)
    ) {
      for (const { body } of entries)
        if (body?.$case === kind) found.push(body.value as Extract<typeof body, { $case: C }>["value"]);
    }
    await reader.close();
    return found;
  }
}
