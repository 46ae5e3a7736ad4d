import { isAppError } from "../../../../common/errors.ts";
import { JOB_ROW_WRITES_AT_ONCE, JOB_ROWS_PER_WRITE } from "../../../../common/limits.ts";
import { Together } from "../../../../common/together.ts";
import type { Row } from "../../../../common/value.ts";
import { CallDeadline } from "../../../store/calls/call-deadline.ts";
import { keptRow } from "../../../turns/well-formed.ts";
import type { Unrestricted } from "../../objects/index.ts";
import { systemPrincipal } from "../../permissions/index.ts";
import type { RunCaller } from "../runs/open-runs.ts";

interface TimedRow {
  readonly row: Row;
  readonly atMs: number;
}

/**
 * Writes rows of runs. Rows that arrive while other rows of the tenant are being written are collected and written
 * together. The time of each row is stored with its run, so writing a row twice changes nothing.
 */
export class RunRows {
  readonly #objects: Unrestricted<"insert">;
  /** Collected writes, by tenant, class and trace. */
  readonly #writes = new Map<string, Together<TimedRow>>();

  constructor(objects: Unrestricted<"insert">) {
    this.#objects = objects;
  }

  /**
   * Resolves when the rows are durable. Each row succeeds or fails by itself. `path` is relative to the tenant's
   * ospace.
   */
  async write(of: RunCaller, path: string, rows: readonly TimedRow[]): Promise<void> {
    if (rows.length === 0) return;
    // A call with a deadline writes directly: it must not wait longer for the stores than its own deadline allows.
    if (CallDeadline.current() !== undefined) return this.#insert(of, path, rows);
    const key = `${of.tenant}\n${of.ospace}${path}\n${of.traceparent}`;
    const writes = this.#writes.get(key) ?? this.#together(of, path);
    this.#writes.set(key, writes);
    try {
      await Promise.all(rows.map((timed) => writes.do(timed)));
    } finally {
      if (writes.isIdle) this.#writes.delete(key);
    }
  }

  #together(of: RunCaller, path: string): Together<TimedRow> {
    return new Together({
      ...{ lanes: JOB_ROW_WRITES_AT_ONCE, most: JOB_ROWS_PER_WRITE },
      work: (rows) => this.#insert(of, path, rows),
      failsAll: (error) => isAppError(error, "unavailable", "unknown_outcome"),
    });
  }

  /** Rows are written by the platform, because a user who may run a job need not have the right to write objects. */
  async #insert({ tenant, ospace, traceparent }: RunCaller, path: string, rows: readonly TimedRow[]): Promise<void> {
    await this.#objects.unrestricted.insert(
      systemPrincipal(tenant, ospace, traceparent),
      ospace + path,
      rows.map(({ row }) => keptRow(row)),
      { atMs: rows.map(({ atMs }) => atMs) },
    );
  }
}
