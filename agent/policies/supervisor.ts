import { createHash } from "node:crypto";
import { join } from "node:path";
import { Policy, type DesiredState } from "../../proto/gen/agent/v1/agent.ts";
import { policyOfText } from "../../common/agent/policy-text.ts";
import { AppError, errorText } from "../../common/errors.ts";
import { POLICY_RESTART_MAX_MS, POLICY_RESTART_MIN_MS } from "../../common/limits.ts";
import type { Files } from "../../common/files.ts";
import { fileName } from "../../common/paths.ts";
import { wait } from "../../common/time.ts";
import { isCode, nodeFiles, writeAtomically } from "../disk/files.ts";
import { policyMarks, type Host } from "./host.ts";
import type { PolicyPlugin, Runner } from "./plugin.ts";

export interface SupervisorOptions {
  readonly host: Host;
  readonly plugins: readonly PolicyPlugin[];
  /** Holds one folder per policy. */
  readonly folder: string;
  /** The disk of this machine when absent. */
  readonly files?: Files;
}

interface Working {
  readonly policy: Policy;
  readonly abort: AbortController;
  readonly done: Promise<void>;
}

/** Begins the names of the folders of policies. */
const PREFIX = "p-";

/** Runs exactly the policies of the desired state: it starts and stops them, and restarts those that fail. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #files: Files;
  readonly #working = new Map<string, Working>();
  readonly #failures = new Map<string, string>();
  readonly #runners = new Map<string, Runner>();
  readonly #confs = new Map<string, string>();
  #wanted: DesiredState | undefined;
  #applying: Promise<void> | undefined;
  #stopped = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#files = options.files ?? nodeFiles;
  }

  /** Applies a desired state. Returns at once. A state that is followed by another before its turn is skipped. */
  apply(state: DesiredState): void {
    this.#wanted = state;
    this.#applying ??= this.#applyAll();
  }

  /**
   * The policies that this supervisor keeps running, by name: `running`, `wanted` before it runs, or `failed: ` and the
   * reason.
   */
  get states(): ReadonlyMap<string, string> {
    return new Map([...this.#working.keys()].map((name) => [name, this.#stateOf(name)]));
  }

  /** The confs that are in place, by policy: SHA-256 of the bytes, in hexadecimal digits. */
  get confs(): ReadonlyMap<string, string> {
    return this.#confs;
  }

  /** Leaders of the process groups of daemons, by policy. */
  get pids(): ReadonlyMap<string, number> {
    return new Map([...this.#runners].flatMap(([name, { pid }]) => (pid === undefined ? [] : [[name, pid]])));
  }

  #stateOf(name: string): string {
    const problem = this.#failures.get(name) ?? this.#runners.get(name)?.problem;
    if (problem !== undefined) return `failed: ${problem}`;
    return this.#runners.has(name) ? "running" : "wanted";
  }

  /** Resolves when the last given state is applied. */
  async settled(): Promise<void> {
    while (this.#applying) await this.#applying;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { abort } of this.#working.values()) abort.abort();
    await this.settled();
    await Promise.all([...this.#working.values()].map(({ done }) => done));
  }

  async #applyAll(): Promise<void> {
    await Promise.resolve();
    for (let state = this.#wanted; state && !this.#stopped; state = this.#wanted) {
      this.#wanted = undefined;
      try {
        await this.#applyOne(state);
      } catch (error) {
        this.#options.host.log("error", "state not applied", { revision: state.revision, error: errorText(error) });
      }
    }
    // No `await` may come between the check of `#wanted` and this line. A state that is given in between would not be
    // applied.
    this.#applying = undefined;
  }

  async #applyOne(state: DesiredState): Promise<void> {
    const wanted = new Map(state.policies.map((policy) => [policy.name, policy]));
    const stopping = [...this.#working.values()].filter(({ policy }) => !same(policy, wanted.get(policy.name)));
    await Promise.all(stopping.map((working) => this.#end(working)));
    await this.#forgetOthers(wanted);
    for (const policy of wanted.values()) if (!this.#working.has(policy.name) && !this.#stopped) this.#begin(policy);
  }

  async #end(working: Working): Promise<void> {
    working.abort.abort();
    await working.done;
    this.#working.delete(working.policy.name);
    this.#failures.delete(working.policy.name);
    this.#confs.delete(working.policy.name);
  }

  /** Removes the marks and folders of policies that are not wanted, also of those whose removal a crash interrupted. */
  async #forgetOthers(wanted: ReadonlyMap<string, Policy>): Promise<void> {
    const { host, plugins } = this.#options;
    const marked = host.marks("policy/").map(([key]) => key.slice("policy/".length, key.lastIndexOf("/")));
    const names = new Set([...marked, ...(await this.#withFolder())]);
    for (const name of names) {
      if (wanted.has(name)) continue;
      for (const plugin of plugins) await plugin.forget?.(name, host);
      await host.emit([], { marks: host.marks(policyMarks(name)).map(([key]) => ({ key })), reserve: true });
      await this.#files.rm(this.#folder(name), { recursive: true, force: true });
    }
  }

  /** Names of the policies that have a folder. It may contain a conf even if the policy never ran. */
  async #withFolder(): Promise<readonly string[]> {
    try {
      const entries = await this.#files.readdir(this.#options.folder);
      return entries
        .filter((entry) => entry.startsWith(PREFIX))
        .map((entry) => decodeURIComponent(entry.slice(PREFIX.length)));
    } catch (error) {
      if (isCode(error, "ENOENT")) return [];
      throw error;
    }
  }

  #begin(policy: Policy): void {
    const abort = new AbortController();
    this.#working.set(policy.name, { policy, abort, done: this.#keepRunning(policy, abort.signal) });
  }

  async #keepRunning(policy: Policy, signal: AbortSignal): Promise<void> {
    const { host } = this.#options;
    let pauseMs = POLICY_RESTART_MIN_MS;
    while (!signal.aborted) {
      try {
        await this.#run(policy, signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#failures.set(policy.name, errorText(error));
        host.log("error", "policy fails", { policy: policy.name, revision: policy.revision, error: errorText(error) });
      }
      await wait(host.clock, pauseMs * (1 + host.random.next() / 2), signal);
      pauseMs = Math.min(POLICY_RESTART_MAX_MS, pauseMs * 2);
    }
  }

  async #run(policy: Policy, signal: AbortSignal): Promise<void> {
    const { host, plugins } = this.#options;
    const spec = policyOfText(policy.spec);
    const kind = kindOf(spec);
    const plugin = plugins.find((candidate) => candidate.kind === kind);
    if (!plugin) throw new AppError("unsupported", `This agent knows no policy of the kind ${String(kind)}.`);
    const { folder, confPath } = await this.#prepare(policy);
    const depotFolder = policy.depot ? await host.depots.ensure(policy.depot, signal) : undefined;
    const runner = plugin.create({ policy, spec, folder, confPath, depotFolder }, host);
    this.#failures.delete(policy.name);
    host.log("info", "policy at work", { policy: policy.name, revision: policy.revision, kind });
    this.#runners.set(policy.name, runner);
    try {
      await runner.run(signal);
    } finally {
      this.#runners.delete(policy.name);
    }
  }

  async #prepare({ name, conf }: Policy): Promise<{ folder: string; confPath: string | undefined }> {
    const folder = this.#folder(name);
    await this.#files.mkdir(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, `${fileName(name)}.conf`);
    if (conf === undefined) {
      await this.#files.rm(path, { force: true });
      this.#confs.delete(name);
      return { folder, confPath: undefined };
    }
    await writeAtomically(this.#files, path, conf);
    this.#confs.set(name, createHash("sha256").update(conf).digest("hex"));
    return { folder, confPath: path };
  }

  #folder(name: string): string {
    // An encoded name has no slash. The prefix avoids the names `.` and `..`.
    return join(this.#options.folder, PREFIX + encodeURIComponent(name));
  }
}

function kindOf(spec: unknown): unknown {
  return typeof spec === "object" && spec !== null && "kind" in spec ? spec.kind : undefined;
}

function same(a: Policy, b: Policy | undefined): boolean {
  return b !== undefined && Buffer.compare(Policy.encode(a).finish(), Policy.encode(b).finish()) === 0;
}
