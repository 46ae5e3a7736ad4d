import { hash, verify } from "@node-rs/argon2";
import { AppError } from "../../../../common/errors.ts";
import {
  PASSWORD_CHECKS_IN_FLIGHT_MAX,
  PASSWORD_CHECKS_WAITING_MAX,
  PASSWORD_MAX_BYTES,
} from "../../../../common/limits.ts";
import type { PasswordPolicy } from "./password-policy.ts";

/** argon2id as OWASP recommends it: 19 MiB, two passes. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;
/** Prefix of every hash of that cost. */
const PREFIX = `$argon2id$v=19$m=${String(COST.memoryCost)},t=${String(COST.timeCost)},p=${String(COST.parallelism)}$`;

/** Hashes and checks passwords. Only a bounded number at a time, because each takes memory and a core. */
export class Passwords {
  readonly #policy: PasswordPolicy;
  #running = 0;
  readonly #waiting: (() => void)[] = [];
  #decoy: Promise<string> | undefined;

  constructor(policy: PasswordPolicy) {
    this.#policy = policy;
  }

  /** `AppError("invalid")` for a password that is not accepted; `known` as in `passwordFault`. */
  async hash(password: string, known: readonly string[]): Promise<string> {
    const fault = this.#policy(password, known);
    if (fault !== "") throw new AppError("invalid", fault);
    return this.hashGenerated(password);
  }

  /** Hashes a password that no person chose. */
  hashGenerated(password: string): Promise<string> {
    return this.#bounded(() => hash(password, COST));
  }

  /** A new hash if `known` was made with a cost other than the current one; otherwise undefined. */
  async renewed(password: string, known: string): Promise<string | undefined> {
    return known.startsWith(PREFIX) ? undefined : this.#bounded(() => hash(password, COST));
  }

  /**
   * True if the password is right. Takes equally long for an unknown user (`known` is undefined) and for a wrong
   * password.
   */
  async matches(password: string, known: string | undefined): Promise<boolean> {
    if (Buffer.byteLength(password) > PASSWORD_MAX_BYTES) return false;
    this.#decoy ??= hash("nobody has this password", COST);
    const against = known ?? (await this.#decoy);
    const matched = await this.#bounded(() => verify(against, password));
    return matched && known !== undefined;
  }

  async #bounded<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= PASSWORD_CHECKS_IN_FLIGHT_MAX) await this.#queue();
    else this.#running++;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  #queue(): Promise<void> {
    if (this.#waiting.length >= PASSWORD_CHECKS_WAITING_MAX)
      throw new AppError("limited", "Too many sign-ins at once; come back later.");
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
