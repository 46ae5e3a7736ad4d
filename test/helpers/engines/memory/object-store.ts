import { AppError } from "../../../../common/errors.ts";
import { checkBatch, checkChange, checkFind, checkRecord } from "../../../../controller/store/checks.ts";
import { Cursors } from "../../../../controller/store/embedded/cursor.ts";
import type { EntityState } from "../../../../controller/store/embedded/entities/state.ts";
import { withOrder } from "../../../../controller/store/ordering.ts";
import { indexedTerms } from "../../../../controller/store/terms.ts";
import type {
  ClassCount,
  Edge,
  Entity,
  EntityChange,
  EntityKey,
  EntityTrace,
  EntityVersion,
  FindEstimate,
  FindRequest,
  NumberOrder,
  ObjectStore,
  Page,
  PageRequest,
  RemovedRecord,
  RecordSpan,
  StoredRecord,
  TermsRequest,
  TimelineRequest,
  TimeRangeUs,
} from "../../../../controller/store/objects.ts";
import type { StoreCall } from "./call.ts";
import type { MemoryObjectState } from "./object-state.ts";

/** One client of the store. */
export class MemoryObjectStore implements ObjectStore {
  readonly #state: MemoryObjectState;
  readonly #call: StoreCall;

  constructor({ state, call }: { readonly state: MemoryObjectState; readonly call: StoreCall }) {
    this.#state = state;
    this.#call = call;
  }

  async change(changes: readonly EntityChange[]): Promise<void> {
    checkBatch(changes.length);
    changes.forEach(checkChange);
    await this.#call.write(
      "objects.change",
      () => this.#state.change(changes),
      (count) => this.#state.change(changes.slice(0, count(changes.length))),
    );
  }

  get(keys: readonly EntityKey[]): Promise<readonly (Entity | undefined)[]> {
    return this.#call.read("objects.get", () => keys.map((key) => this.#state.get(key)));
  }

  trace(keys: readonly EntityKey[]): Promise<readonly EntityTrace[]> {
    return this.#call.read("objects.trace", () => keys.map((key) => this.#state.trace(key)));
  }

  async find(request: FindRequest, page: PageRequest): Promise<Page<Entity>> {
    checkFind(request);
    const terms = indexedTerms(request.terms);
    const fits = (entity: Entity, state: EntityState): boolean =>
      terms.every((term) => state.terms.get(term)?.value === true) &&
      (request.ranges ?? []).every((range) => within(entity.numbers[range.slot], range));
    const { order } = request;
    return this.#page(["find", request.terms, request.ranges ?? [], order], page, () => {
      const living = this.#state.living(fits);
      return order === undefined ? living : inOrder(living, order, withOrder(request)[0]);
    });
  }

  async estimate(request: FindRequest): Promise<FindEstimate> {
    checkFind(request);
    return { terms: indexedTerms(request.terms).map((term) => ({ term, isRead: true })) };
  }

  async countClass(term: string): Promise<ClassCount> {
    checkFind({ terms: [term] });
    const bearing = this.#state.living((_, state) => state.terms.get(term)?.value === true);
    return { count: [...bearing].length };
  }

  async terms(request: TermsRequest, page: PageRequest): Promise<Page<string>> {
    return this.#page(["terms", request], page, () => this.#state.terms(request).map((term) => [term, term] as const));
  }

  async scan(page: PageRequest): Promise<Page<Entity>> {
    return this.#page(["scan"], page, () => this.#state.living(() => true));
  }

  async history(key: EntityKey, range: TimeRangeUs, page: PageRequest): Promise<Page<EntityVersion>> {
    return this.#page(["history", key, range], page, () =>
      this.#state
        .versions(key, range)
        .map(({ timeUs, value }) => [String(1e16 - timeUs).padStart(17, "0"), { timeUs, value }] as const),
    );
  }

  async edges(
    key: EntityKey,
    direction: "out" | "in",
    { type, ...page }: PageRequest & { readonly type?: string },
  ): Promise<Page<Edge>> {
    return this.#page(["edges", key, direction, type ?? ""], page, () => this.#state.edges(key, direction, type));
  }

  async append(records: readonly StoredRecord[]): Promise<void> {
    checkBatch(records.length);
    records.forEach(checkRecord);
    await this.#call.write(
      "objects.append",
      () => this.#state.append(records),
      (count) => this.#state.append(records.slice(0, count(records.length))),
    );
  }

  async timeline(request: TimelineRequest, page: PageRequest): Promise<Page<StoredRecord>> {
    // Newest first: later records have smaller ids, so places are counted from the other end.
    return this.#page(["timeline", request], page, () =>
      this.#state.timeline(request).map((record) => [descending(record.id), record] as const),
    );
  }

  /** In one part, so it accepts no cursor. */
  async countRecords(span: RecordSpan, cursor?: string): Promise<ClassCount> {
    if (cursor !== undefined) throw new AppError("invalid", "This cursor does not belong to this request.");
    return { count: this.#state.timeline(span).length };
  }

  getRecords(keys: readonly EntityKey[]): Promise<readonly (StoredRecord | undefined)[]> {
    return this.#call.read("objects.getRecords", () => keys.map((key) => this.#state.record(key)));
  }

  async removeRecords(records: readonly RemovedRecord[]): Promise<void> {
    await this.#call.write("objects.removeRecords", () => records.forEach((one) => this.#state.removeRecord(one)));
  }

  /** Items after the cursor's place, in order. */
  async #page<T>(
    request: readonly unknown[],
    page: PageRequest,
    read: () => readonly (readonly [place: string, item: T])[],
  ): Promise<Page<T>> {
    const cursors = new Cursors(request);
    const after = cursors.read(page);
    const place = after && Buffer.from(after).toString();
    return this.#call.read(`objects.${String(request[0])}`, () => {
      const rest = read().filter(([each]) => place === undefined || each > place);
      const items = rest.slice(0, page.limit);
      const last = items.at(-1)?.[0];
      const answer = { items: items.map(([, item]) => item) };
      return rest.length > items.length && last !== undefined
        ? { ...answer, cursor: cursors.write(Buffer.from(last)) }
        : answer;
    });
  }
}

