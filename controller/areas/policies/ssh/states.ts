import { KeyedQueue } from "../../../../common/keyed-queue.ts";
import { POLICY_STATE_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import type { HostsOverSsh } from "../../hosts/index.ts";
import type { PolicyOnHost } from "./marks.ts";

/** The states of policies on hosts over SSH. They are written to the record of a host when one of them changes. */
export class SshStates {
  readonly #hosts: Pick<HostsOverSsh, "notePolicies">;
  readonly #queue = new KeyedQueue();
  /** States by policy, by tenant and host. */
  readonly #known = new Map<string, Map<string, string>>();

  constructor(hosts: Pick<HostsOverSsh, "notePolicies">) {
    this.#hosts = hosts;
  }

  /** Sets the states of a host: those on its record of the policies that it is to run. Does nothing for a known host. */
  know(tenant: string, host: string, states: ReadonlyMap<string, string>): void {
    const key = `${tenant}/${host}`;
    if (!this.#known.has(key)) this.#known.set(key, new Map(states));
  }

  /** Without a state: the policy is not to run on the host. Resolves when the record has it. */
  async report({ tenant, host, policy }: PolicyOnHost, state?: string): Promise<void> {
    const key = `${tenant}/${host}`;
    const states = this.#known.get(key) ?? new Map<string, string>();
    const next = state === undefined ? undefined : beginningOf(state, POLICY_STATE_MAX_CHARACTERS);
    if (next !== undefined && states.get(policy) === next) return;
    if (next === undefined) states.delete(policy);
    else states.set(policy, next);
    if (states.size === 0) this.#known.delete(key);
    else this.#known.set(key, states);
    await this.#queue.run([key], () => this.#hosts.notePolicies(tenant, host, Object.fromEntries(states)));
  }
}
