import {
  LOCAL_AGENT_RESTART_MAX_MS,
  LOCAL_AGENT_RESTART_MIN_MS,
  LOCAL_AGENT_STOP_DEADLINE_MS,
} from "../../common/limits.ts";
import { AGENT_NODE_FLAGS } from "../../common/agent/node-flags.ts";
import { wait } from "../../common/time.ts";
import { LogFile } from "../log/file.ts";
import type { LocalUser } from "./user.ts";
import type { Processes, StartedProcess } from "../processes/index.ts";
import type { Runtime } from "../runtime.ts";

export interface LocalAgentOptions {
  readonly runtime: Runtime;
  readonly processes: Processes;
  /** The agent's bundle. */
  readonly file: string;
  /** The agent's folder: identity, outbox, depots. */
  readonly dir: string;
  /** Outside of its folder: a process of the agent's user could place a link there. */
  readonly logPath: string;
  /** Absent: the controller's own user. */
  readonly user: LocalUser | undefined;
  readonly host: string;
  /** URL of the controller for the agent. */
  readonly url: string;
  /** Called at every start. An agent that has its certificate does not use the token. */
  readonly token: () => Promise<string>;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Keeps an agent for the controller's own host running: a process as on any other host. */
export class LocalAgent {
  readonly #options: LocalAgentOptions;
  readonly #stopping = new AbortController();
  readonly #log: LogFile;
  readonly #running: Promise<void>;
  #agent: StartedProcess | undefined;

  constructor(options: LocalAgentOptions) {
    this.#options = options;
    this.#log = new LogFile(options.logPath);
    this.#running = this.#keepRunning();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#agent?.kill("SIGTERM");
    const cancel = this.#options.runtime.clock.after(LOCAL_AGENT_STOP_DEADLINE_MS, () => this.#agent?.kill("SIGKILL"));
    await this.#running;
    cancel();
  }

  async #keepRunning(): Promise<void> {
    const { clock, log } = this.#options.runtime;
    let pauseMs = LOCAL_AGENT_RESTART_MIN_MS;
    while (!this.#stopping.signal.aborted) {
      const startedMs = clock.monotonicMs();
      const end = await this.#runOnce().catch((error: unknown) => error);
      if (this.#stopping.signal.aborted) return;
      if (clock.monotonicMs() - startedMs > LOCAL_AGENT_RESTART_MAX_MS) pauseMs = LOCAL_AGENT_RESTART_MIN_MS;
      log.warn({ end, pauseMs }, "the local agent ended and is started again");
      await wait(clock, pauseMs, this.#stopping.signal);
      pauseMs = Math.min(2 * pauseMs, LOCAL_AGENT_RESTART_MAX_MS);
    }
  }

  async #runOnce(): Promise<string> {
    const { file, dir, host, url, environment, user } = this.#options;
    const token = await this.#options.token();
    const env = {
      PATH: environment["PATH"],
      HOME: user?.home ?? environment["HOME"],
      LANG: environment["LANG"],
      TZ: environment["TZ"],
    };
    const own = {
      ODP_AGENT_CONTROLLER: url,
      ODP_AGENT_TOKEN: token,
      // The token is new at every start.
      ODP_AGENT_ENROL: "once",
      ODP_AGENT_DIR: dir,
      ODP_AGENT_NAME: host,
    };
    const spec = {
      file: process.execPath,
      args: [...AGENT_NODE_FLAGS, "--v8-pool-size=1", file],
      env: { ...env, ...own },
      stderr: "reported",
      // Its commands lead their own process groups, which the agent ends itself.
      isGroup: false,
      ...(user && { user, cwd: dir }),
    } as const;
    const agent = this.#options.processes.start(spec, (piece) => this.#log.write(Buffer.from(piece).toString()));
    this.#agent = agent;
    if (this.#stopping.signal.aborted) agent.kill("SIGTERM");
    const { code, signal } = await agent.ended;
    return signal ?? `exit code ${code}`;
  }
}
