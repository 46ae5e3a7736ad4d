import { join } from "node:path";
import type { FileHandle } from "node:fs/promises";
import type { Pattern } from "../../../../common/regex/pattern.ts";
import type { RawRecord } from "../../../../common/agent/raw-records.ts";
import { packRecords } from "../../../outbox/records.ts";
import type { Mark } from "../../../outbox/segment.ts";
import type { EmitOptions } from "../../../policies/host.ts";
import type { FileState } from "../rotation/life.ts";
import type { LogWork } from "../work.ts";
import { headingBefore, withHeadings, type Heading } from "./headings.ts";
import { recordOf } from "./record-text.ts";

/** The life whose records are sent. */
interface SentLife {
  readonly state: FileState;
  mark(changes: Partial<FileState>): Mark;
}

/** Records at the beginning of some bytes, and the number of these bytes. */
export interface Taken {
  readonly records: readonly RawRecord[];
  readonly consumed: number;
  readonly skipping: boolean;
}

/** Makes records of the text of one life, and sends them together with the position after them, in one write. */
export class LifeRecords {
  readonly #work: LogWork;
  readonly #life: SentLife;

  constructor(work: LogWork, life: SentLife) {
    this.#work = work;
    this.#life = life;
  }

  /** Cuts bytes that follow the read position into records. `final`: an incomplete record at their end is one too. */
  cut(fresh: Buffer, final: boolean): Taken {
    const { state } = this.#life;
    const { cutter, encoding } = this.#work;
    const { pieces, consumed, skipping } = cutter.cut(fresh, { skipping: state.skipping, final });
    // A byte order mark alone is no record.
    const records = pieces
      .map((piece) => recordOf(fresh, piece, { offset: state.offset, encoding }))
      .filter(({ bytes }) => bytes.length > 0);
    return { records, consumed, skipping };
  }

  /** Searches for the heading line before the read position, if it is not known. */
  async findHeading(handle: FileHandle): Promise<void> {
    const { state } = this.#life;
    if (this.#heading === undefined && state.offset > 0)
      state.heading = await headingBefore(handle, state.offset, this.#work);
  }

  async emit(
    records: readonly RawRecord[],
    next: Pick<FileState, "offset" | "skipping" | "tail" | "chain">,
    options: EmitOptions,
  ): Promise<void> {
    const { host, policy, spec, filter } = this.#work;
    const { state } = this.#life;
    const { records: headed, heading } = withHeadings(records, this.#work.heading, this.#heading ?? this.#noHeading());
    const wanted = filter ? headed.filter(({ bytes }) => isWanted(filter, Buffer.from(bytes).toString())) : headed;
    const head = {
      policy: policy.name,
      policyRevision: policy.revision,
      rule: spec.rule,
      source: join(spec.dir, state.home),
      generation: state.generation,
      groups: { ...state.groups },
    };
    await host.emit(packRecords(head, wanted), { ...options, marks: [this.#life.mark({ ...next, heading })] });
    Object.assign(state, next, { heading });
  }

  /** The heading line at the read position. Undefined if it must be searched for with the current rule. */
  get #heading(): Heading | undefined {
    const { heading } = this.#life.state;
    return heading?.by === this.#work.heading.text ? heading : undefined;
  }

  #noHeading(): Heading {
    return { by: this.#work.heading.text, ...(this.#life.state.offset > 0 && { isLost: true, isBegun: true }) };
  }
}

/** True if the filter matches. A record that is too long for the filter is sent too, so that it is not lost. */
function isWanted(filter: Pattern, text: string): boolean {
  return !filter.fits(text) || filter.test(text);
}
