import type { PolicySpec } from "../../../common/api/policies.ts";
import { AppError } from "../../../common/errors.ts";
import { POLICY_RACES_MAX } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { DepotChange } from "../depots/index.ts";
import type { Hosts } from "../hosts/index.ts";
import { changedMeanwhile, type PolicyStore, type StoredDefinition } from "./store.ts";

interface Dependencies {
  readonly store: PolicyStore;
  readonly clock: Pick<Clock, "nowMs">;
  readonly hosts: Pick<Hosts, "refresh">;
}

/** Reacts to changes of depot versions that policies name. */
export class DepotUses {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Throws `AppError("conflict")` if a policy names the depot version. */
  async refuseWhenUsed(change: DepotChange): Promise<void> {
    const names = (await this.#using(change)).map(({ spec }) => spec.name);
    if (names.length === 0) return;
    throw new AppError(
      "conflict",
      `The depot ${change.name} ${change.version} is used by the policies ${names.slice(0, 10).join(", ")}.`,
    );
  }

  /**
   * Rewrites the definitions of the policies that name the depot version. So they get a new revision, and agents fetch
   * the new content.
   */
  async renew(change: DepotChange): Promise<void> {
    for (const { spec } of await this.#using(change)) {
      this.#with.hosts.refresh(change.tenant, await this.#renewOne(change.tenant, spec.name));
    }
  }

  async #using(change: DepotChange): Promise<readonly StoredDefinition[]> {
    const definitions = await this.#with.store.definitions(change.tenant);
    return definitions.flatMap(({ value }) => (value && uses(value.spec, change) ? [value] : []));
  }

  /** Rewrites one definition; returns the hosts of the policy. */
  async #renewOne(tenant: string, name: string): Promise<readonly string[]> {
    const { store, clock } = this.#with;
    for (let race = 0; race < POLICY_RACES_MAX; race++) {
      const seen = await store.get(tenant, name);
      const definition = seen.definition.value;
      if (definition === undefined) return [];
      const renewed = { ...definition, changedMs: clock.nowMs() };
      if (await store.write(tenant, name, { seen, definition: renewed })) return seen.targets.value?.hosts ?? [];
    }
    throw changedMeanwhile(name);
  }
}

function uses(spec: PolicySpec, { name, version }: DepotChange): boolean {
  return spec.kind === "command" && spec.ctype === 0 && spec.depotname === name && spec.depotversion === version;
}
