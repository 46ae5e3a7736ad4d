import { setImmediate as turn } from "node:timers/promises";
import { SESSION_HEARTBEAT_MS } from "../../../common/limits.ts";
import {
  AgentSessions,
  type AgentSessionsDependencies,
} from "../../../controller/areas/hosts/session/agent-sessions.ts";
import { Presence } from "../../../controller/areas/hosts/session/presence.ts";
import type {
  AgentChannel,
  AgentIdentity,
  AgentSession,
  DesiredStateSource,
} from "../../../controller/areas/hosts/types.ts";
import type { KvStore } from "../../../controller/store/kv.ts";
import type { AgentFrame, ControllerFrame, Entry, Hello } from "../../../proto/gen/agent/v1/agent.ts";
import { MemoryDatabase } from "../engines/memory/engine.ts";
import { TestClock, testRuntime } from "../time/runtime.ts";
import { wrappedKv } from "../engines/wrapped-kv.ts";

type Frame = NonNullable<ControllerFrame["frame"]>;
type Desired = Awaited<ReturnType<DesiredStateSource["desired"]>>;
type Facts = Readonly<Record<string, string>>;

/** Stream of every agent. */
export const STREAM = "stream-of-a-test";
/** Hello of every agent, unless a test changes it. */
export const HELLO: Hello = {
  protocol: 1,
  agentVersion: "test",
  streamId: STREAM,
  firstSequence: 1,
  facts: undefined,
  desiredRevision: 0,
  highestEpoch: 0,
  tunnels: false,
};
/** A policy without files. */
export const NO_DEPOT = { name: "p", revision: 1, spec: "{}" };

/** The agent's side of a session. */
export class Wire implements AgentChannel {
  readonly frames: Frame[] = [];
  refused: { readonly code: string; readonly message: string } | undefined;

  send({ frame }: ControllerFrame): void {
    if (frame) this.frames.push(frame);
  }

  close(reason?: { readonly code: string; readonly message: string }): void {
    this.refused ??= reason;
  }

  /** Returns the frames of one kind that the agent got, in their order. */
  of<C extends Frame["$case"]>(kind: C): readonly Extract<Frame, { $case: C }>["value"][] {
    return this.frames.flatMap((frame) => (frame.$case === kind ? [frame.value as never] : []));
  }
}

interface Controller extends AsyncDisposable {
  readonly sessions: AgentSessions;
  readonly presence: Presence;
  /** Facts written to the host's record. */
  readonly facts: Facts[];
  /** Entries passed to the sink. */
  readonly kept: Entry[];
  /** The sink waits for this promise. */
  gate: Promise<void>;
  desired: Desired;
  /** Number of times the desired state was read. */
  reads: number;
  /** Opens a session for the host. */
  come(host: string, hello?: Partial<Hello>): Promise<{ readonly session: AgentSession; readonly wire: Wire }>;
}

/** Controllers on one store in memory, with one clock. */
export class SessionWorld {
  readonly clock = new TestClock();
  readonly runtime = testRuntime(this.clock);
  readonly #database = new MemoryDatabase(this.clock);

  /** Advances in small steps so that the lease of a controller stays alive. */
  async pass(ms: number, step: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    for (let passed = 0; passed < ms; passed += SESSION_HEARTBEAT_MS) {
      this.clock.advance(SESSION_HEARTBEAT_MS);
      await step();
      await settled();
    }
  }

  /** Returns the store of presence, as a further controller has it. */
  async kv(): Promise<KvStore> {
    return (await this.#database.engine({ clock: this.clock }).system()).kv;
  }

  /** Starts a controller. `instead`: calls of the store that it answers differently. */
  async controller(
    name = "one",
    instead: Partial<KvStore> = {},
    dependencies: Partial<AgentSessionsDependencies> = {},
  ): Promise<Controller> {
    const kv = wrappedKv(await this.kv(), instead);
    const presence = new Presence({ kv, runtime: this.runtime, controllerId: name });
    await presence.start();
    const sessions: AgentSessions = new AgentSessions({
      kv,
      presence,
      runtime: this.runtime,
      controllerId: name,
      controllers: () => [`${name}:1`],
      admit: () => Promise.resolve(),
      opened: () => Promise.resolve(),
      left: () => undefined,
      commandState: () => undefined,
      renew: () => Promise.resolve({ certificate: Buffer.from("new"), authorities: [] }),
      facts: (_session, values) => Promise.resolve(void made.facts.push(values)),
      desired: {
        desired: () => {
          made.reads += 1;
          return Promise.resolve(made.desired);
        },
      },
      sink: {
        acknowledged: () => Promise.resolve(0),
        told: () => Promise.resolve({ time: undefined, rules: [] }),
        accept: async (_source, batches) => {
          await made.gate;
          made.kept.push(...batches.flatMap((batch) => batch.entries));
        },
      },
      ...dependencies,
    });
    const made: Controller = {
      sessions,
      presence,
      facts: [],
      kept: [],
      gate: Promise.resolve(),
      desired: { revision: 1, policies: [] },
      reads: 0,
      come: async (host, hello = {}) => {
        const wire = new Wire();
        const session = await sessions.open(identityOf(host), { ...HELLO, ...hello }, wire);
        await settled();
        return { session, wire };
      },
      [Symbol.asyncDispose]: async () => {
        await sessions.close();
        await presence.close();
      },
    };
    return made;
  }
}

/** Returns the identity of an agent of this host. */
export function identityOf(host: string): AgentIdentity {
  return { tenant: "matrix", host, serial: "1" };
}

/** Waits until all work in memory has ended or waits for the test. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) await turn();
}

/** Returns a heartbeat of the agent with these values. */
export function heard(values: Facts = {}): AgentFrame {
  return { frame: { $case: "heartbeat", value: { timeMs: 1, values } } };
}

/** Returns a batch of outputs, each of so many bytes. */
export function batch(sequences: readonly number[], bytes = 0): AgentFrame {
  const entries = sequences.map((sequence): Entry => {
    const value = { commandId: "c", stderr: false, offset: 0, data: Buffer.alloc(bytes) };
    return { sequence, timeMs: 0, traceparent: "", body: { $case: "output", value } };
  });
  return { frame: { $case: "batch", value: { streamId: STREAM, entries, pin: undefined, missing: 0 } } };
}

/** Returns a promise that waits until `open`. */
export function gate(): { readonly closed: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const closed = new Promise<void>((resolve) => (open = resolve));
  return { closed, open: () => open() };
}
