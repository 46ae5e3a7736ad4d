import type { ObjectRow } from "../../../controller/areas/objects/index.ts";
import { AgentCommands } from "../../../controller/areas/hosts/commands/commands.ts";
import type { LiveSession } from "../../../controller/areas/hosts/session/live-session.ts";
import type {
  CommandListener,
  DispatchOptions,
  HostCommand,
  PeerWatch,
  PeerWatcher,
} from "../../../controller/areas/hosts/types.ts";
import type { ControllerFrame, Entry } from "../../../proto/gen/agent/v1/agent.ts";
import { TestClock, testPrincipal, testRuntime } from "../time/runtime.ts";

export const OWN = "a";
/** Id of a controller whose address is not known yet. */
export const UNKNOWN = "unknown";
export const TARGET = { tenant: "matrix", host: "web-1", traceparent: "" };
export const EXEC: HostCommand = { kind: "exec", line: "true" };
export const FILE = { path: "run.sh", digest: "d1", size: 1, executable: true };
export const DEPLOY: HostCommand = { kind: "deploy", name: "depot", version: "1", files: [FILE] };
export const TIMEOUT_MS = 60_000;

interface Call {
  readonly controller: string;
  readonly watch: PeerWatch;
  readonly watcher: PeerWatcher;
  readonly told: string[];
}

interface World {
  /** The host's session if this controller has it. */
  session: LiveSession | undefined;
  /** The controller that is known to hold the session. */
  holder: { controller: string; epoch: number } | undefined;
  /** Number of lookups of the holder. */
  lookups: number;
  /** Rows of commands in the store, in addition to those that a test stores. */
  rows: readonly ObjectRow[];
  /** Resolves when the store has accepted the data. */
  storing: Promise<void>;
}

/** The commands of a controller. A test sets its sessions and the other controllers that it sees. */
export function openCommands({ given }: { readonly given?: readonly string[] } = {}) {
  const clock = new TestClock();
  const sent: string[] = [];
  const stored: unknown[] = [];
  const calls: Call[] = [];
  const state: World = { session: undefined, holder: undefined, lookups: 0, rows: [], storing: Promise.resolve() };
  const commands = new AgentCommands({
    runtime: testRuntime(clock),
    controllerId: OWN,
    objects: {
      unrestricted: {
        ingest: async (_principal, _path, records) => {
          await state.storing;
          stored.push(...records);
          return [] as never;
        },
        async *read(_principal, request) {
          await Promise.resolve();
          yield state.rows.filter((row) => row.class.path === request.class);
        },
        get: () => Promise.resolve([]),
      },
    },
    live: (tenant, host) => (tenant === TARGET.tenant && host === TARGET.host ? state.session : undefined),
    presence: {
      holderOf: () => {
        state.lookups++;
        return state.holder ? Promise.resolve(state.holder as never) : Promise.reject(new Error("away"));
      },
    },
    peers: {
      watch: (controller, watch, watcher) => {
        if (controller === UNKNOWN) return undefined;
        const told: string[] = [];
        calls.push({ controller, watch, watcher, told });
        return { cancel: () => told.push("cancel"), end: () => told.push("end") };
      },
    },
    actAs: () => Promise.resolve(testPrincipal()),
    ...(given && { given: (_tenant, _host, id) => Promise.resolve(given.includes(id)) }),
  });
  return {
    commands,
    clock,
    sent,
    stored,
    calls,
    state,
    /** Opens the host's session here under that epoch. Absent: the session is over. */
    session: (epoch?: number) => {
      state.session = epoch === undefined ? undefined : sessionOf(epoch, sent);
      if (epoch !== undefined) commands.follow(TARGET.tenant, TARGET.host);
    },
    run: (options: Partial<DispatchOptions> = {}, command = EXEC) => {
      const outcome = commands.run(TARGET, command, { commandId: "c", timeoutMs: TIMEOUT_MS, ...options });
      const now: { ended?: string } = {};
      void outcome.then(({ state: as, message }) => (now.ended = message === "" ? as : `${as}: ${message}`));
      return { outcome, now };
    },
  };
}

/** A session of the host that adds the text of every frame to `sent`. */
function sessionOf(epoch: number, sent: string[]): LiveSession {
  const { tenant, host } = TARGET;
  return {
    epoch,
    identity: { tenant, host, serial: "1" },
    send: (frame: ControllerFrame["frame"]) => sent.push(frameText(frame)),
  } as unknown as LiveSession;
}

function frameText(frame: ControllerFrame["frame"]): string {
  if (frame?.$case === "command") {
    const leftMs = frame.value.deadlineMs - frame.value.sentMs;
    return `${frame.value.id} in ${frame.value.epoch}, ${leftMs} ms left`;
  }
  return frame?.$case === "cancel" ? `cancel ${frame.value.commandId} in ${frame.value.epoch}` : `${frame?.$case}`;
}

/** The stored end of the command `c`. */
export const ENDED = {
  id: "1",
  class: { path: "/matrix/system/command" },
  values: { command: "c", host: TARGET.host, state: "ok" },
} as unknown as ObjectRow;

/** Waits until all work that does not wait for time has ended. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

export function listener(told: string[]): CommandListener {
  return {
    output: ({ data }) => told.push(`output ${String(data)}`),
    result: ({ state }) => told.push(`result ${state}`),
    state: ({ state }) => told.push(`state ${state}`),
    lost: () => told.push("lost"),
    sessionOver: () => told.push("session over"),
  };
}

export function watchOf(body: PeerWatch["command"]["body"] = undefined, host = TARGET.host): PeerWatch {
  const command = { id: "p", epoch: 0, deadlineMs: 1_000, traceparent: "", sentMs: 0, body };
  return { tenant: TARGET.tenant, host, command };
}

export const output = (sequence: number, commandId: string, data = "x"): Entry => ({
  sequence,
  timeMs: 1,
  traceparent: "",
  body: { $case: "output", value: { commandId, stderr: false, offset: 0, data: Buffer.from(data) } },
});
export const result = (sequence: number, commandId: string): Entry => ({
  sequence,
  timeMs: 1,
  traceparent: "",
  body: {
    $case: "result",
    value: { commandId, state: "ok", code: 0, message: "", startedMs: 1, endedMs: 2 },
  },
});
export const SOURCE = { ...TARGET, streamId: "s" };
