import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import type { WriteBasis, Unrestricted } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { RowGate } from "../query/index.ts";
import type { Placed } from "./rows-by-class.ts";

/** Returns the write rights of a rule's author on a class. */
export type GateOfAuthor = (author: Principal, path: string) => Promise<RowGate>;

interface Storing {
  readonly principal: Principal;
  /** Write rights of the author. Absent: the platform writes the rows. */
  readonly gate?: RowGate;
  readonly basis: WriteBasis | undefined;
}

/**
 * Stores rows of one class. Rows of a rule with an author are written with the author's rights. Refused rows are
 * reported to their `faults`.
 */
export class RowStore {
  readonly #objects: Unrestricted<"ingest">;
  readonly #gate: GateOfAuthor | undefined;

  /** `gate` absent: rows of rules with an author are refused. */
  constructor(objects: Unrestricted<"ingest">, gate: GateOfAuthor | undefined) {
    this.#objects = objects;
    this.#gate = gate;
  }

  /** Stores rows that have the same author and basis. Rows without an author are written as `platform`. */
  async store(path: string, rows: readonly Placed[], platform: Principal): Promise<void> {
    const { by, basis } = rows[0] ?? {};
    if (by === undefined) return this.#ingest(path, rows, { principal: platform, basis });
    try {
      const gate = await this.#gateOf(by, path);
      const rest = gate.isByRow ? rows.map((row) => [row]) : [rows];
      for (const some of rest) await this.#ingest(path, some, { principal: by, gate, basis });
    } catch (error) {
      if (!isAppError(error, "denied", "not_found")) throw error;
      for (const row of rows) row.faults.refused(row, errorText(error));
    }
  }

  #gateOf(author: Principal, path: string): Promise<RowGate> {
    if (this.#gate === undefined) throw new AppError("denied", "What rules of authors make is not stored here.");
    return this.#gate(author, path);
  }

  /** Stores rows together. If that fails, halves are tried until each bad row is alone. */
  async #ingest(path: string, rows: readonly Placed[], context: Storing): Promise<void> {
    try {
      const records = rows.map(({ record }) => record);
      await context.gate?.check(records);
      await this.#objects.unrestricted.ingest(context.principal, path, records, {
        basis: context.basis,
        aboveAhead: true,
      });
    } catch (error) {
      if (!isAppError(error, "invalid", "too_large", "not_found", "denied")) throw error;
      const half = rows.length >> 1;
      const [only] = rows;
      if (half === 0 || !only) return only?.faults.refused(only, errorText(error));
      await this.#ingest(path, rows.slice(0, half), context);
      await this.#ingest(path, rows.slice(half), context);
    }
  }
}
