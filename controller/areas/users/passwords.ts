import { hash, verify } from "@node-rs/argon2";
import { AppError } from "../../../common/errors.ts";
import {
  PASSWORD_CHECKS_IN_FLIGHT_MAX,
  PASSWORD_CHECKS_WAITING_MAX,
  PASSWORD_MAX_BYTES,
  PASSWORD_MIN_CHARACTERS,
} from "../../../common/limits.ts";

/** argon2id as OWASP recommends it: 19 MiB, two passes. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

/** Hashes and checks passwords, a bounded number at a time, because each takes memory and a core. */
export class Passwords {
  #running = 0;
  readonly #waiting: (() => void)[] = [];
  #decoy: Promise<string> | undefined;

  async hash(password: string): Promise<string> {
    checkStrength(password);
    return this.#bounded(() => hash(password, COST));
  }

  /** Takes as long for an unknown user (`known` is undefined) as for a wrong password. */
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

function checkStrength(password: string): void {
  if ([...password].length < PASSWORD_MIN_CHARACTERS)
    throw new AppError("invalid", `A password has at least ${String(PASSWORD_MIN_CHARACTERS)} characters.`);
  if (Buffer.byteLength(password) > PASSWORD_MAX_BYTES)
    throw new AppError("too_large", `A password has at most ${String(PASSWORD_MAX_BYTES)} bytes.`);
}
