import { AppError, isAppError } from "../../../../common/errors.ts";
import { SIGN_IN_TICKET_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { SecretBox } from "../../../secrets/index.ts";

/** A sign-in whose password was right and whose code is missing: the request without the password. */
export interface Ticket {
  readonly tenant: string;
  readonly username: string;
  /** Epoch of the user when the password was checked. */
  readonly epoch: string;
  readonly remember: boolean;
  readonly redirect: string;
}

interface Sealed extends Ticket {
  readonly untilMs: number;
}

const CONTEXT = "signin/ticket";

/** Thrown if a code is missing or wrong. With the ticket, the next request needs only the code. */
export class CodeNeeded extends AppError {
  readonly isWrong: boolean;
  readonly ticket: string;

  constructor(isWrong: boolean, ticket: string) {
    const text = isWrong
      ? "The one-time password is wrong, or was used before."
      : "This user has a second factor: send the one-time password of the device, or a recovery code, as code.";
    super("denied", text, { details: { fields: ["code"] } });
    this.isWrong = isWrong;
    this.ticket = ticket;
  }
}

/** Sealed tickets. They are not stored, and every controller accepts the tickets of all others. */
export class Tickets {
  readonly #secrets: SecretBox;
  readonly #clock: Clock;

  constructor(secrets: SecretBox, clock: Clock) {
    this.#secrets = secrets;
    this.#clock = clock;
  }

  make(ticket: Ticket): string {
    const sealed: Sealed = { ...ticket, untilMs: this.#clock.nowMs() + SIGN_IN_TICKET_MS };
    return this.#secrets.seal(JSON.stringify(sealed), CONTEXT);
  }

  /** `AppError("deadline")` for a ticket that is too old or not valid. */
  open(text: string): Ticket {
    const { untilMs, ...ticket } = this.#read(text);
    if (untilMs <= this.#clock.nowMs()) throw tooLate();
    return ticket;
  }

  #read(text: string): Sealed {
    try {
      return JSON.parse(this.#secrets.open(text, CONTEXT)) as Sealed;
    } catch (error) {
      throw isAppError(error) ? tooLate() : error;
    }
  }
}

export function tooLate(): AppError {
  return new AppError("deadline", "That took too long: sign in again.");
}
