import { hash } from "node:crypto";
import { Secret, TOTP } from "otpauth";
import { AppError } from "../../../../common/errors.ts";
import {
  RECOVERY_CODE_BYTES,
  RECOVERY_CODES,
  SECOND_FACTOR_DELAY_MAX_MS,
  SECOND_FACTOR_DELAY_MIN_MS,
  SECOND_FACTOR_FREE_FAILURES,
  SECOND_FACTOR_PENDING_MS,
  SECOND_FACTOR_PERIOD_SECONDS,
  SECOND_FACTOR_SECRET_BYTES,
  SECOND_FACTOR_STEPS_OFF,
  USER_CHANGE_ATTEMPTS_MAX,
} from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { SecretBox } from "../../../secrets/index.ts";
import type { FactorStore } from "./store.ts";
import { type FactorRecord } from "./store.ts";
import type { UserRecord } from "../store.ts";
import type { NewSecondFactor } from "../types.ts";

interface Dependencies {
  readonly store: FactorStore;
  readonly runtime: Runtime;
  /** Absent: enrolling is not possible, and users with a second factor cannot sign in by password. */
  readonly secrets: SecretBox | undefined;
}

/** The parts of the record that an accepted code changes. */
type Spent = Pick<FactorRecord, "lastStep" | "recovery">;

const CODE = /^\d{6}$/;

/**
 * One-time passwords by time (RFC 6238: SHA-1, 6 digits, 30 seconds, as every authenticator supports), and recovery
 * codes. Each checked code is one write, conditional on the revision of the record. So a code is accepted only once,
 * and all wrong codes are counted, across all controllers.
 */
export class SecondFactors {
  readonly #store: FactorStore;
  readonly #runtime: Runtime;
  readonly #secrets: SecretBox | undefined;

  constructor({ store, runtime, secrets }: Dependencies) {
    this.#store = store;
    this.#runtime = runtime;
    this.#secrets = secrets;
  }

