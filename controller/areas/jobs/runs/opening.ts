import { mapLimited } from "../../../../common/concurrency.ts";
import { JOB_PARALLEL_HOSTS, KV_TXN_MAX_OPERATIONS } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { txnOnce } from "../../../store/once.ts";
import { Retry } from "../../../store/calls/retry.ts";
import { hostTurns } from "../queues/host-turns.ts";
import { LeaseLostError } from "./commands.ts";
import type { RunEndings } from "./endings.ts";
import type { ExecutionJournal, VersionedExecution } from "./executions.ts";
import { workOf } from "./executor.ts";
import type { RunJournal, VersionedRun } from "./open-runs.ts";
import type { Run } from "./plan.ts";

interface Dependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly executions: ExecutionJournal;
  readonly journal: RunJournal;
  readonly endings: RunEndings;
}

/** The hosts that were opened, and the latest entry of their execution. */
interface OpenedHosts {
  readonly opened: readonly VersionedRun[];
  readonly now: VersionedExecution;
}

/**
 * Number of hosts per transaction. Each host needs three operations (condition, entry, note); the execution needs two.
 */
const PORTION = Math.floor((KV_TXN_MAX_OPERATIONS - 2) / 3);

/**
 * Opens hosts of executions that have an entry of their own. Each transaction is conditional on that entry, which also
 * stores the number of opened hosts. So after a take-over the new controller opens the remaining hosts. The earlier
 * controller, if it continues, opens none.
 */
export class HostOpening {
  readonly #with: Dependencies;
  readonly #retry: Retry;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
    this.#retry = new Retry(dependencies.runtime);
  }

  /**
   * Opens the next hosts, until the first `upTo` hosts of the execution are open. `LeaseLostError` if another
   * controller has taken the execution over.
   */
  async open(run: Run, held: VersionedExecution, upTo: number): Promise<OpenedHosts> {
    const { journal, endings, runtime } = this.#with;
    const opened: VersionedRun[] = [];
    let now = held;
    const hosts = run.order.hosts.slice(held.open.opened, upTo);
    try {
      for (let at = 0; at < hosts.length; at += PORTION) {
        const portion = await this.#openPortion(run, now, hosts.slice(at, at + PORTION));
        now = portion.now;
        opened.push(...portion.opened);
      }
      const next = hostTurns(run.order.principal.tenant, runtime.clock);
      await mapLimited(opened, JOB_PARALLEL_HOSTS, async ({ open }) => {
        await next();
        return endings.begin(open);
      });
      return { opened, now };
    } catch (error) {
      for (const { open } of opened) journal.inFlight.letGo(open.id);
      throw error;
    }
  }

  async #openPortion(run: Run, held: VersionedExecution, hosts: readonly string[]): Promise<OpenedHosts> {
    const { journal, executions, stores } = this.#with;
    const { opens, within } = journal.beginning(hosts.map((host) => workOf(run, host)));
    const step = executions.stepWithin(held, {
      startedMs: run.startedMs,
      opened: held.open.opened + hosts.length,
    });
    const { kv } = await stores.tenant(run.order.principal.tenant);
    // Without this, maintenance could find the entries before their work runs here, and take them over.
    for (const { id } of opens) journal.inFlight.hold(id);
    try {
      const { ok, revision } = await txnOnce(
        kv,
        {
          if: [{ key: step.key, revision: step.revision }, ...within.if],
          then: [{ kind: "put", key: step.key, value: step.value }, ...within.then],
        },
        (write) => this.#retry.run(write),
      );
      if (!ok) throw new LeaseLostError(run.id);
      return { now: { open: step.open, revision }, opened: opens.map((open) => ({ open, revision })) };
    } catch (error) {
      for (const { id } of opens) journal.inFlight.letGo(id);
      throw error;
    }
  }
}
