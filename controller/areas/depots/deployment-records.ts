import { AppError } from "../../../common/errors.ts";
import { DEPLOY_MESSAGE_MAX_CHARACTERS } from "../../../common/limits.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import {
  Journal,
  type JournalDependencies,
  type NewWork,
  type Versioned,
  type OpenWork,
} from "../../store/journal/index.ts";
import type { KvTxn } from "../../store/kv.ts";
import type { Notification } from "../notifications/index.ts";
import type { Unrestricted } from "../objects/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import { DEPLOYMENT_PATH } from "./classes.ts";
import type { DeploymentOutcome } from "./types.ts";
import { keptRow } from "../../turns/well-formed.ts";

/** `start`, `stop` and `restart` are about an external agent of the host, not about a depot. */
export type DeploymentAction = "deploy" | "undeploy" | "start" | "stop" | "restart";

/** An open deployment to one host. KvStore: `deployments/<deployment>/<host>`, of an attempt also `/<round>`, until its rows are written. */
export interface OpenDeployment extends OpenWork {
  readonly deployment: string;
  readonly host: string;
  readonly tenant: string;
  readonly ospace: string;
  readonly traceparent: string;
  readonly user: string;
  readonly action: DeploymentAction;
  readonly deadlineMs: number;
  /** The ordinal of the first target within the deployment. */
  readonly ordinal: number;
  readonly targets: readonly DeploymentTarget[];
  /**
   * Number of the attempt, if the deployment waits for its host. Its outcomes may end before `targets` do: the others
   * wait for the next attempt. Absent: it does not wait.
   */
  readonly round?: number;
  /** True if nothing was sent to the host, so that no late result can come. */
  readonly isUnsent?: true;
  /** Final outcomes, one per target in the order of `targets`. Absent until they are decided. */
  readonly end?: readonly DeploymentOutcome[];
}

export interface DeploymentTarget {
  /** Empty, as the version, if the action is not about a depot. */
  readonly depot: string;
  readonly version: string;
  readonly commandId: string;
}

export type VersionedDeployment = Versioned<OpenDeployment>;
export type NewDeployment = Omit<NewWork<OpenDeployment>, "id">;

/** Open deployments. The outcomes for a host are decided once, in the journal, before rows report them. */
export class DeploymentRecords {
  readonly #journal: Journal<OpenDeployment>;
  readonly #objects: Unrestricted<"ingest">;

  constructor(dependencies: JournalDependencies & { readonly objects: Unrestricted<"ingest"> }) {
    this.#journal = new Journal(dependencies, { prefix: "deployments/", tenantOf: ({ tenant }) => tenant });
    this.#objects = dependencies.objects;
  }

  open(deployments: readonly NewDeployment[]): Promise<readonly VersionedDeployment[]> {
    return this.#journal.beginAll(deployments.map((open) => ({ ...open, id: idOf(open) })));
  }

  /** The transaction parts that open a deployment, with its outcomes if they are decided already. */
  beginning(
    deployment: NewDeployment,
    end?: readonly DeploymentOutcome[],
  ): { readonly open: OpenDeployment; readonly within: KvTxn } {
    const { opens, within } = this.#journal.beginning([
      { ...deployment, id: idOf(deployment), ...(end && { end: cut(end) }) },
    ]);
    const [open] = opens;
    if (open === undefined) throw new AppError("internal", "A deployment was not opened.");
    return { open, within };
  }

  /** Decides the outcomes. Returns `undefined` if another controller has already decided; that decision is final. */
  async decide(held: VersionedDeployment, outcomes: readonly DeploymentOutcome[]): Promise<OpenDeployment | undefined> {
    return (await this.#journal.decide(held, cut(outcomes)))?.open;
  }

  /** The open deployment; `undefined` if its rows are written, or if it never existed. */
  async find(tenant: string, of: DeploymentKey): Promise<OpenDeployment | undefined> {
    return (await this.#journal.find(tenant, idOf(of)))?.open;
  }

  all(tenant: string): AsyncGenerator<VersionedDeployment> {
    return this.#journal.all(tenant);
  }

  /**
   * Writes decided outcomes as rows. The platform writes them, not the caller, because the right to deploy does not
   * include writing records. Idempotent.
   */
  async settle(open: OpenDeployment): Promise<void> {
    const { deployment, tenant, ospace, traceparent, user, action } = open;
    const records = (open.end ?? []).map(({ startedMs, endedMs, code, ...rest }, at) => ({
      timeMs: endedMs,
      identity: `deployment/${deployment}/${open.ordinal + at}`,
      values: keptRow({ action, ...rest, code: code ?? null, started: startedMs, ended: endedMs, username: user }),
    }));
    await this.#objects.unrestricted.ingest(
      systemPrincipal(tenant, ospace, traceparent),
      `${ospace}${DEPLOYMENT_PATH}`,
      records,
    );
    await this.#journal.end(open);
  }
}

/** Notification that a target ended. It is about the record of the target, whose id is not known yet. */
export function deploymentNotice(
  { ospace, user }: Pick<Principal, "ospace" | "user">,
  action: OpenDeployment["action"],
  target: DeploymentOutcome,
): Notification {
  const { startedMs, endedMs, code, ...rest } = target;
  const values = { action, ...rest, code: code ?? null, started: startedMs, ended: endedMs, username: user };
  return {
    keyspace: ospace,
    source: target.host,
    subject: "deployment",
    title: [action, target.depot, target.version].filter(Boolean).join(" "),
    reply: "",
    msg: JSON.stringify({ action, ...target }),
    about: {
      permission: "depots:read",
      class: `${ospace}${DEPLOYMENT_PATH}`,
      id: undefined,
      values,
      vtimeMs: endedMs,
      ctimeMs: endedMs,
      told: ["action", "depot", "version", "host"],
      columns: { startedMs: "started", endedMs: "ended" },
    },
  };
}

type DeploymentKey = Pick<OpenDeployment, "deployment" | "host" | "round">;

/** The attempts of a host have ids of their own, so that the end of one does not remove another. */
function idOf({ deployment, host, round }: DeploymentKey): string {
  return `${deployment}/${encodeURIComponent(host)}${round === undefined ? "" : `/${round}`}`;
}

function cut(outcomes: readonly DeploymentOutcome[]): readonly DeploymentOutcome[] {
  return outcomes.map((one) => ({ ...one, message: beginningOf(one.message, DEPLOY_MESSAGE_MAX_CHARACTERS) }));
}
