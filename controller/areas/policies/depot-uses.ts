import type { PolicySpec } from "../../../common/api/policies.ts";
import { AppError } from "../../../common/errors.ts";
import { POLICY_RACES_MAX } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { counted } from "../../../common/text/counted.ts";
import { listed } from "../../../common/text/listed.ts";
import type { DepotChange, DepotDeletion, DepotDeparture, DepotUser } from "../depots/index.ts";
import type { Hosts } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import { changedMeanwhile, type PolicyStore } from "./store.ts";

interface Dependencies {
  readonly store: PolicyStore;
  readonly clock: Pick<Clock, "nowMs">;
  readonly hosts: Pick<Hosts, "refresh">;
  /** Names of the policies that the principal may see. */
  readonly visible: (principal: Principal) => Promise<ReadonlySet<string>>;
}

/** A policy that uses a version of a depot, and the hosts to which it is deployed. */
interface Use {
  readonly policy: string;
  readonly version: string;
  readonly hosts: readonly string[];
}

/** Protects the depot versions that policies name, and renews policies whose version was replaced. */
export class DepotUses implements DepotUser {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Throws `AppError("conflict")` if a policy names the version, deployed or not. */
  async refuseDeletion({ principal, name, version }: DepotDeletion): Promise<void> {
    const uses = await this.#uses(principal.tenant, name);
    await this.#refuse(
      principal,
      name,
      uses.filter((use) => use.version === version),
    );
  }

  /** Throws `AppError("conflict")` if a policy that is deployed to one of the hosts names one of the versions. */
  async refuseDeparture({ principal, name, hosts, leaves }: DepotDeparture): Promise<void> {
    const named = new Set(hosts);
    const uses = (await this.#uses(principal.tenant, name)).filter(({ version }) => leaves(version));
    const onHosts = uses.map((use) => ({ ...use, hosts: use.hosts.filter((host) => named.has(host)) }));
    await this.#refuse(
      principal,
      name,
      onHosts.filter((use) => use.hosts.length > 0),
    );
  }

  /**
   * Rewrites the definitions of the policies that name the depot version. So they get a new revision, and agents fetch
   * the new content.
   */
  async replaced({ tenant, name, version }: DepotChange): Promise<void> {
    for (const use of await this.#uses(tenant, name))
      if (use.version === version) this.#with.hosts.refresh(tenant, await this.#renewOne(tenant, use.policy));
  }

  async #uses(tenant: string, depot: string): Promise<readonly Use[]> {
    const targets = await this.#with.store.allTargets(tenant);
    const definitions = await this.#with.store.definitions(tenant);
    return definitions.flatMap(({ value }) => {
      const version = value && versionOf(value.spec, depot);
      if (!value || version === undefined) return [];
      const { deployed = false, hosts = [] } = targets.get(value.spec.name)?.value ?? {};
      return [{ policy: value.spec.name, version, hosts: deployed ? hosts : [] }];
    });
  }

  /** Names the policies that the principal may see, and counts the others. */
  async #refuse(principal: Principal, depot: string, uses: readonly Use[]): Promise<void> {
    if (uses.length === 0) return;
    const visible = await this.#with.visible(principal);
    const shown = uses.filter(({ policy }) => visible.has(policy));
    const hidden = uses.length - shown.length;
    const names = shown.map(({ policy, hosts }) => (hosts.length > 0 ? `${policy} on ${listed(hosts)}` : policy));
    const others = hidden > 0 ? counted(hidden, "policy that you may not see", "policies that you may not see") : "";
    const all = [names.length > 0 ? `the policies ${listed(names, "; ")}` : "", others].filter(Boolean).join(" and ");
    const versions = listed([...new Set(uses.map(({ version }) => version))]);
    throw new AppError(
      "conflict",
      `The depot ${depot} ${versions} is used by ${all}. Change them first, or send force=true.`,
    );
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

/** The version of the depot in whose folder the policy runs; undefined if it does not use this depot. */
function versionOf(spec: PolicySpec, depot: string): string | undefined {
  return spec.kind === "command" && spec.ctype === 0 && spec.depotname === depot ? spec.depotversion : undefined;
}
