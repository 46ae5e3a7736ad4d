import { createHash } from "node:crypto";
import {
  HOST_FACT_MAX_BYTES,
  HOST_FACTS_MAX_ENTRIES,
  HOST_FACTS_MIN_INTERVAL_MS,
  HOST_STATES_MIN_INTERVAL_MS,
  POLICY_STATES_MAX,
} from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import { CONF_STATE, POLICY_STATE, USAGE_STATE } from "../store.ts";

const STATES = [POLICY_STATE, CONF_STATE];
/** Lists that an agent always sends whole. Usage changes all the time, so it waits for the next write. */
const LISTS = [...STATES, USAGE_STATE];

type Facts = Readonly<Record<string, string>>;

/** Facts that an agent reports about its host, buffered so that they are written at most once per interval. */
export class HostFacts {
  readonly #clock: Clock;
  readonly #write: (values: Facts) => Promise<void>;
  #waiting: Facts = {};
  #writtenAtMs: number | undefined;
  /** Hash of the policy states that the agent sent last. */
  #receivedStates: string | undefined;
  #writtenStates: string | undefined;

  constructor(clock: Clock, write: (values: Facts) => Promise<void>) {
    this.#clock = clock;
    this.#write = write;
  }

  /** Writes the facts if the last write is old enough; otherwise newer values wait for the next write. */
  async note(values: Facts): Promise<void> {
    const fitting = Object.entries(values).filter(
      ([name, value]) => name.length + Buffer.byteLength(value) <= HOST_FACT_MAX_BYTES,
    );
    const statesChanged = this.#noteStates(values);
    this.#waiting = {
      ...this.#waiting,
      ...Object.fromEntries(fitting.slice(0, HOST_FACTS_MAX_ENTRIES + LISTS.length * POLICY_STATES_MAX)),
    };
    const nowMs = this.#clock.monotonicMs();
    const intervalMs = statesChanged ? HOST_STATES_MIN_INTERVAL_MS : HOST_FACTS_MIN_INTERVAL_MS;
    const dueMs = this.#writtenAtMs === undefined ? nowMs : this.#writtenAtMs + intervalMs;
    if (nowMs < dueMs || Object.keys(this.#waiting).length === 0) return;
    this.#writtenAtMs = nowMs;
    this.#writtenStates = this.#receivedStates;
    const facts = this.#waiting;
    this.#waiting = {};
    await this.#write(facts);
  }

  /**
   * Drops waiting states of policies and confs, and usage, if there are new ones, because an agent always sends all of them.
   * Returns true until the last states are written.
   */
  #noteStates(values: Facts): boolean {
    const sent = LISTS.filter((prefix) => values[prefix] !== undefined);
    this.#waiting = Object.fromEntries(Object.entries(this.#waiting).filter(([name]) => !isIn(sent, name)));
    const sentStates = sent.filter((prefix) => STATES.includes(prefix));
    if (sentStates.length > 0) {
      const states = Object.entries(values).filter(([name]) => isIn(sentStates, name));
      this.#receivedStates = createHash("sha256").update(JSON.stringify(states.sort())).digest("base64");
    }
    return this.#receivedStates !== this.#writtenStates;
  }
}

function isIn(prefixes: readonly string[], name: string): boolean {
  return prefixes.some((prefix) => name.startsWith(prefix));
}
