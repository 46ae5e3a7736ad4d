import type { Principal } from "../../permissions/index.ts";
import type { UserRecord } from "../store.ts";
import type { NewUser } from "../types.ts";
import type { Passwords } from "./passwords.ts";

type ChosenPassword = Pick<NewUser, "username" | "password" | "isGenerated">;

/** New passwords, as they are stored. `AppError("invalid")` if one is too easy to guess. */
export class ChosenPasswords {
  readonly #passwords: Passwords;
  readonly #firstUntilMs: (tenant: string) => Promise<number | undefined>;

  /** `firstUntilMs`: expiry of a password that another user sets now; undefined: it does not expire. */
  constructor(passwords: Passwords, firstUntilMs: (tenant: string) => Promise<number | undefined>) {
    this.#passwords = passwords;
    this.#firstUntilMs = firstUntilMs;
  }

  /** The password of `username`, chosen by the principal: its own one lasts, that of another user is a first one. */
  async of(principal: Principal, password: ChosenPassword): Promise<Pick<UserRecord, "hash">> {
    if (password.username !== principal.user) return this.first(principal, password);
    return { hash: await this.hash(principal, password) };
  }

  /** Hash of a password that another user sets, marked as a first password if the policy says so. */
  async first(
    principal: Principal,
    password: ChosenPassword,
  ): Promise<Pick<UserRecord, "hash" | "firstPasswordUntilMs">> {
    const hash = await this.hash(principal, password);
    const untilMs = await this.#firstUntilMs(principal.tenant);
    return { hash, ...(untilMs !== undefined && { firstPasswordUntilMs: untilMs }) };
  }

  hash({ tenant }: Principal, { username, password, isGenerated = false }: ChosenPassword): Promise<string> {
    return isGenerated ? this.#passwords.hashGenerated(password) : this.#passwords.hash(password, [username, tenant]);
  }
}
