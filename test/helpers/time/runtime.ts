import { pino } from "pino";
import type { Clock } from "../../../common/time.ts";
import { ROLES, type Principal, type RoleName } from "../../../controller/areas/permissions/index.ts";
import { secretBox } from "../../../controller/secrets/index.ts";
import type { Runtime } from "../../../controller/runtime.ts";

/** A clock that only a test moves. */
export class TestClock implements Clock {
  #nowMs: number;
  readonly #timers = new Set<{ readonly dueMs: number; readonly callback: () => void }>();

  constructor(nowMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { dueMs: this.#nowMs + delayMs, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Fires due timers in their order. */
  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    for (;;) {
      const next = [...this.#timers].filter((timer) => timer.dueMs <= untilMs).sort((a, b) => a.dueMs - b.dueMs)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.callback();
    }
    this.#nowMs = untilMs;
  }

  get waiting(): number {
    return this.#timers.size;
  }
}

/** Sealing key of a controller in tests. */
export const TEST_SECRETS = secretBox([Buffer.alloc(32, 7)]);

/** No log, a clock that stands still, and repeatable randomness. */
export function testRuntime(clock: Clock = new TestClock()): Runtime {
  let counter = 0;
  const bytes = (count: number): Uint8Array => {
    counter++;
    return Uint8Array.from({ length: count }, (_, at) => (counter >> (8 * (count - 1 - at))) & 0xff);
  };
  return { clock, random: { next: () => 0.5, bytes }, log: pino({ level: "silent" }) };
}

export function testPrincipal(role: RoleName = "administrator", tenant = "matrix"): Principal {
  return { tenant, ospace: `/${tenant}`, user: role, groups: [], ...ROLES[role], traceparent: "" };
}
