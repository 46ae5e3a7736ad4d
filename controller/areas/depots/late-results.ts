import { DEPLOY_LATE_FRESH_MS, DEPLOY_LATE_KEEP_MS, DEPLOY_LATE_PER_HOST_MAX } from "../../../common/limits.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvEntry } from "../../store/kv.ts";
import type { DeploymentAction, OpenDeployment } from "./deployment-records.ts";

/** A command of an ended deployment whose host has not reported a result. */
export interface LateCommand {
  readonly tenant: string;
  readonly ospace: string;
  readonly traceparent: string;
  readonly deployment: string;
  readonly commandId: string;
  readonly action: DeploymentAction;
  readonly host: string;
  readonly depot: string;
  readonly version: string;
  readonly deadlineMs: number;
  /** True if the host has reported something about the command since the deployment ended. */
  readonly heard: boolean;
  /**
   * True if reports of the host have no effect any more: a result was processed, or a later deployment of the depot has
   * ended.
   */
  readonly closed: boolean;
}

const PREFIX = "latedeployments/";
/** Final states that controllers set because the host did not answer. */
const UNANSWERED: ReadonlySet<string> = new Set(["timeout", "expired"]);

/**
 * Commands of ended deployments for which hosts may still report results. KvStore: `latedeployments/<host>/<command>`,
 * for `DEPLOY_LATE_KEEP_MS`; only the latest `DEPLOY_LATE_PER_HOST_MAX` of each host.
 */
export class LateResults {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** Adds the unanswered commands of a deployment whose outcomes are decided. Idempotent. */
  async expect(open: OpenDeployment): Promise<void> {
    const { kv } = await this.#stores.tenant(open.tenant);
    const ended = new Set(open.targets.map(({ depot }) => depot));
    const known: KvEntry[] = [];
    for await (const entry of entriesUnder(kv, hostPrefix(open.host))) known.push(entry);
    for (const entry of known) {
      const late = decodeStored<LateCommand>(entry.value);
      if (!late.closed && late.deployment < open.deployment && ended.has(late.depot))
        await this.#change(entry, { ...late, closed: true });
    }
    const silent = open.targets.filter((_, at) => UNANSWERED.has(open.end?.[at]?.state ?? ""));
    for (const target of silent) await this.#add(open, target, known);
    const tooMany = known.length + silent.length - DEPLOY_LATE_PER_HOST_MAX;
    for (const { key } of known.slice(0, Math.max(0, tooMany))) await kv.delete(key);
  }

  /** Call when the host reports something about a command. Returns true if the host was given this command. */
  async hear(tenant: string, host: string, commandId: string): Promise<boolean> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(keyOf({ host, commandId }));
    if (!entry) return false;
    const late = decodeStored<LateCommand>(entry.value);
    if (late.commandId !== commandId) return false;
    // If another writer changed the entry first, a repetition of this report or the next report sets `heard`.
    if (!late.heard && !late.closed) await this.#change(entry, { ...late, heard: true });
    return true;
  }

  /**
   * Commands that are not closed and for which a result may have arrived. It may have arrived after the deployment
   * ended, or before that; this second case is checked until `DEPLOY_LATE_FRESH_MS` after the deadline.
   */
  async *waiting(
    tenant: string,
    nowMs: number,
  ): AsyncGenerator<{ readonly late: LateCommand; readonly close: () => Promise<boolean> }> {
    const { kv } = await this.#stores.tenant(tenant);
    for await (const entry of entriesUnder(kv, PREFIX)) {
      const late = decodeStored<LateCommand>(entry.value);
      const said = late.heard || nowMs < late.deadlineMs + DEPLOY_LATE_FRESH_MS;
      if (said && !late.closed) yield { late, close: () => this.#change(entry, { ...late, closed: true }) };
    }
  }

  /**
   * Adds a command; it is closed from the start if `known` contains the depot of a later deployment. An existing entry
   * stays unchanged.
   */
  async #add(open: OpenDeployment, target: OpenDeployment["targets"][number], known: readonly KvEntry[]) {
    const { tenant, ospace, traceparent, deployment, action, host, deadlineMs } = open;
    const { kv } = await this.#stores.tenant(tenant);
    const newer = known.some((entry) => {
      const other = decodeStored<LateCommand>(entry.value);
      return other.depot === target.depot && other.deployment > deployment;
    });
    const late: LateCommand = {
      tenant,
      ospace,
      traceparent,
      deployment,
      action,
      host,
      ...target,
      deadlineMs,
      heard: false,
      closed: newer,
    };
    const expiresAtMs = deadlineMs + DEPLOY_LATE_KEEP_MS;
    await kv.put(keyOf(late), encodeJson(late), { ifRevision: 0, expiresAtMs });
  }

  /** Returns false if another writer was first. */
  async #change({ key, revision, expiresAtMs }: KvEntry, late: LateCommand): Promise<boolean> {
    const { kv } = await this.#stores.tenant(late.tenant);
    const kept = expiresAtMs === undefined ? {} : { expiresAtMs };
    return (await kv.put(key, encodeJson(late), { ifRevision: revision, ...kept })).ok;
  }
}

function hostPrefix(host: string): string {
  return `${PREFIX}${encodeURIComponent(host)}/`;
}

/** The key of a command ends with the last part of the command's id, which is unique and begins with its time. */
function keyOf({ host, commandId }: Pick<LateCommand, "host" | "commandId">): string {
  return hostPrefix(host) + encodeURIComponent(commandId.slice(commandId.lastIndexOf("/") + 1));
}
