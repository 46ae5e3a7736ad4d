import { ulidTimeMs } from "../../../common/ids.ts";
import { DEPLOY_LOST_AFTER_MS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { CommandOutcome, StoredCommands } from "../hosts/index.ts";
import { systemPrincipal } from "../permissions/index.ts";
import type { DeploymentCommands } from "./deployment-commands.ts";
import type { DeploymentRecords, OpenDeployment, VersionedDeployment } from "./deployment-records.ts";
import { LateResults } from "./late-results.ts";
import type { DeploymentOutcome } from "./types.ts";
import { WaitingStore } from "./waiting/store.ts";

interface Dependencies {
  readonly stores: Stores;
  readonly stored: Pick<StoredCommands, "outcome">;
  readonly runtime: Runtime;
}

interface Parts {
  readonly records: DeploymentRecords;
  readonly commands: Pick<DeploymentCommands, "note">;
}

/** Decides and records how deployments ended, also those of controllers that died. */
export class DeploymentEndings {
  readonly #stored: Dependencies["stored"];
  readonly #runtime: Runtime;
  readonly #records: DeploymentRecords;
  readonly #commands: Parts["commands"];
  readonly #late: LateResults;
  readonly #waits: WaitingStore;

  constructor({ stores, stored, runtime }: Dependencies, { records, commands }: Parts) {
    this.#stored = stored;
    this.#runtime = runtime;
    this.#records = records;
    this.#commands = commands;
    this.#late = new LateResults(stores);
    this.#waits = new WaitingStore(stores);
  }

  /**
   * Writes decided outcomes as records. Ends deployments that are open long after their deadline. Records late results
   * on the hosts. Idempotent; safe on several controllers.
   */
  async maintain(tenant: string): Promise<void> {
    const nowMs = this.#runtime.clock.nowMs();
    for await (const held of this.#records.all(tenant)) {
      if (held.open.end) await this.#settle(held.open);
      else if (held.open.deadlineMs + DEPLOY_LOST_AFTER_MS <= nowMs) await this.#endLate(held);
    }
    await this.#takeLate(tenant);
  }

  /**
   * Records late results of hosts. Skips a depot that is being deployed to the host again, because that deployment will
   * record the current state.
   */
  async #takeLate(tenant: string): Promise<void> {
    const underWay = new Set<string>();
    for await (const { open } of this.#records.all(tenant))
      for (const { depot } of open.targets) underWay.add(`${open.host}/${depot}`);
    for await (const { late, close } of this.#late.waiting(tenant, this.#runtime.clock.nowMs())) {
      const { ospace, traceparent, host, depot, version, action } = late;
      if (underWay.has(`${host}/${depot}`)) continue;
      const said = await this.#stored.outcome({ tenant, host, traceparent }, late.commandId);
      if (!said || !(await close()) || said.state !== "ok") continue;
      const target = outcomeOf(said, { host, depot, version });
      await this.#commands.note(systemPrincipal(tenant, ospace, traceparent), action, target);
    }
  }

  /**
   * True if the host was given this command, by a deployment that is open or that ended without a result of the host.
   */
  async gave(tenant: string, host: string, commandId: string): Promise<boolean> {
    const [, deployment] = /^(?:(?:un)?deploy|(?:re)?start|stop)\/([^/]+)\/[^/]+$/.exec(commandId) ?? [];
    if (deployment === undefined) return false;
    const isId = ulidTimeMs(deployment) !== undefined;
    const open = isId ? await this.#records.find(tenant, { deployment, host }) : undefined;
    const isOpen = open?.targets.some((target) => target.commandId === commandId) ?? false;
    if (isOpen || (isId && (await this.#waits.gave({ tenant, deployment, host }, commandId)))) return true;
    return this.#late.hear(tenant, host, commandId);
  }

  /**
   * Decides and records the outcomes for a host. Returns the final ones: these, or those that another controller
   * decided because this one took too long.
   */
  async end(held: VersionedDeployment, outcomes: readonly DeploymentOutcome[]): Promise<readonly DeploymentOutcome[]> {
    try {
      const decided = await this.#records.decide(held, outcomes);
      if (!decided) return (await this.#records.find(held.open.tenant, held.open))?.end ?? outcomes.map(endedElsewhere);
      await this.#settle(decided);
    } catch (error) {
      // The commands have already run on the hosts, so the caller gets their states even if the records fail.
      this.#warnUnsettled(held.open, error);
    }
    return outcomes;
  }

  /** Writes decided outcomes as records. If that fails, maintenance does it. */
  async record(decided: OpenDeployment): Promise<void> {
    await this.#settle(decided).catch((error: unknown) => this.#warnUnsettled(decided, error));
  }

  /** Maintenance writes the records later. */
  #warnUnsettled({ deployment, host }: OpenDeployment, error: unknown): void {
    this.#runtime.log.error({ err: error, deployment, host }, "the records of a deployment could not be written yet");
  }

  async #endLate(held: VersionedDeployment): Promise<void> {
    const { tenant, ospace, traceparent, host, targets, action } = held.open;
    const nowMs = this.#runtime.clock.nowMs();
    const outcomes: DeploymentOutcome[] = [];
    for (const { depot, version, commandId } of targets) {
      const said = await this.#stored.outcome({ tenant, host, traceparent }, commandId);
      // The host may not have got the command, so the next attempt sends it again under the same id.
      if (!said && held.open.round !== undefined) break;
      const expired = {
        state: "expired" as const,
        message: "The controller that deployed it went away before it ended.",
        startedMs: nowMs,
        endedMs: nowMs,
      };
      outcomes.push(outcomeOf(said ?? expired, { host, depot, version }));
    }
    const decided = await this.#records.decide(held, outcomes);
    if (!decided) return;
    const platform = systemPrincipal(tenant, ospace, traceparent);
    for (const target of outcomes) if (target.state === "ok") await this.#commands.note(platform, action, target);
    await this.#settle(decided);
  }

  /**
   * Stores the state of a host that was waited for, and which late results may come, and then writes the rows. In this
   * order, no late result of a host is refused.
   */
  async #settle(decided: OpenDeployment): Promise<void> {
    if (decided.round !== undefined) await this.#waits.finish(decided, this.#runtime.clock.nowMs());
    if (!decided.isUnsent) await this.#late.expect(decided);
    await this.#records.settle(decided);
  }
}

/** The outcome of a command without its other members, such as the number of its process. */
export function outcomeOf(
  { state, code, message, startedMs, endedMs }: Omit<CommandOutcome, "host">,
  of: Pick<DeploymentOutcome, "host" | "depot" | "version">,
): DeploymentOutcome {
  return { ...of, state, ...(code !== undefined && { code }), message, startedMs, endedMs };
}

/**
 * Outcome if another controller has already recorded and removed the deployment, because this one was stopped for
 * minutes.
 */
function endedElsewhere(outcome: DeploymentOutcome): DeploymentOutcome {
  return { ...outcome, state: "expired", message: "Another controller ended it meanwhile; its record says how." };
}