/** Names items by sortable numbers, so that pages can continue after a name. */
function inOrder(
  living: readonly (readonly [name: string, entity: Entity])[],
  { slot, descending: isDescending, behind }: NumberOrder,
  { from = -Infinity, to = Infinity }: { readonly from?: number; readonly to?: number } = {},
): readonly (readonly [place: string, entity: Entity])[] {
  const placeOf = (number: number, key: EntityKey): string =>
    `${sortingText(isDescending ? -number : number)} ${sortingName(key, isDescending)}`;
  const named = living.flatMap(([, entity]) => {
    const number = entity.numbers[slot];
    return number === undefined ? [] : [[placeOf(number, entity.key), entity] as const];
  });
  const sorted = named.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return behind ? sorted.filter(([place]) => place > placeOf(isDescending ? to : from, behind)) : sorted;
}

/** Whose order is that of the keys, or the opposite one. */
function sortingName({ cid, id }: EntityKey, isDescending: boolean): string {
  const bytes = Buffer.from(`${String(cid).padStart(10, "0")}/${id}`);
  // Behind the end of a name comes nothing, or all that begin with it.
  return isDescending ? `${Buffer.from(bytes.map((byte) => 255 - byte)).toString("hex")}~` : bytes.toString("hex");
}

function sortingText(number: number): string {
  const bits = Buffer.alloc(8);
  // Zero has one sign here, because it is one number.
  bits.writeDoubleBE(number + 0);
  if ((bits[0]! & 0x80) === 0) bits[0]! |= 0x80;
  else for (let at = 0; at < 8; at += 1) bits[at]! ^= 0xff;
  return bits.toString("hex");
}

function within(
  value: number | undefined,
  { from = -Infinity, to = Infinity }: { readonly from?: number; readonly to?: number },
): boolean {
  return value !== undefined && value >= from && value <= to;
}

const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** A text that sorts in the reverse order of the ULIDs. */
function descending(id: string): string {
  return [...id].map((digit) => DIGITS[31 - DIGITS.indexOf(digit)] ?? "").join("");
}

/** The error for a store that was never created. */
export function noTenant(name: string): AppError {
  return new AppError("not_found", `There is no tenant ${name}.`);
}
