import { requirePermission, type Principal } from "../../permissions/index.ts";
import type { Credentials } from "../credentials/credentials.ts";
import type { UserDirectory } from "../directory/directory.ts";
import { required } from "../directory/reader.ts";
import type { RecordedChanges } from "../recorded-changes.ts";
import { requireOwnSignIn, type EffectiveRights } from "../rights/effective-rights.ts";
import type { UserStore } from "../store.ts";
import type { NewSecondFactor } from "../types.ts";
import type { SecondFactors } from "./second-factor.ts";

interface FactorDependencies {
  readonly users: UserStore;
  readonly factors: SecondFactors;
  readonly credentials: Pick<Credentials, "again">;
  readonly directory: Pick<UserDirectory, "usernameOf">;
  readonly powers: EffectiveRights;
  readonly recorded: RecordedChanges;
}

/** Second factors for calls: the caller's own, and the removal of another user's. */
export class FactorService {
  readonly #with: FactorDependencies;

  constructor(dependencies: FactorDependencies) {
    this.#with = dependencies;
  }

  /**
   * Begins the caller's own second factor. Needs the password: a stolen session is not enough. The factor has no effect
   * until it is confirmed. `AppError("conflict")` if the caller already has a confirmed one.
   */
  async begin(principal: Principal, password: string): Promise<NewSecondFactor> {
    requireOwnSignIn(principal);
    const { recorded, factors, credentials } = this.#with;
    return recorded.ofOwn(principal, "begin a second factor", async () =>
      factors.begin(await credentials.again(principal, password)),
    );
  }

  /** Activates the second factor. Answers recovery codes: shown once, each accepted once. */
  async confirm(principal: Principal, code: string): Promise<readonly string[]> {
    requireOwnSignIn(principal);
    const { recorded, factors, users } = this.#with;
    return recorded.ofOwn(principal, "confirm a second factor", async () =>
      factors.confirm((await required(users, principal.tenant, principal.user)).record, code),
    );
  }

  /** Removes the caller's own second factor. Needs the password. */
  async remove(principal: Principal, password: string): Promise<void> {
    requireOwnSignIn(principal);
    const { recorded, factors, credentials } = this.#with;
    await recorded.ofOwn(principal, "remove the second factor", async () =>
      factors.remove(await credentials.again(principal, password)),
    );
  }

  /** Number of recovery codes the caller has left; undefined without a second factor. */
  async codesLeft({ tenant, user }: Principal): Promise<number | undefined> {
    const { record } = await required(this.#with.users, tenant, user);
    return this.#with.factors.left(record);
  }

  /** Removes the second factor of another user, who lost the device. */
  async removeOf(principal: Principal, id: string): Promise<void> {
    requirePermission(principal, "users:write");
    const { directory, users, powers, factors } = this.#with;
    const username = await directory.usernameOf(principal, id);
    const { record } = await required(users, principal.tenant, username);
    await powers.requireAtLeast(principal, record);
    await factors.remove(record);
  }
}
