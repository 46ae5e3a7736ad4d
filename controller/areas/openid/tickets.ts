import { AppError, isAppError } from "../../../common/errors.ts";
import { OPENID_TICKET_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { SecretBox } from "../../secrets/index.ts";
import type { PendingLink } from "../users/index.ts";
import type { Proofs } from "./provider.ts";

/** State that a browser keeps while it is at the provider. */
export interface Ticket extends Proofs {
  readonly remember: boolean;
  readonly redirect: string;
  /** Present if the account is to be linked to a signed-in user. */
  readonly link?: PendingLink;
}

interface Sealed extends Ticket {
  readonly untilMs: number;
}

const CONTEXT = "openid/ticket";

/**
 * Makes and opens tickets. A ticket is sealed and not stored. So any controller accepts it, and the browser cannot read
 * `verifier`.
 */
export class Tickets {
  readonly #secrets: SecretBox;
  readonly #clock: Clock;

  constructor(secrets: SecretBox, clock: Clock) {
    this.#secrets = secrets;
    this.#clock = clock;
  }

  make(ticket: Ticket): string {
    const sealed: Sealed = { ...ticket, untilMs: this.#clock.nowMs() + OPENID_TICKET_MS };
    return this.#secrets.seal(JSON.stringify(sealed), CONTEXT);
  }

  /** `AppError("deadline")` if the ticket is too old, absent or invalid. */
  open(text: string | undefined): Ticket {
    const { untilMs, ...ticket } = this.#read(text ?? "");
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

function tooLate(): AppError {
  return new AppError("deadline", "That took too long, or began in another browser: sign in again.");
}
