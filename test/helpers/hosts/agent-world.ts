import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import type { CommandPolicySpec, LogPolicySpec } from "../../../common/api/policies.ts";
import { OUTBOX_MAX_BYTES } from "../../../common/limits.ts";
import { realClock, seededRandom } from "../time/clock.ts";
import { FakeController } from "./fake-controller.ts";
import { runAgent } from "../../../agent/agent.ts";
import type { AgentConfig } from "../../../agent/config.ts";

/** Agents in this process, and the controller in memory that they connect to. */

/** The controller of the running test. */
export let controller: FakeController;
/** Folder of the agents of the running test. */
export let folder: string;

interface RunningAgent {
  /** Ends the agent in good order. */
  readonly end: AbortController;
  /** Resolves when the agent has ended; rejects if it could not work. */
  readonly done: Promise<void>;
  /** The lines of its log. */
  readonly lines: string[];
}

let running: RunningAgent[];

/** Opens a controller and a folder for each test of the calling file, and ends its agents after it. */
export function useAgents(): void {
  beforeEach(async () => {
    controller = await FakeController.start();
    folder = await mkdtemp(join(tmpdir(), "odp-agent-"));
    running = [];
  });
  afterEach(async () => {
    for (const { end } of running) end.abort();
    await Promise.allSettled(running.map(({ done }) => done));
    await controller.stop();
    await rm(folder, { recursive: true, force: true });
  });
}

/** Starts an agent with a new join token. */
export function startAgent(
  config: Partial<Pick<AgentConfig, "token" | "outboxMaxBytes" | "name" | "isNamed" | "enrolsAgain">> = {},
): RunningAgent {
  const end = new AbortController();
  const lines: string[] = [];
  const log = (level: string, message: string, fields?: object) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const world = {
    clock: realClock,
    random: seededRandom(1),
    log,
    environment: { PATH: process.env.PATH },
    version: "test",
  };
  const settings = {
    controller: controller.url,
    token: controller.joinToken,
    name: "test-host",
    isNamed: false,
    enrolsAgain: true,
    folder,
    outboxMaxBytes: OUTBOX_MAX_BYTES,
    isTunnelOpen: () => false,
    ...config,
  };
  const done = runAgent(settings, world, end.signal);
  done.catch(() => undefined);
  running.push({ end, done, lines });
  return { end, done, lines };
}

/** Returns the body of a command that runs this line. */
export function exec(line: string, options: { stdin?: string; streamOutput?: boolean; depot?: string } = {}) {
  const { stdin = "", streamOutput = false, depot = "" } = options;
  return { $case: "exec" as const, value: { line, environment: {}, depot, streamOutput, stdin: Buffer.from(stdin) } };
}

/** Returns a depot of these files (text by path), which the controller serves. `line` runs after a deployment. */
export function depot(name: string, version: string, files: Record<string, string>, line: string) {
  const list = Object.entries(files).map(([path, text]) => {
    const digest = createHash("sha256").update(text).digest("hex");
    controller.contents.set(digest, Buffer.from(text));
    return { path, digest, size: text.length, executable: path.startsWith("bin/") };
  });
  return { name, version, files: list, command: line, remotePath: "", environment: {} };
}

/** Waits for the result of a command, and fails if it has another state. */
export async function result(id: string, state: string): Promise<void> {
  await controller.until(`result of ${id}`, () =>
    controller.bodies("result").some(({ commandId }) => commandId === id),
  );
  expect(controller.bodies("result").find(({ commandId }) => commandId === id)).toMatchObject({ state });
}

/** Returns the output of a command up to now. */
export function output(id: string, stderr: boolean): string {
  const pieces = controller.bodies("output").filter((piece) => piece.commandId === id && piece.stderr === stderr);
  return pieces.map(({ data }) => data.toString()).join("");
}

/** Returns a command policy named `p`, of every minute unless `spec` says otherwise. */
export function commandPolicy(spec: Partial<CommandPolicySpec>) {
  const whole: CommandPolicySpec = {
    name: "p",
    kind: "command",
    rule: "/matrix/rules/r",
    command: "true",
    ctype: 1,
    interval: 1,
    unit: "minute",
    ...spec,
  };
  return { name: "p", revision: 1, spec: JSON.stringify(whole), depot: undefined };
}

/** Returns a log policy named `l`. */
export function logPolicy(spec: Partial<LogPolicySpec>) {
  const whole: LogPolicySpec = { name: "l", kind: "log", rule: "/matrix/rules/r", dir: "/", match: ".", ...spec };
  return { name: "l", revision: 1, spec: JSON.stringify(whole), depot: undefined };
}
