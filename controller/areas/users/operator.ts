import { AppError, isAppError } from "../../../common/errors.ts";
import type { Random } from "../../../common/time.ts";
import type { Audit } from "../audit/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import type { Tenants } from "../tenants/index.ts";
import type { UserDirectory } from "./directory/directory.ts";
import { required } from "./directory/reader.ts";
import type { SecondFactors } from "./second-factor/second-factor.ts";
import type { UserStore } from "./store.ts";

export interface Administrator {
  readonly username: string;
  /** The generated password of a new administrator, to be shown once. */
  readonly generatedPassword?: string;
  readonly created: boolean;
}

interface OperatorDependencies {
  readonly random: Random;
  readonly tenants: Tenants;
  readonly audit: Audit;
  readonly users: UserStore;
  readonly factors: SecondFactors;
  readonly directory: UserDirectory;
}

/**
 * Ways into a tenant for the operator of the installation, who has access to the store: the first administrator, and
 * replacements for a lost password or second factor. No call of the network leads here.
 */
export class OperatorAccess {
  readonly #with: OperatorDependencies;

  constructor(dependencies: OperatorDependencies) {
    this.#with = dependencies;
  }

  /**
   * Creates the tenant's administrator if no user has that name. Otherwise changes nothing. If no password is given,
   * generates one and answers it.
   */
  async ensureAdministrator(wanted: {
    readonly tenant: string;
    readonly username: string;
    readonly password?: string;
  }): Promise<Administrator> {
    const { directory } = this.#with;
    const { tenant, username } = wanted;
    const principal = await this.#system(tenant);
    if ((await directory.reader.find(principal, username)) !== undefined) return { username, created: false };
    const password = wanted.password ?? this.#newPassword();
    try {
      const isGenerated = wanted.password === undefined;
      await directory.create(principal, { username, password, isGenerated, rights: { role: "administrator" } });
    } catch (error) {
      // Another controller of the same cluster was first.
      if (isAppError(error, "conflict")) return { username, created: false };
      throw error;
    }
    return { username, created: true, ...(wanted.password === undefined && { generatedPassword: password }) };
  }

  /**
   * Replaces a lost password by a generated one and answers it. Every session of the user ends; a second factor stays.
   * If no administrator can sign in and this user is one, the organisations above this user are made active. Refused
   * while no audit entry can be written.
   */
  async resetPassword(tenant: string, username: string): Promise<string> {
    const { audit, directory } = this.#with;
    const principal = await this.#system(tenant);
    await audit.ready(tenant);
    const password = this.#newPassword();
    await directory.setPassword(principal, username, password, true);
    const opened = await directory.reopen(principal, username);
    for (const name of opened) await this.#record(tenant, username, `make the organisation ${name} active`);
    await this.#record(tenant, username, `reset the password of ${username}`);
    return password;
  }

  /** Like `resetPassword`, for a lost second factor and its recovery codes. Password and open sessions stay. */
  async resetSecondFactor(tenant: string, username: string): Promise<void> {
    const { audit, users, factors } = this.#with;
    await this.#system(tenant);
    await audit.ready(tenant);
    const user = (await required(users, tenant, username)).record;
    if (!user.secondFactor) throw new AppError("not_found", `The user ${username} has no second factor.`);
    await factors.remove(user);
    await this.#record(tenant, username, `remove the second factor of ${username}`);
  }

  async #record(tenant: string, username: string, action: string): Promise<void> {
    const of = { tenant, user: "", permission: "users:write", object: username, remote: "", traceparent: "" };
    await this.#with.audit.write({ ...of, action, outcome: "ok", code: "ok" });
  }

  /** `AppError("not_found")` for an unknown tenant. */
  async #system(tenant: string): Promise<Principal> {
    return systemPrincipal(tenant, await this.#with.tenants.ospaceOf(tenant), "");
  }

  #newPassword(): string {
    return Buffer.from(this.#with.random.bytes(15)).toString("base64url");
  }
}