  /** Begins a second factor; an unconfirmed one is replaced. `AppError("conflict")` if there is a confirmed one. */
  async begin(user: UserRecord): Promise<NewSecondFactor> {
    if (user.id === "") throw new AppError("unavailable", "The tree of users is being repaired; come back later.");
    const before = await this.#store.get(user);
    if (user.secondFactor || before?.record.isConfirmed)
      throw new AppError("conflict", "There is a second factor already: remove it first.");
    const bytes = Uint8Array.from(this.#runtime.random.bytes(SECOND_FACTOR_SECRET_BYTES));
    const secret = new Secret({ buffer: bytes.buffer });
    const expiresAtMs = this.#runtime.clock.nowMs() + SECOND_FACTOR_PENDING_MS;
    const record: FactorRecord = {
      sealed: this.#box().seal(secret.base32, factorContext(user)),
      isConfirmed: false,
      untilMs: expiresAtMs,
      lastStep: 0,
      recovery: [],
      failures: 0,
      blockedUntilMs: 0,
      change: this.#newChange(),
    };
    if (!(await this.#store.put(user, record, { revision: before?.revision ?? 0, expiresAtMs }))) throw raced();
    return { uri: totp(user, secret).toString(), secret: secret.base32 };
  }

  /** Activates the second factor: sign-in then needs a code. Answers the recovery codes, which are shown once. */
  async confirm(user: UserRecord, code: string): Promise<readonly string[]> {
    const stored = await this.#store.get(user);
    const isLate = stored === undefined || stored.record.untilMs <= this.#runtime.clock.nowMs();
    if (isLate || stored.record.isConfirmed)
      throw new AppError("conflict", "No second factor waits to be confirmed: begin again.");
    const lastStep = this.#stepOf(user, stored.record, code);
    if (lastStep === undefined) throw new AppError("invalid", "The code is wrong: look at the clock of the device.");
    const codes = Array.from({ length: RECOVERY_CODES }, () => this.#newRecoveryCode());
    const recovery = codes.map(digestOf);
    const record = { ...stored.record, isConfirmed: true, lastStep, recovery, change: this.#newChange() };
    if (!(await this.#store.confirm(user, record, stored.revision))) throw raced();
    return codes;
  }

  remove(user: UserRecord): Promise<void> {
    return this.#store.remove(user);
  }

  /** Number of recovery codes left; undefined without a second factor. */
  async left(user: UserRecord): Promise<number | undefined> {
    return user.secondFactor ? ((await this.#store.get(user))?.record.recovery.length ?? 0) : undefined;
  }

  /**
   * True if the code is right; it is then used up. Wrong codes are counted over all addresses, because a person who
   * tries codes already has the password. After many of them, throws `AppError("limited")` for some time; codes are not
   * counted meanwhile.
   */
  async accepts(user: UserRecord, code: string): Promise<boolean> {
    for (let attempt = 1; attempt <= USER_CHANGE_ATTEMPTS_MAX; attempt++) {
      const stored = await this.#store.get(user);
      if (stored === undefined || !stored.record.isConfirmed) return false;
      this.#refuseWhileBlocked(stored.record);
      const spent = this.#spent(user, stored.record, code);
      const record = spent === undefined ? this.#failed(stored.record) : this.#succeeded(stored.record, spent);
      // If another write came first, the code is checked again: the other call may have used it.
      if (await this.#store.put(user, record, stored)) return spent !== undefined;
    }
    throw new AppError("limited", "Too many codes at once; come back later.");
  }

  #refuseWhileBlocked({ blockedUntilMs }: FactorRecord): void {
    const waitMs = blockedUntilMs - this.#runtime.clock.nowMs();
    if (waitMs <= 0) return;
    const seconds = Math.ceil(waitMs / 1_000);
    throw new AppError("limited", `Too many wrong one-time passwords; try again in ${String(seconds)} s.`, {
      details: { retryAfterSeconds: seconds },
    });
  }

  #spent(user: UserRecord, record: FactorRecord, code: string): Spent | undefined {
    const { recovery, lastStep } = record;
    const step = this.#stepOf(user, record, code);
    if (step !== undefined) return { lastStep: step, recovery };
    const digest = digestOf(code);
    return recovery.includes(digest) ? { lastStep, recovery: recovery.filter((one) => one !== digest) } : undefined;
  }

  /**
   * The time step of this code. Undefined if the code is wrong or too old, or if a code of this or a later step was
   * used.
   */
  #stepOf(user: UserRecord, { sealed, lastStep }: FactorRecord, text: string): number | undefined {
    const token = text.replace(/\s/g, "");
    if (!CODE.test(token)) return undefined;
    const secret = Secret.fromBase32(this.#box().open(sealed, factorContext(user)));
    const timestamp = this.#runtime.clock.nowMs();
    const device = totp(user, secret);
    const delta = device.validate({ token, timestamp, window: SECOND_FACTOR_STEPS_OFF });
    if (delta === null) return undefined;
    const step = device.counter({ timestamp }) + delta;
    return step > lastStep ? step : undefined;
  }

  #succeeded(record: FactorRecord, spent: Spent): FactorRecord {
    return { ...record, ...spent, failures: 0, blockedUntilMs: 0, change: this.#newChange() };
  }

  #failed(record: FactorRecord): FactorRecord {
    const failures = record.failures + 1;
    const over = failures - SECOND_FACTOR_FREE_FAILURES;
    const delayMs =
      over <= 0 ? 0 : Math.min(SECOND_FACTOR_DELAY_MAX_MS, SECOND_FACTOR_DELAY_MIN_MS * 2 ** Math.min(over - 1, 30));
    return { ...record, failures, blockedUntilMs: this.#runtime.clock.nowMs() + delayMs, change: this.#newChange() };
  }

  #newRecoveryCode(): string {
    const bytes = Uint8Array.from(this.#runtime.random.bytes(RECOVERY_CODE_BYTES));
    return new Secret({ buffer: bytes.buffer }).base32.replace(/(.{4})(?!$)/g, "$1-").toLowerCase();
  }

  #newChange(): string {
    return Buffer.from(this.#runtime.random.bytes(9)).toString("base64url");
  }

  #box(): SecretBox {
    if (this.#secrets === undefined) throw new AppError("unavailable", "There is no key to open second factors with.");
    return this.#secrets;
  }
}

function totp({ tenant, username }: UserRecord, secret: Secret): TOTP {
  return new TOTP({ issuer: "odp", label: `${tenant}.${username}`, secret, period: SECOND_FACTOR_PERIOD_SECONDS });
}

export function factorContext({ tenant, id }: Pick<UserRecord, "tenant" | "id">): string {
  return `${tenant}/user/${id}/secondfactor`;
}

/**
 * Digest of a recovery code; case, spaces and hyphens do not matter. Codes are random, so a slow hash would add no
 * protection.
 */
function digestOf(code: string): string {
  return hash("sha256", code.replace(/[\s-]/g, "").toLowerCase());
}

function raced(): AppError {
  return new AppError("conflict", "Another change of the second factor came first: begin again.");
}
