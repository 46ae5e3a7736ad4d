import { isAppError } from "../../../../common/errors.ts";
import { RUN_CONTEXT_TOKEN } from "../../../../common/masking.ts";
import type { Runtime } from "../../../runtime.ts";
import type { SecretBox } from "../../../secrets/index.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Principal } from "../../permissions/index.ts";
import { runOnHost } from "../runs/open-runs.ts";
import type { RunName } from "../output/outputs.ts";

/** A run on one host, and the user for whom it runs. */
export interface RunOnHost extends RunName, Pick<Principal, "tenant" | "ospace" | "user"> {
  /** Id of the context of the run. */
  readonly sid: string;
}

export interface RunAccessDependencies {
  readonly stores: Stores;
  readonly runtime: Pick<Runtime, "clock">;
  readonly secrets: Pick<SecretBox, "seal" | "open">;
  /**
   * Address at which hosts reach the HTTP interface, without a path. Absent: commands get no access to their context.
   */
  readonly address?: string | undefined;
}

/** Prefix of these tokens. Tokens of users never have it. */
const PREFIX = "odprun.";
const SEALED_FOR = "token for the context of a job run";
const WITHOUT_ADDRESS =
  "Commands do not reach the context of their run: the controller was not told where hosts reach it (ODP_HTTP_URL).";

/**
 * Gives commands of a run access to the context of the run, and to nothing else. The token is valid for one run on one
 * host, from its start to its end, at most until the deadline. It is sealed and not stored, so a reader of the store
 * cannot make one.
 */
export class RunAccess {
  readonly #with: RunAccessDependencies;

  constructor(dependencies: RunAccessDependencies) {
    this.#with = dependencies;
  }

  /**
   * Environment variables of a command: `ODP_CONTEXT_ID`, and either `ODP_CONTEXT_URL` with the token, or
   * `ODP_CONTEXT_PROBLEM`, a text that says what is missing.
   */
  environmentOf(run: RunOnHost): Readonly<Record<string, string>> {
    const { address, secrets } = this.#with;
    const { runId, host, tenant, ospace, user, sid } = run;
    if (!address) return { ODP_CONTEXT_ID: sid, ODP_CONTEXT_PROBLEM: WITHOUT_ADDRESS };
    const text = JSON.stringify({ runId, host, tenant, ospace, user, sid } satisfies RunOnHost);
    return {
      ODP_CONTEXT_ID: sid,
      ODP_CONTEXT_URL: `${address}/job/context/${encodeURIComponent(sid)}`,
      [RUN_CONTEXT_TOKEN]: PREFIX + secrets.seal(text, SEALED_FOR),
    };
  }

  /**
   * A principal with access to the context only. Undefined for an invalid token, or if the run has ended on that host.
   */
  async byRun(token: string, traceparent: string): Promise<Principal | undefined> {
    const named = this.#named(token);
    const open = named && (await this.#goesOn(named)) ? named : undefined;
    if (!open) return undefined;
    const { tenant, ospace, user, sid } = open;
    return { tenant, ospace, user, groups: [], grants: [], data: [], paths: [], traceparent, context: sid };
  }

  #named(token: string): RunOnHost | undefined {
    if (!token.startsWith(PREFIX)) return undefined;
    try {
      return JSON.parse(this.#with.secrets.open(token.slice(PREFIX.length), SEALED_FOR)) as RunOnHost;
    } catch (error) {
      if (isAppError(error)) return undefined;
      throw error;
    }
  }

  async #goesOn(run: RunOnHost): Promise<boolean> {
    const { stores, runtime } = this.#with;
    try {
      const open = await runOnHost(stores, run.tenant, run);
      return open !== undefined && open.end === undefined && runtime.clock.nowMs() < open.deadlineMs;
    } catch (error) {
      // The tenant was deleted.
      if (isAppError(error, "not_found")) return false;
      throw error;
    }
  }
}
