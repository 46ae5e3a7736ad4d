import type { Principal } from "../permissions/index.ts";

export interface DepotChange {
  readonly tenant: string;
  readonly name: string;
  readonly version: string;
}

/** A version that is to be deleted. */
export interface DepotDeletion {
  readonly principal: Principal;
  readonly name: string;
  readonly version: string;
}

/** Versions of a depot that are to leave hosts, because of a removal or of another version. */
export interface DepotDeparture {
  readonly principal: Principal;
  readonly name: string;
  readonly hosts: readonly string[];
  readonly leaves: (version: string) => boolean;
}

/** Another area that uses depots. */
export interface DepotUser {
  /** Throws `AppError("conflict")` if the version is in use. */
  refuseDeletion(deletion: DepotDeletion): Promise<void>;
  /** Throws `AppError("conflict")` if one of the versions is in use on one of the hosts. */
  refuseDeparture(departure: DepotDeparture): Promise<void>;
  /** Called after the content or command of a version was replaced. It must not throw. */
  replaced(change: DepotChange): Promise<void>;
}

/** All users of depots. Each of them is asked. */
export class DepotUsers implements DepotUser {
  readonly #users: DepotUser[] = [];

  add(user: DepotUser): void {
    this.#users.push(user);
  }

  async refuseDeletion(deletion: DepotDeletion): Promise<void> {
    for (const user of this.#users) await user.refuseDeletion(deletion);
  }

  async refuseDeparture(departure: DepotDeparture): Promise<void> {
    for (const user of this.#users) await user.refuseDeparture(departure);
  }

  async replaced(change: DepotChange): Promise<void> {
    for (const user of this.#users) await user.replaced(change);
  }
}
