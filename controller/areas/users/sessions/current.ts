import type { EvidenceList } from "../../../store/evidence.ts";
import type { Activity } from "../directory/activity.ts";
import type { UserRecord, UserStore } from "../store.ts";

interface CurrentDependencies {
  readonly users: UserStore;
  readonly activity: Activity;
  /** Watches the users of a tenant from now on. */
  readonly follow: (tenant: string) => void;
}

/** Users that have not changed since a session was opened or credentials were verified. */
export class CurrentUsers {
  readonly #with: CurrentDependencies;

  constructor(dependencies: CurrentDependencies) {
    this.#with = dependencies;
  }

  /** The user, if active and if `Activity.epochOf` still answers `epoch`; otherwise undefined. */
  async find(
    tenant: string,
    username: string,
    { epoch, evidence }: { readonly epoch: string; readonly evidence?: EvidenceList },
  ): Promise<UserRecord | undefined> {
    this.#with.follow(tenant);
    const record = (await this.#with.users.recent(tenant, username, evidence))?.record;
    return record !== undefined && (await this.#with.activity.epochOf(record, evidence)) === epoch ? record : undefined;
  }
}
